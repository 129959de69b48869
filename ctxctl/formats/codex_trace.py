"""Where each item of a Codex rollout lies, and what the lines between them are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ctxctl.formats.base import Diagnostics, Json, word
from ctxctl.formats.codex import ANSWERS
from ctxctl.formats.codex_items import ITEMS, OUTPUTS, item_pieces, type_of
from ctxctl.formats.draft import Draft, Normalised
from ctxctl.formats.lines import Part, each_part, parts

SHOWN = {"user_message": "message", "agent_message": "message", "agent_reasoning": "text"}
"""Events that repeat an item for the screen, and the field that holds its text."""
SPOKEN = {"user": "user_message", "assistant": "agent_message"}
STARTS = ("task_started", "turn_started")
KNOWN = frozenset(("response_item", "compacted", "token_usage_record"))

Place = tuple[int, int]
"""A record: line, and which of its records."""


class Item(NamedTuple):
    """An item of the rollout. order: of all. at: its record. kinds: of its blocks in the window, none where it is not
    in that; offset: index of the first of them within the line. origin: `item`, `history` (of a replacement history, at
    `position`), `summary` (the message of a compaction without one) or `meta` (the instructions in the session's head).
    output, answer, reasoning: what it is. shown: hashes of what events repeat of it."""

    order: int
    at: Place
    kinds: tuple[str, ...]
    offset: int = 0
    origin: str = "item"
    position: int = 0
    output: bool = False
    answer: bool = False
    reasoning: bool = False
    shown: tuple[int, ...] = ()


class Rollout:
    """What the lines of a rollout are.

    items: all of them; item_of: by number of block, those of the window. head: the session's own session_meta. turns:
    turn_context lines, and events that begin a turn. events: what repeats an item, with the hash of its text. others:
    records of types that are not known; whoever wrote them may need them. enveloped: not of before September 2025.
    """

    def __init__(self, draft: Draft) -> None:
        self.items: list[Item] = []
        self.item_of: dict[int, int] = {}
        self.head: Place | None = None
        self.turns: list[tuple[Place, str]] = []
        self.events: list[tuple[Place, int]] = []
        self.others: list[Place] = []
        self.enveloped = False
        self._draft = draft
        self._odd: set[int] = set()
        self._got: tuple[int, list[Part]] = (0, [])
        self._window: dict[int, list[int]] = {}
        for number in draft.transcript.live:
            if number in draft.blocks:
                self._window.setdefault(draft.blocks[number].source.line, []).append(number)
        scratch = replace(draft, normalised=Normalised(), notes=[])
        for line, found in each_part(scratch):
            if len(found) > 1 or not found[0].plain:
                self._odd.add(line)
            offset = 0
            for number, part in enumerate(found):
                if isinstance(part.value, dict):
                    offset = self._sort(part.value, (line, number), offset)
        draft.notes.extend(scratch.notes)

    def part(self, at: Place) -> Part:
        """A record, as it will be written."""
        line, number = at
        if self._got[0] != line:
            self._got = line, parts(self._draft.store.get(line), line, self._draft, Diagnostics())
        return self._got[1][number]

    def data(self, at: Place) -> bytes:
        """The bytes of a record with a line end."""
        if at[0] in self._odd:
            return self.part(at).data + b"\n"
        data = self._draft.store.get(at[0])
        body = data.rstrip(b"\r\n")
        self._draft.normalised.crlf += data.endswith((b"\r\n", b"\r"))
        return body + b"\n"

    def _sort(self, record: dict[str, Json], at: Place, offset: int) -> int:
        """Note what a record is; returns the index of the next block on its line."""
        type_, payload = record.get("type"), record.get("payload")
        if type(payload) is not dict:
            return self._bare(record, at, offset)
        self.enveloped = True
        if type_ == "response_item":
            return self._item(payload, at, offset)
        if type_ == "event_msg":
            event = word(payload, "type") or ""
            if event in SHOWN:
                text = payload.get(SHOWN[event])
                self.events.append((at, hash((event, text)) if isinstance(text, str) else 0))
            elif event in STARTS:
                self.turns.append((at, "event"))
        elif type_ == "turn_context":
            self.turns.append((at, "context"))
        elif type_ == "session_meta":
            self._meta(at)
        elif type_ == "compacted":
            self._compacted(payload, at)
        elif type_ not in KNOWN:
            self.others.append(at)
        return offset

    def _bare(self, record: dict[str, Json], at: Place, offset: int) -> int:
        """A line of before September 2025: an item without envelope, the head, or a mark of the recorder."""
        if word(record, "type") in ITEMS:
            return self._item(record, at, offset)
        if self.head is None and "id" in record:
            self._meta(at)
        else:
            self.others.append(at)
        return offset

    def _meta(self, at: Place) -> None:
        if self.head is None:
            self.head = at
            self._add(self._window.get(at[0], [])[:1], at, "meta")

    def _item(self, item: dict[str, Json], at: Place, offset: int) -> int:
        type_ = type_of(item)
        own = self._window.get(at[0], [])
        end = offset
        if at[0] in self._odd:
            end += sum(1 for _ in item_pieces(item))
            blocks = self._draft.blocks
            own = [number for number in own if offset <= blocks[number].source.index < end]
        elif not own and type_ == "message" and not item.get("content"):
            return end  # says nothing
        self._add(own, at, "item", offset=offset, item=item)
        return end

    def _compacted(self, payload: dict[str, Json], at: Place) -> None:
        """Items of a replacement history that are new gave blocks, in their order; the others are those of before."""
        own = self._window.get(at[0], [])
        history = payload.get("replacement_history")
        if not isinstance(history, list):
            self._add(own[:1], at, "summary")
            return
        blocks, next_ = self._draft.blocks, 0
        for position, item in enumerate(history):
            if next_ == len(own):
                break
            if not isinstance(item, dict):
                continue
            found = [piece.text for piece in item_pieces(item)]
            mine = own[next_ : next_ + len(found)]
            if found and [blocks[number].text for number in mine] == found:
                offset = blocks[mine[0]].source.index
                self._add(mine, at, "history", offset=offset, position=position, item=item)
                next_ += len(found)

    def _add(
        self,
        numbers: list[int],
        at: Place,
        origin: str,
        *,
        offset: int = 0,
        position: int = 0,
        item: dict[str, Json] | None = None,
    ) -> None:
        type_ = type_of(item) if item is not None else None
        order = len(self.items)
        self.items.append(
            Item(
                order,
                at,
                tuple([self._draft.blocks[number].kind for number in numbers]),
                offset,
                origin,
                position,
                type_ in OUTPUTS,
                item is not None and (type_ in ANSWERS or item.get("role") == "assistant"),
                type_ == "reasoning",
                tuple(_shown(item, type_)) if origin == "item" and item is not None else (),
            )
        )
        for number in numbers:
            self.item_of[number] = order


def _shown(item: dict[str, Json], type_: str | None) -> Iterator[int]:
    """Hashes of what events repeat of an item."""
    if type_ == "reasoning":
        lists = [item[key] for key in ("summary", "content") if isinstance(item.get(key), list)]
        yield from (hash(("agent_reasoning", text)) for found in lists for text in _texts(found))
    elif type_ == "message":
        event = SPOKEN.get(str(item.get("role")))
        content = item.get("content")
        if event is not None:
            texts = [content] if isinstance(content, str) else list(_texts(content))
            yield from (hash((event, text)) for text in texts)
            if len(texts) > 1:
                yield hash((event, "".join(texts)))
                yield hash((event, "\n".join(texts)))


def _texts(found: Json) -> Iterator[str]:
    for part in found if isinstance(found, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
