"""Writing files of plain conversations: the records of the window change, all others keep their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ctxctl.errors import UsageError
from ctxctl.formats.base import Json
from ctxctl.formats.content import Piece
from ctxctl.formats.draft import Draft
from ctxctl.formats.fates import Fate, Fates
from ctxctl.formats.lines import Part, compact, document, each_part, editable, ended, write_as_it_was
from ctxctl.formats.openai_chat import holder_of


class Record:
    """One record of a conversation while it is rewritten.

    value: what will be written; changed in place. head: it, or an empty object where it is a bare list. lists: the
    lists of messages within it, as copies that lie in it. at: index of the next block within the line.
    """

    def __init__(self, draft: Draft, fates: Fates, line: int, value: Json, at: int) -> None:
        self.draft = draft
        self.fates = fates
        self.line = line
        self.at = at
        self.value = value
        self.head: dict[str, Json] = value if isinstance(value, dict) else {}
        self.lists: list[list[Json]] = []
        if isinstance(value, list):
            self.lists.append(value)
        elif (holder := holder_of(self.head)) is not None:
            self.lists.append(holder["messages"])
            if isinstance(self.head.get("preferred_output"), list):
                self.lists.append(self.head["preferred_output"])

    def take(self, kinds: Sequence[str]) -> list[Fate]:
        """The fates of the next blocks."""
        found = self.fates.take(self.line, self.at, kinds)
        self.at += len(kinds)
        return found

    def named(self, message: dict[str, Json], found: Sequence[Piece]) -> dict[str, Json]:
        """A message, whose pieces are the next blocks, with new ids where its calls need them."""
        return self.fates.named(message, self.line, self.at, found)

    def tools(self, body: dict[str, Json]) -> None:
        """Tool definitions are a block; they stay, or leave as a whole."""
        if isinstance(body.get("tools"), list) and body["tools"] and self.take(["tool_definitions"])[0] is False:
            del body["tools"]

    def system(self, found: Sequence[Piece]) -> list[Fate]:
        """The fates of a system prompt that stands outside of the messages."""
        return self.take([piece.kind for piece in found])

    def remember(self, messages: int) -> None:
        """Say in the record that usage stated in its first messages is of a window that is no more."""
        self.head["compaction"] = {
            "tokens_before": self.draft.before,
            "tokens_after": self.draft.after,
            **({"calibration": round(self.draft.ratio, 6)} if self.draft.ratio != 1 else {}),
            "messages": messages,
        }


def rewritten(draft: Draft, change: Callable[[Record], None]) -> Iterator[bytes]:
    """The bytes of a file whose records are conversations. change: edits a record that holds blocks of the window."""
    refuse_history(draft)
    if not draft.outcome:
        yield from write_as_it_was(draft)
        return
    fates = Fates(draft)
    for line, found in each_part(draft):
        at = 0
        for part in found:
            if not fates.touched(line):
                yield ended(part.data)
                continue
            record = Record(draft, fates, line, editable(part), at)
            change(record)
            at = record.at
            yield written(part, record.value)


def written(part: Part, value: Json) -> bytes:
    """A changed record in the manner of the original: one line, or a document of several."""
    return document(part.data, value) if b"\n" in part.data else ended(compact(value))


def refuse_history(draft: Draft) -> None:
    """Raises UsageError where the original lines are to stay in front, which these formats can't tell apart."""
    if draft.keep_history:
        raise UsageError(
            f"{draft.transcript.format} has no way to keep the original messages in front of a compaction",
            hint="leave out --keep-history: the input file is not changed",
        )
