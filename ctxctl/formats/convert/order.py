"""From the messages of a recorded window to a chat that may be sent (rules V1-V7 of valid chats).

Each result stands in the one user message right after the message that called, in the order of the calls; ids are
unique; nothing is blank; the user speaks first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxctl.formats.message import Call, Losses, Message, Part, Result, Text
from ctxctl.model.text import NO_RESULT

CONTINUED = "[the conversation goes on from here]"

UNANSWERED = "calls without a result: answered with a note"
ORPHANS = "results without their call: carried as user messages"
IDS = "call ids: made, or made unique"
FIRST = "no user message at the start: one was added"
BLANK = "blank texts"
COPIES = "calls and results that repeat earlier ones"


@dataclass(slots=True)
class _Slot:
    """A message and, when it calls, the results of its calls by their place among its parts. copies: places of calls
    that repeat an earlier one, and go unless something answers them."""

    message: Message
    results: dict[int, Result]
    when: str | None
    copies: set[int]


Place = tuple[_Slot, int]


def settle(messages: Sequence[Message], losses: Losses) -> tuple[Message, ...]:
    """The messages in their order, as a valid chat."""
    slots: list[_Slot] = []
    matcher = _Matcher(losses)
    for message in messages:
        rest: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text) and not part.text.strip():
                losses.add(BLANK, int(bool(part.text)))
            elif not isinstance(part, Result):
                rest.append(part)
        slot = _Slot(replace(message, parts=tuple(rest)), {}, None, set())
        if message.role == "assistant":
            matcher.called(slot)
        orphans = [p for part in message.parts if isinstance(part, Result) for p in matcher.answered(part, message)]
        if rest:
            slots.append(slot)
        if orphans:
            slots.append(_Slot(Message("user", tuple(orphans), message.timestamp), {}, None, set()))
    return tuple(_first_user(_lay_out(slots, losses), losses))


class _Matcher:
    """Finds the call that each result answers."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._open: dict[str, list[Place]] = {}
        self._nameless: list[Place] = []
        self._seen: set[Call] = set()
        self._given: dict[str, str] = {}

    def called(self, slot: _Slot) -> None:
        """Take the calls of a message."""
        self._nameless = []
        for at, part in enumerate(slot.message.parts):
            if not isinstance(part, Call):
                continue
            if not part.id:
                self._nameless.append((slot, at))
                continue
            if part in self._seen:
                slot.copies.add(at)
                if self._open.get(part.id):
                    continue  # the earlier one is still waiting, and gets the result
            self._seen.add(part)
            self._open.setdefault(part.id, []).append((slot, at))

    def answered(self, result: Result, message: Message) -> list[Part]:
        """Hand a result to its call; what it says where there is none."""
        waiting = self._open.get(result.id) if result.id else self._nameless
        if waiting:
            # of calls that share an id the newest is meant; those without one are answered in their order
            slot, at = waiting.pop(-1 if result.id else 0)
            slot.results[at] = result
            slot.when = slot.when or message.timestamp
            if result.id:
                self._given[result.id] = result.text
            return []
        if result.id and self._given.get(result.id) == result.text:
            self._losses.add(COPIES)
            return []
        self._losses.add(ORPHANS, int(result.id is not None))
        return _as_user(result)


def _as_user(result: Result) -> list[Part]:
    said: list[Part] = [Text(result.text)] if result.text.strip() else []
    return [*said, *result.media]


def _lay_out(slots: Sequence[_Slot], losses: Losses) -> list[Message]:
    """Messages with their results behind them, under unique ids."""
    ids = _UniqueIds(slots)
    found: list[Message] = []
    for number, slot in enumerate(slots):
        parts: list[Part] = []
        results: list[Part] = []
        pending = not slot.results and number == len(slots) - 1
        for at, part in enumerate(slot.message.parts):
            if not isinstance(part, Call):
                parts.append(part)
                continue
            result = slot.results.get(at)
            if result is None and at in slot.copies:
                losses.add(COPIES)
                continue
            id_ = ids.of(part.id)
            losses.add(IDS, int(id_ != part.id))
            parts.append(replace(part, id=id_))
            if result is not None:
                results.append(replace(result, id=id_, name=result.name or part.name))
            elif not pending:
                losses.add(UNANSWERED)
                results.append(Result(id_, NO_RESULT, True, (), part.name))
        if parts:
            found.append(replace(slot.message, parts=tuple(parts)))
        if results:
            found.append(Message("user", tuple(results), slot.when))
    return found


class _UniqueIds:
    """Gives each call an id of its own: the recorded one where it is the first of that id."""

    def __init__(self, slots: Sequence[_Slot]) -> None:
        self._known = {p.id for slot in slots for p in slot.message.parts if isinstance(p, Call) and p.id}
        self._used: set[str] = set()
        self._count = 0

    def of(self, recorded: str | None) -> str:
        if recorded and recorded not in self._used:
            self._used.add(recorded)
            return recorded
        stem = f"{recorded}_" if recorded else "call_"
        while True:
            self._count += 1
            made = f"{stem}{self._count}"
            if made not in self._known and made not in self._used:
                self._used.add(made)
                return made


def _first_user(messages: list[Message], losses: Losses) -> list[Message]:
    first = next((n for n, m in enumerate(messages) if m.role != "system"), None)
    if first is None or messages[first].role == "user":
        return messages
    losses.add(FIRST)
    return [*messages[:first], Message("user", (Text(CONTINUED),), messages[first].timestamp), *messages[first:]]


_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def anthropic_ids(messages: Sequence[Message], losses: Losses) -> tuple[Message, ...]:
    """The messages with ids that the Messages API takes: letters, digits, _ and -."""
    calls = [p.id for m in messages for p in m.parts if isinstance(p, Call) and p.id]
    refused = [id_ for id_ in calls if _REFUSED.search(id_)]
    if not refused:
        return tuple(messages)
    taken = set(calls)
    new: dict[str, str] = {}
    for id_ in refused:
        made = plain = _REFUSED.sub("_", id_)
        count = 1
        while made in taken:
            count += 1
            made = f"{plain}_{count}"
        taken.add(made)
        new[id_] = made
    losses.add(IDS, len(new))

    def renamed(part: Part) -> Part:
        return replace(part, id=new[part.id]) if isinstance(part, Call | Result) and part.id in new else part

    return tuple(replace(m, parts=tuple(map(renamed, m.parts))) for m in messages)
