"""What a preset decided at one call, gathered from all its steps into one set of edits."""

from __future__ import annotations

from collections.abc import Iterable

from ctxctl.eviction.base import Setting
from ctxctl.model.edits import Drop, Edits, Insert, Replace
from ctxctl.model.window import Window
from ctxctl.simulate.presets.items import MADE, Item, Items


class Changes:
    """Changes the items at once, so that the next step sees them, and tells the engine at the end."""

    def __init__(self, window: Window, items: Items, setting: Setting, reason: str, keep_sizes: bool = False) -> None:
        self.window = window
        self.items = items
        self.setting = setting
        self.reason = reason
        self._keep_sizes = keep_sizes
        self._replaced: dict[int, tuple[str | None, int, str | None]] = {}
        self._dropped: list[Item] = []
        self._inserted: list[tuple[Item, str | None, str]] = []
        self.helper: list[tuple[int, int, bool]] = []

    @property
    def acted(self) -> bool:
        """Whether anything changed."""
        return bool(self._replaced or self._dropped or self._inserted)

    def count(self, text: str, kind: str) -> int:
        """Tokens of a text that is put in."""
        return self.setting.count(text, kind)

    def rewrite(self, item: Item, text: str, mark: str, *, cut: bool = False) -> None:
        """An item's text becomes another. cut: a part of what it was, which can't have more tokens than that."""
        tokens = self.count(text, item.kind)
        self.resize(item, text, min(tokens, item.tokens) if cut else tokens, mark)

    def resize(self, item: Item, text: str | None, tokens: int, mark: str) -> None:
        """An item's text becomes another of known size; None: its text is not known."""
        item.text, item.tokens, item.mark = text or "", tokens, mark
        if not self._keep_sizes:
            item.resize(self.items.measure(item.text, item.kind, tokens) if text is not None else float(tokens))
        self._note(item, text, None)

    def turn_into(self, item: Item, side: str, text: str | None, tokens: int) -> None:
        """An item becomes a summary or a notice: what it was is gone, and this stands in its place."""
        item.side, item.text, item.tokens, item.mark = side, text or "", tokens, MADE
        item.kind = {"system": "summary", "summary": "summary", "assistant": "assistant"}.get(side, "memory_injection")
        item.call_id = item.response = None
        item.resize(self.items.measure(text, "summary", tokens) if text else float(tokens))
        self.items.version += 1
        self._note(item, text, item.kind)

    def _note(self, item: Item, text: str | None, kind: str | None) -> None:
        if item.number in self.window.entries:
            self._replaced[item.number] = (text, item.tokens, kind)
            return
        for at, (new, _, role) in enumerate(self._inserted):
            if new is item:
                self._inserted[at] = (item, text, role)

    def drop(self, items: Iterable[Item]) -> None:
        """Items leave."""
        gone = {i.number: i for i in items}
        if not gone:
            return
        for number in gone:
            self._replaced.pop(number, None)
        self._dropped += [i for n, i in gone.items() if n in self.window.entries]
        self._inserted = [row for row in self._inserted if row[0].number not in gone]
        self.items.remove(set(gone))

    def insert(self, side: str, kind: str, role: str, text: str | None, tokens: int) -> Item:
        """Something new at the end of the window."""
        number = -len(self.window.made) - len(self._inserted) - 1
        size = self.items.measure(text, kind, tokens) if text else float(tokens)
        item = Item(number, side, kind, text or "", tokens, size, self.window.turn)
        item.exchange, item.mark = self.window.exchange, MADE
        self._inserted.append((item, text, role))
        self.items.put(item)
        return item

    def edits(self) -> Edits:
        """All of it, for the engine."""
        by_unit: dict[int, list[Item]] = {}
        for item in self._dropped:
            by_unit.setdefault(item.unit if item.unit >= 0 else item.number, []).append(item)
        entries = self.window.entries
        drops = [
            Drop(unit, tuple(i.number for i in group), sum(entries[i.number].tokens for i in group), self.reason)
            for unit, group in by_unit.items()
        ]
        replaces = [
            Replace(number, text, tokens, self.reason, kind) for number, (text, tokens, kind) in self._replaced.items()
        ]
        inserts = [Insert(item.kind, role, text, item.tokens, self.reason) for item, text, role in self._inserted]
        return Edits(drops, replaces, inserts, tuple(self.helper), self.reason)
