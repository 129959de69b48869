"""clear: old tool results are cleared once the window holds too much.

The rule of Anthropic's `clear_tool_uses_20250919`: above `trigger` input tokens all but the newest `keep` results are
cleared, unless less than `at_least` tokens would go (docs.claude.com, context editing).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.placeholders import Placeholders
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class ClearParameters:
    """trigger: tokens, or up to 1 a share of the window. keep: newest results that stay. at_least: tokens that a
    clearing has to free. exclude: tools whose results stay, with `+` between them."""

    trigger: Annotated[float, Meta(gt=0)] = 0.5
    keep: Annotated[int, Meta(ge=0)] = 3
    at_least: Annotated[int, Meta(ge=0)] = 0
    exclude: str = ""


@POLICIES.register("clear")
class Clear(Policy):
    """Above a number of tokens all but the newest tool results are cleared.

    Complexity: O(1) per result.
    Strength: breaks the cached prefix only when the window has filled up.
    Weakness: clears at once what the agent may still be working with.
    Fit: tool-heavy agents of providers that clear by themselves.
    """

    name = "clear"
    ranks = False
    Parameters = ClearParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        told = self.parameters
        self._limit = told.trigger * setting.window if told.trigger <= 1 else told.trigger
        self._exclude = frozenset(told.exclude.split("+")) if told.exclude else frozenset()
        # the newest results; those that are older and were not looked at; those that were
        self._newest: OrderedDict[int, None] = OrderedDict()
        self._older: deque[int] = deque()
        self._passed: list[int] = []
        self._old = Placeholders(setting)

    def record(self, window: Window, block: int) -> Replace | None:
        if window.blocks[block].kind == "tool_result":
            self._old.remove(block)  # it came in again, and is new
            self._newest[block] = None
            self._newest.move_to_end(block)
            if len(self._newest) > self.parameters.keep:
                self._older.append(self._newest.popitem(last=False)[0])
        return None

    def rule(self, window: Window) -> Edits:
        if window.tokens <= self._limit:
            return Edits()
        self._look(window)
        least = self.parameters.at_least
        if not self._old.worth(window, least):
            return Edits()
        if not all(map(window.entries.__contains__, self._newest)):
            self._refill(window)
            if not self._old.worth(window, least):
                return Edits()
        return Edits(replaces=self._old.take(), reason="clearing")

    def _look(self, window: Window) -> None:
        """What is older than the newest results waits to be cleared, once a call has answered it."""
        unanswered: list[int] = []
        while self._older:
            number = self._older.popleft()
            if number in self._newest:
                continue
            if window.unit_of[number] in window.fresh:
                unanswered.append(number)
                continue
            self._passed.append(number)
            if window.blocks[number].tool_name not in self._exclude:
                self._old.add(window, number, f"above {self._limit:,.0f} tokens")
        self._older.extend(unanswered)

    def _refill(self, window: Window) -> None:
        """Results that were taken back are not among the newest: older ones are in their place."""
        newest, entries = self._newest, window.entries
        for number in [n for n in newest if n not in entries]:
            del newest[number]
        while len(newest) < self.parameters.keep and (self._older or self._passed):
            number = self._older.pop() if self._older else self._passed.pop()
            if number in newest or number not in entries or entries[number].replaced:
                continue
            self._old.remove(number)
            newest[number] = None
            newest.move_to_end(number, last=False)
