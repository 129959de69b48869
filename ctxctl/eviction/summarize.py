"""summarize: the oldest shrinks to a marked summary, and goes when nothing is left to shrink (requirement E12)."""

from __future__ import annotations

from heapq import heappush
from typing import Any

from ctxctl.eviction.base import POLICIES, Setting
from ctxctl.eviction.retention import Retention, Row
from ctxctl.eviction.tiers import lower
from ctxctl.facts.condense import extract
from ctxctl.guard.spanning import keyless
from ctxctl.model.edits import Replace
from ctxctl.model.window import Window

SUMMARIZED = frozenset(("user_message", "assistant", "tool_result", "memory_injection", "document"))
"""Kinds whose text may be replaced. Calls keep their arguments and reasoning its signature; a summary is one."""


@POLICIES.register("summarize")
class Summarize(Retention):
    """The oldest unit that was not summarized yet shrinks to its first and key lines; when none is left, the oldest
    goes.

    Complexity: O(log n) per block, O(text) per summary.
    Strength: without a model; what was said stays visible in its own words, marked.
    Weakness: an extract picks lines by their words and can miss the one that mattered.
    Fit: long sessions of much text, where little is read again.
    """

    name = "summarize"

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        self._todo: list[Row] = []
        self._made: dict[int, tuple[str, int]] = {}

    def _file(self, window: Window, unit: int) -> None:
        super()._file(window, unit)
        if any(window.blocks[b].kind in SUMMARIZED for b in window.present(unit)):
            heappush(self._todo, (0, self._last, unit))

    def why(self, window: Window, unit: int) -> str:
        return "oldest, nothing left to summarize"

    def _shrink(self, window: Window, over: float, complete: bool, changes: list[Replace]) -> float:
        done: set[int] = set()
        for unit in self._large:
            if (
                over > 0
                and unit in self._stamps
                and unit in window.resident
                and not self._stays(window, window.together(unit), complete)
            ):
                over -= self._summarize(window, unit, changes)
                done.add(unit)
        while over > 0 and (found := self._pop(window, self._todo, complete)) is not None:
            if found not in done:
                over -= self._summarize(window, found, changes)
        return over

    def _summarize(self, window: Window, unit: int, changes: list[Replace]) -> int:
        """Adds what replaces the content of a unit; returns the tokens that it saves. One that is not smaller is
        refused, and the unit counts as summarized all the same."""
        saved = 0
        tier = self.tier(window, unit)
        for number in window.present(unit):
            block, entry = window.blocks[number], window.entries[number]
            if block.kind not in SUMMARIZED or entry.replaced:
                continue
            made = self._made.get(number)
            if made is None:  # what came in again is summarized the same way again
                text = _safe(extract(keyless(block, _safe), mark=self.setting.mark, clean=_safe))
                made = self._made[number] = text, self.setting.count(text, block.kind)
            text, tokens = made
            if text and text != block.text and tokens < entry.tokens:
                changes.append(Replace(number, text, tokens, f"summary, tier {tier} -> {lower(tier)}"))
                saved += entry.tokens - tokens
        if saved:
            self._tiers[unit] = lower(tier)
        return saved


def _safe(text: str) -> str:
    """What a summary may hold (requirement G3)."""
    from ctxctl.guard.sanitize import sanitize  # its rules take a while to load

    return sanitize(text).text
