"""clear: old tool results are cleared once the window holds too much.

The rule of Anthropic's `clear_tool_uses_20250919`: above `trigger` input tokens all but the newest `keep` results are
cleared, unless less than `at_least` tokens would go (docs.claude.com, context editing).
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
        self._whole: deque[int] = deque()

    def record(self, window: Window, block: int) -> Replace | None:
        if window.blocks[block].kind == "tool_result":
            self._whole.append(block)
        return None

    def rule(self, window: Window) -> Edits:
        if window.tokens <= self._limit or len(self._whole) <= self.parameters.keep:
            return Edits()
        fresh = window.fresh
        changes: list[Replace] = []
        saved = 0
        left: deque[int] = deque()
        old = len(self._whole) - self.parameters.keep
        for at, number in enumerate(self._whole):
            entry = window.entries.get(number)
            if entry is None or (entry.replaced and at < old):
                continue
            unit = window.units[window.unit_of[number]]
            block = window.blocks[number]
            if at >= old or unit.number in fresh or unit.pinned is not None or block.tool_name in self._exclude:
                left.append(number)
                continue
            text = placeholder(block, entry.tokens)
            size = self.setting.count(text, "tool_result")
            if size < entry.tokens and text != block.text:
                changes.append(Replace(number, text, size, f"above {self._limit:,.0f} tokens"))
                saved += entry.tokens - size
        if not changes or saved < self.parameters.at_least:
            return Edits()
        self._whole = left
        return Edits(replaces=changes, reason="clearing")
