"""Carrying out plans in formats of plain conversations and in Codex rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from ctxctl.formats.base import Json, dumps
from ctxctl.formats.store import LineStore
from ctxctl.formats.write import write
from ctxctl.model.transcript import RawLine, Transcript
from ctxctl.validity.conversations import messages_list
from ctxctl.validity.findings import Repair
from ctxctl.validity.plan import BEGINNING, Outcome, carry_out, plan_for
from ctxctl.validity.view import Message, View

Change = Callable[[int, bytes], Sequence[bytes]]
"""What stands in place of a line, given its number and bytes."""

Stage = tuple[Change, list[Repair]]


def mend_lists(transcript: Transcript, views: list[View], store: LineStore) -> Stage | None:
    """Conversations that stand in lists, one in each record or document."""
    repairs: list[Repair] = []
    changed: dict[int, bytes] = {}
    for view in views:
        plan = plan_for(view)
        if not plan:
            continue
        repairs += plan.repairs
        line = view.messages[0].line
        data = store.get(line)
        record = orjson.loads(data)
        found = messages_list(record)
        assert found is not None  # only what stands in one is changed
        source = list(found)

        def raw(index: int, view: View = view, source: list[Json] = source) -> dict[str, Json]:
            message: dict[str, Json] = source[_number(view.messages[index]) - 1]
            return message

        outcome = carry_out(plan, raw)
        found[:] = _list_after(view.messages, source, outcome, raw)
        alone = replace(transcript, raw=(RawLine(line, data),))
        changed[line] = b"".join(write(alone, {line: record}))
    return (lambda line, data: (changed.get(line, data),), repairs) if repairs else None


def _number(message: Message) -> int:
    assert message.number is not None
    return message.number


def _list_after(
    messages: Sequence[Message], source: list[Json], outcome: Outcome, raw: Callable[[int], dict[str, Json]]
) -> list[Json]:
    """A list of messages with the changes; what is no message keeps its place. messages: those that stand in it, by
    their index in the conversation. raw: any message of the conversation."""
    moved = {item for items in outcome.after.values() for item in items if isinstance(item, int)}
    at = {_number(message): index for index, message in enumerate(messages)}
    made: list[Json] = []

    def now(index: int) -> Json:
        return outcome.edited[index] if index in outcome.edited else raw(index)

    for number, value in enumerate(source, 1):
        index = at.get(number)
        if index is None:
            made.append(value)
            continue
        if index == outcome.opening:
            made.append({"role": "user", "content": BEGINNING})
        if index not in moved and (message := now(index)) is not None:
            made.append(message)
        for item in outcome.after.get(index, ()):
            made.append(now(item) if isinstance(item, int) else item)
    return made


def mend_lines(view: View, store: LineStore, *, codex: bool) -> Stage | None:
    """Messages that are lines: chat with a message per line, and items of a Codex rollout."""
    plan = plan_for(view)
    if not plan:
        return None
    records = _Records(view, store, codex)
    outcome = carry_out(plan, records.message)
    changed: dict[int, list[bytes]] = {}
    moved = {item for items in outcome.after.values() for item in items if isinstance(item, int)}
    lists: set[int] = set()
    for index in sorted({*outcome.edited, *outcome.after, *moved}):
        message = view.messages[index]
        if message.number is not None:
            lists.add(message.line)
            continue
        lines: list[bytes] = []
        if index not in moved:
            lines += records.line(index, outcome, index)
        for item in outcome.after.get(index, ()):
            lines += records.line(item, outcome, index) if isinstance(item, int) else [records.new(index, item)]
        changed[message.line] = lines
    for line in lists:
        changed[line] = [records.history(line, outcome)]
    return (lambda line, data: changed.get(line, (data,))), plan.repairs


class _Records:
    """Records of lines, and how they are written again."""

    def __init__(self, view: View, store: LineStore, codex: bool) -> None:
        self.view, self.store, self.codex = view, store, codex

    def _record(self, index: int) -> dict[str, Json]:
        found: dict[str, Json] = orjson.loads(self.store.get(self.view.messages[index].line))
        return found

    def message(self, index: int) -> dict[str, Json]:
        """The message of a line, or of a replacement history."""
        record, number = self._record(index), self.view.messages[index].number
        payload = record.get("payload")
        if not self.codex or not isinstance(payload, dict):
            return record
        found: dict[str, Json] = payload if number is None else payload["replacement_history"][number - 1]
        return found

    def _wrap(self, index: int, message: dict[str, Json]) -> bytes:
        record = self._record(index)
        if self.codex and isinstance(record.get("payload"), dict):
            message = {**record, "payload": message}
        return dumps(message) + b"\n"

    def line(self, index: int, outcome: Outcome, host: int) -> list[bytes]:
        """A message's line as it is now; nothing when it left. host: the message in the place of which it stands."""
        listed = self.view.messages[index].number is not None
        if index not in outcome.edited and not listed:
            return [self.store.get(self.view.messages[index].line)]
        message = outcome.edited[index] if index in outcome.edited else self.message(index)
        return [] if message is None else [self._wrap(host if listed else index, message)]

    def new(self, index: int, message: dict[str, Json]) -> bytes:
        """The line of a message that is new, in the envelope of another."""
        return self._wrap(index, message)

    def history(self, line: int, outcome: Outcome) -> bytes:
        """A compaction of Codex with a changed replacement history."""
        record = orjson.loads(self.store.get(line))
        # the items of a history stand first in the conversation, so that their indexes are the same in both
        items = [m for m in self.view.messages if m.line == line and m.number is not None]
        source = record["payload"]["replacement_history"]
        record["payload"]["replacement_history"] = _list_after(items, source, outcome, self.message)
        return dumps(record) + b"\n"
