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
from ctxctl.facts.condense import placeholder
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
        self._last = 0

    def record(self, window: Window, block: int) -> Replace | None:
        found = window.blocks[block]
        if found.kind == "tool_result" and window.units[window.unit_of[block]].pinned is None:
            self._whole.append((window.turn, block))
        return None

    def rule(self, window: Window) -> Edits:
        now, told = window.turn, self.parameters
        if now - self._last < told.every:
            return Edits()
        changes: list[Replace] = []
        saved = 0
        waiting: list[tuple[int, int]] = []
        while self._whole and self._whole[0][0] <= now - told.keep:
            turn, number = self._whole.popleft()
            if number not in window.entries or window.entries[number].replaced:
                continue
            if window.unit_of[number] in window.fresh:
                waiting.append((turn, number))
                continue
            tokens = window.entries[number].tokens
            text = placeholder(window.blocks[number], tokens)
            size = self.setting.count(text, "tool_result")
            if size < tokens and text != window.blocks[number].text:
                changes.append(Replace(number, text, size, f"older than {told.keep} turns"))
                saved += tokens - size
            waiting.append((turn, number))
        if not changes or saved < told.min_saving:
            self._whole.extendleft(reversed(waiting))
            return Edits()
        self._last = now
        self._whole.extendleft(
            (turn, number) for turn, number in reversed(waiting) if window.unit_of[number] in window.fresh
        )
        return Edits(replaces=changes, reason="masking")
