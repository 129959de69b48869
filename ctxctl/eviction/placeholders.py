"""What stands for tool results that a rule clears, and how much the waiting ones would free."""

from __future__ import annotations

from collections.abc import Callable

from ctxctl.eviction.base import Setting
from ctxctl.facts.condense import placeholder
from ctxctl.model.edits import Replace
from ctxctl.model.window import Window


class Placeholders:
    """Results that wait to become a line, the oldest first. Each is counted once in a session, and what would not get
    smaller is forgotten at once, so that a turn costs no more than what is new in it."""

    def __init__(self, setting: Setting) -> None:
        self._count: Callable[[str, str], int] = setting.count
        self._known: dict[int, tuple[str, int]] = {}
        self._waiting: dict[int, tuple[Replace, int]] = {}
        self._saved = 0

    def add(self, window: Window, number: int, reason: str) -> None:
        """A result may become a line from now on, unless it is pinned, cleared already, or no larger than the line."""
        entry = window.entries.get(number)
        if entry is None or entry.replaced or window.units[window.unit_of[number]].pinned is not None:
            return
        found = self._known.get(number)
        if found is None:
            block = window.blocks[number]
            text = placeholder(block, entry.tokens)
            # what is a placeholder already stays as it is
            size = entry.tokens if text == block.text else self._count(text, "tool_result")
            found = self._known[number] = text, size
        text, size = found
        if size < entry.tokens:
            self.remove(number)
            self._waiting[number] = Replace(number, text, size, reason), entry.tokens - size
            self._saved += entry.tokens - size

    def remove(self, number: int) -> bool:
        """A result waits no longer; returns whether it did."""
        found = self._waiting.pop(number, None)
        if found is not None:
            self._saved -= found[1]
        return found is not None

    def worth(self, window: Window, least: int) -> bool:
        """Whether anything waits, and would free so many tokens."""
        if not self._waiting or self._saved < least:
            return False
        # only now, so that turns in which nothing is due do not look at all that waits
        for number in [n for n in self._waiting if n not in window.entries or window.entries[n].replaced]:
            self.remove(number)
        return bool(self._waiting) and self._saved >= least

    def take(self) -> list[Replace]:
        """All that waits; nothing waits any longer."""
        changes = [change for change, _ in self._waiting.values()]
        self._waiting.clear()
        self._saved = 0
        return changes
