"""Items sorted into what a runtime counts: messages, items, or events."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.items import Item, Items
from ctxctl.simulate.presets.schema import Preset


class Group:
    """One message, item or event. side: as of its items. It has none when it is a system prompt that the file does not
    hold. size: what the runtime's estimator makes of it, None until asked or when it changed."""

    __slots__ = ("items", "side", "size")

    def __init__(self, side: str, items: list[Item]) -> None:
        self.side = side
        self.items = items
        self.size: float | None = None

    @property
    def calls(self) -> list[Item]:
        """The tool calls in it."""
        return [i for i in self.items if i.kind == "tool_call" and i.side == "assistant"]

    @property
    def prompt(self) -> bool:
        """Whether a user typed it: a user's message without results."""
        return self.side == "user" and any(i.kind == "user_message" for i in self.items)


class Grouping:
    """All items in groups; what came in since last asked is added to them.

    Tool definitions are in none, nor is the system prompt where the runtime keeps it apart: `apart` holds them.
    """

    def __init__(self, preset: Preset) -> None:
        self._preset = preset
        self._apart = frozenset(("tools",) if preset.system else ("tools", "system"))
        self._version = -1
        self._count = 0
        self._groups: list[Group] = []
        self._last: Item | None = None
        self.apart: list[Item] = []

    def groups(self, items: Items, hidden_system: bool) -> list[Group]:
        """What the preset counts, in order. hidden_system: there is one although the file does not hold it."""
        if items.version != self._version or len(items.list) < self._count:
            self._version, self._count, self._last = items.version, 0, None
            self._groups, self.apart = [], []
        for item in items.list[self._count :]:
            self._add(item)
        self._count = len(items.list)
        if hidden_system and self._preset.system and not any(g.side == "system" for g in self._groups[:2]):
            self._groups.insert(0, Group("system", []))
        return self._groups

    def _add(self, item: Item) -> None:
        if item.side in self._apart:
            self.apart.append(item)
            return
        if self._last is not None and self._joins(self._last, item):
            group = self._groups[-1]
            group.items.append(item)
            group.size = None
        else:
            group = Group(item.side, [item])
            self._groups.append(group)
        item.home = group
        self._last = item

    def _joins(self, last: Item, item: Item) -> bool:
        """Whether two neighbours are parts of one message, or of one event: a call with what was said before it, a
        result, any other message."""
        unit = self._preset.unit
        if unit == "item" or last.side != item.side or item.number < 0 or last.number < 0:
            return False
        if item.side == "result":
            together = unit == "message" and self._preset.results == "joined"
            return together or (last.call_id == item.call_id and item.call_id is not None)
        if unit == "event" and last.kind == "tool_call":
            return False
        if item.side == "assistant" and item.response is not None:
            return last.response == item.response
        return last.message == item.message


def head_of(groups: Sequence[Group]) -> int:
    """How many system messages stand in front."""
    return next((n for n, g in enumerate(groups) if g.side != "system"), len(groups))
