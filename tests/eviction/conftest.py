"""Small traces by hand: blocks with their tokens, turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.decision import Decision
from ctxctl.model.unit import Grouper, Trace, Turn


class Builder:
    """Files blocks and turns; `manager` runs over what was filed so far."""

    def __init__(self, options: EvictionOptions | None = None) -> None:
        self.options = options or EvictionOptions()
        self.blocks: list[Block] = []
        self.tokens: list[int] = []
        self.arrivals: dict[int, list[int]] = {}
        self._grouper = Grouper()
        self._pinned = pins_of(self.options)
        self._exchange = 0

    def add(self, turn: int, kind: str, tokens: int, text: str = "", **more: Any) -> int:
        """A block that a call reads first; returns its number. `call`, `response` and `tool` are short for the ids."""
        number = len(self.blocks)
        if kind == "user_message":
            self._exchange += 1
        names = {"call": "call_id", "response": "response_id", "tool": "tool_name"}
        fields = {names.get(key, key): value for key, value in more.items()}
        fields.setdefault("exchange", self._exchange)
        role = fields.pop("role", "assistant" if kind in ("assistant", "thinking", "tool_call") else "user")
        text = text or f"block {number}"
        block = Block(f"{number}.0", kind, role, text, turn, source=Source(number + 1), message=number, **fields)
        self.blocks.append(block)
        self.tokens.append(tokens)
        self._grouper.add(block, tokens, turn, self._pinned(block))
        self.arrivals.setdefault(turn, []).append(number)
        return number

    def call(self, turn: int, tokens: int, text: str = "", *, name: str = "", size: int = 10, **more: Any) -> int:
        """A tool call with its result, read by one call; returns the number of the result."""
        name = name or f"c{len(self.blocks)}"
        tool = more.pop("tool", "Read")
        arguments = more.pop("arguments", "{}")
        self.add(turn, "tool_call", size, f"{tool} {arguments}", call=name, tool=tool, **more)
        more.pop("response", None)
        return self.add(turn, "tool_result", tokens, text, call=name, tool=tool, role="tool", **more)

    def unit(self, number: int) -> int:
        """The unit of a block."""
        return self._grouper.unit_of[number]

    def trace(self, turns: int = 0) -> Trace:
        last = max(turns, *self.arrivals) if self.arrivals else turns
        return Trace(
            "made",
            "made",
            None,
            list(self.blocks),
            list(self.tokens),
            list(self._grouper.unit_of),
            list(self._grouper.units),
            [Turn(k, tuple(self.arrivals.get(k, ()))) for k in range(1, last + 1)],
            atoms=[()] * len(self.blocks),
        )

    def manager(self, window: int, policy: str, **more: Any) -> ContextWindowManager:
        return ContextWindowManager(window, policy=policy, trace=self.trace(), eviction=self.options, **more)

    def run(self, manager: ContextWindowManager, turns: int = 0, *, end: bool = False) -> list[Decision]:
        """Feed all turns; the last one is left open after its decision unless `end`."""
        decisions = []
        all_turns = self.trace(turns).turns
        for turn in all_turns:
            for number in turn.arrivals:
                manager.enter(number)
            decisions.append(manager.turn_start())
            manager.window.check()
            if end or turn is not all_turns[-1]:
                manager.turn_end(credits=turn.credits)
                manager.window.check()
        return decisions


def resident(manager: ContextWindowManager) -> list[int]:
    """Numbers of the blocks that are there, in their order."""
    window = manager.window
    return sorted(window.entries, key=window.place)


@pytest.fixture(scope="session")
def there() -> Callable[[ContextWindowManager], list[int]]:
    return resident


@pytest.fixture(scope="session")
def build() -> type[Builder]:
    return Builder
