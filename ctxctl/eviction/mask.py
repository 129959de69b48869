"""mask: old tool results become a line (observation masking).

Lindenbauer et al. 2025, "The Complexity Trap": hiding old observations costs an agent nothing in solved tasks. What it
costs with a prompt cache depends on how often the prefix is broken, hence the batches.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.placeholders import Placeholders
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class MaskParameters:
    """keep: newest turns whose results stay whole. every: turns between two maskings. min_saving: tokens that one has
    to free, else it waits."""

    keep: Annotated[int, Meta(ge=0)] = 10
    every: Annotated[int, Meta(ge=1)] = 1
    min_saving: Annotated[int, Meta(ge=0)] = 0


@POLICIES.register("mask")
class Mask(Policy):
    """Tool results older than some turns become one line, in batches.

    Complexity: O(1) per result.
    Strength: no model, call ids stay, what was done stays visible.
    Weakness: every masking breaks the cached prefix: masking each turn can double the bill.
    Fit: tool-heavy agents; in batches where caching is priced.
    """

    name = "mask"
    ranks = False
    Parameters = MaskParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        self._whole: deque[tuple[int, int]] = deque()
        self._since: dict[int, int] = {}
        self._old = Placeholders(setting)
        self._last = 0

    def record(self, window: Window, block: int) -> Replace | None:
        if window.blocks[block].kind == "tool_result":
            self._whole.append((window.turn, block))
            self._since[block] = window.turn
            self._old.remove(block)  # it came in again, and is new
        return None

    def rule(self, window: Window) -> Edits:
        now, told = window.turn, self.parameters
        if now - self._last < told.every:
            return Edits()
        unanswered: list[tuple[int, int]] = []
        while self._whole and self._whole[0][0] <= now - told.keep:
            turn, number = self._whole.popleft()
            if self._since.get(number) != turn:
                continue
            if window.unit_of[number] in window.fresh:
                unanswered.append((turn, number))
                continue
            del self._since[number]
            self._old.add(window, number, f"older than {told.keep} turns")
        self._whole.extendleft(reversed(unanswered))
        if not self._old.worth(window, told.min_saving):
            return Edits()
        self._last = now
        return Edits(replaces=self._old.take(), reason="masking")
