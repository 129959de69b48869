"""The window as a runtime's message list sees it: one item per resident block, kept up to date from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ctxctl.model.window import Window

SIDES = {
    "system": "system",
    "tool_definitions": "tools",
    "assistant": "assistant",
    "thinking": "assistant",
    "tool_call": "assistant",
    "tool_result": "result",
}
"""Whose message a block is part of, by its kind; all other kinds are the user's."""

CLEARED, CUT, LOST, MADE = "cleared", "cut", "lost", "made"


class Sized(Protocol):
    """What remembers the size of its items."""

    size: float | None


class Item:
    """One resident block. number, unit: as in the window (unit -1: put in by the engine). side: `system`, `tools`,
    `user`, `assistant`, `result`, or `summary` and `notice` for what the engine put in. tokens: in the window; size:
    what the runtime's estimator makes of it, before rounding. mark: `cleared`, `cut`, or empty. text: what stands
    there; empty for a summary, which a model would write."""

    __slots__ = (
        "call_id",
        "exchange",
        "home",
        "kind",
        "mark",
        "message",
        "number",
        "response",
        "side",
        "size",
        "text",
        "tokens",
        "tool",
        "turn",
        "unit",
    )

    def __init__(self, number: int, side: str, kind: str, text: str, tokens: int, size: float, turn: int) -> None:
        self.number = number
        self.unit = -1
        self.side = side
        self.kind = kind
        self.message = 0
        self.response: str | None = None
        self.call_id: str | None = None
        self.tool: str | None = None
        self.exchange = 0
        self.turn = turn
        self.mark = ""
        self.text = text
        self.tokens = tokens
        self.size = size
        self.home: Sized | None = None

    def resize(self, size: float) -> None:
        """Its estimate changes, and with it that of its message."""
        self.size = size
        if self.home is not None:
            self.home.size = None


def item_of(window: Window, number: int, measure: Callable[[str, str, int], float]) -> Item:
    """The item of a resident block."""
    block, tokens, text = window.block(number), window.entries[number].tokens, window.text(number)
    picture = block.kind in ("image", "document") and block.call_id is not None
    side = "result" if picture else SIDES.get(block.kind, "user")
    item = Item(number, side, block.kind, text, tokens, measure(text, block.kind, tokens), window.turn)
    item.unit = window.unit_of[number] if number >= 0 else -1
    item.message, item.response, item.exchange = block.message, block.response_id, block.exchange
    item.call_id, item.tool = block.call_id, block.tool_name
    return item


class Items:
    """All resident blocks in the order of the runtime's list.

    It differs from the window's in one point: when a result is fetched again, its call stands in front of it, as if it
    had been made again; the window keeps the call where it was. version: changes with whatever is not an addition at
    the end.
    """

    def __init__(self, measure: Callable[[str, str, int], float]) -> None:
        self.version = 0
        self.list: list[Item] = []
        self.by_number: dict[int, Item] = {}
        self.measure = measure
        self._known = -1

    def enter(self, window: Window, number: int) -> Item:
        """A block came in: a new one, or one that is fetched again."""
        old = self.by_number.pop(number, None)
        if old is not None:  # what stood for it stays, as the engine's own
            old.number = -len(window.made)
            old.unit, old.call_id, old.response = -1, None, None
            if old.mark != MADE:
                old.side = "notice"
            self.by_number[old.number] = old
            self.version += 1
        item = item_of(window, number, self.measure)
        self.list.append(item)
        self.by_number[number] = item
        if number <= self._known:
            item.exchange = window.exchange
            if item.call_id is not None:
                self._gather(item.unit, window)
        self._known = max(self._known, number)
        return item

    def put(self, item: Item) -> None:
        """A block that the engine itself puts in at the end."""
        self.list.append(item)
        self.by_number[item.number] = item

    def _gather(self, unit: int, window: Window) -> None:
        """All of a unit stands together at the end, its call first."""
        mine = [self.by_number[b] for b in window.units[unit].blocks if b in self.by_number]
        mine = [i for i in mine if i.side in ("assistant", "result")]
        own = {id(i) for i in mine}
        self.version += 1
        self.list = [i for i in self.list if id(i) not in own] + mine

    def sync(self, window: Window) -> None:
        """Leave out what the client took back."""
        if len(self.list) != len(window.entries):
            self.list = [i for i in self.list if i.number in window.entries]
            self.by_number = {i.number: i for i in self.list}
            self.version += 1

    def remove(self, gone: set[int]) -> None:
        """Items leave."""
        self.version += 1
        self.list = [i for i in self.list if i.number not in gone]
        for number in gone:
            del self.by_number[number]
