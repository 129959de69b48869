"""priority: importance by source and by rule (requirement E4)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.pins import Matcher
from ctxctl.model.window import Window

SOURCE_BONUS = {
    "system": 1.0,
    "tool_definitions": 1.0,
    "user_message": 0.3,
    "assistant": 0.1,
    "memory_injection": 0.05,
    "thinking": -0.1,
}
"""Added to the importance; other kinds add nothing. Tool definitions are part of the system prompt."""


def priority(kind: str, importance: float, similarity: float = 0.0) -> float:
    """Importance and source bonus, and a fifth of the similarity to the current task, within 0..1."""
    return min(1.0, max(0.0, importance + SOURCE_BONUS.get(kind, 0.0) + 0.2 * max(0.0, similarity)))


class Weigher:
    """The importance of units by the rules of the settings: that of its most important block (requirement E9)."""

    def __init__(self, setting: Setting) -> None:
        self._default = setting.options.default_importance
        self._rules = [(Matcher(rule.match), rule.value) for rule in setting.options.importance]
        self._known: dict[int, float] = {}

    def importance(self, window: Window, unit: int) -> float:
        """0..1: the highest of its resident blocks. Of each the first rule that fits holds, else the default."""
        return max((self._of(window, b) for b in window.present(unit)), default=self._default)

    def _of(self, window: Window, number: int) -> float:
        found = self._known.get(number)
        if found is None:
            block = window.blocks[number]
            fits = (value for matcher, value in self._rules if matcher.fits(block))
            found = self._known[number] = next(fits, self._default)
        return found

    def priorities(self, window: Window, units: Sequence[int]) -> list[float]:
        """The priority of each unit."""
        known = window.units
        if not self._rules:
            by_kind = {kind: priority(kind, self._default) for kind in {known[u].kind for u in units}}
            return [by_kind[known[u].kind] for u in units]
        return [priority(known[u].kind, self.importance(window, u)) for u in units]


@POLICIES.register("priority")
class Priority(Policy):
    """What matters least goes first: importance by rule, and a bonus by source.

    Complexity: O(n log n) per eviction; O(rules) more per unit where importance is set.
    Strength: does what the settings say, and keeps what people wrote.
    Weakness: blind to time; without rules it tells only sources apart.
    Fit: mixed content.
    """

    name = "priority"

    def __init__(self, setting: Setting, parameters: object = None) -> None:
        super().__init__(setting, parameters)
        self._weigher = Weigher(setting)

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        return self._weigher.priorities(window, units)
