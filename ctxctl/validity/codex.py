"""The view of a Codex rollout: the response items that are in its window, as its reader tells."""

from __future__ import annotations

from ctxctl.formats.base import Json
from ctxctl.formats.codex_items import ITEMS as ITEM_TYPES
from ctxctl.formats.codex_items import type_of
from ctxctl.validity.findings import Counts
from ctxctl.validity.parts import CALL, OTHER, RESULT, Part, parts_of, role_of
from ctxctl.validity.view import ITEMS, Message, View


class CodexItems:
    """Collects items; a compaction with its replacement history starts anew. live: lines that hold blocks of the
    window; what a rollback took back is not among them."""

    def __init__(self, live: set[int], counts: Counts) -> None:
        self._live = live
        self._counts = counts
        self._messages: list[Message] = []
        self._start = 0

    def add(self, record: dict[str, Json], line: int) -> None:
        """Take a record of a rollout."""
        payload = record.get("payload")
        if not isinstance(payload, dict):
            if type_of(record) in ITEM_TYPES:
                self._item(record, line, None)
        elif record.get("type") == "response_item":
            self._item(payload, line, None)
        elif record.get("type") == "compacted":
            self._compacted(payload, line)

    def _item(self, item: dict[str, Json], line: int, number: int | None) -> None:
        parts = parts_of(item)
        if number is None:
            for part in parts:
                self._counts.calls += part.kind == CALL
                self._counts.results += part.kind == RESULT
        self._messages.append(Message(line, number, role_of(item, parts), parts))

    def _compacted(self, payload: dict[str, Json], line: int) -> None:
        history = payload.get("replacement_history")
        self._messages = []
        self._start = line
        if isinstance(history, list):
            for number, item in enumerate(history, 1):
                if isinstance(item, dict):
                    self._item(item, line, number)
        else:  # older versions: the user's messages and the summary
            self._messages.append(Message(line, None, "user", [Part(OTHER, ("message", -1))], fixed=True))

    def views(self) -> list[View]:
        """The one conversation that a rollout holds."""
        kept = [m for m in self._messages if m.line == self._start or m.line in self._live or not _paired(m)]
        return [View(ITEMS, kept)]


def _paired(message: Message) -> bool:
    return any(part.kind in (CALL, RESULT) for part in message.parts)
