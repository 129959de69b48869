"""What `check` can find: the codes, how bad each one is, and what was counted beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Level = Literal["info", "warning", "error"]
"""error: a provider refuses the transcript, or a strict reader loses part of it. warning: some do, or something is
missing that is not needed. info: nobody stumbles over it."""

CODES: dict[str, str] = {
    "damaged_line": "not JSON, as a whole or in part",
    "not_an_object": "a JSON value that is no object",
    "glued_records": "several records on one line",
    "nul_bytes": "zero bytes, as an interrupted write leaves them",
    "lone_surrogate": "half of a surrogate pair, which UTF-8 can't carry",
    "invalid_utf8": "bytes that are not UTF-8",
    "lenient_json": "NaN, Infinity or the like, which strict readers refuse",
    "torn_tail": "a last line that is only half written",
    "byte_order_mark": "a byte order mark in front of a record",
    "carriage_returns": "lines that end with CR LF",
    "no_final_newline": "a last line without its end",
    "blank_line": "a line with nothing on it",
    "orphan_call": "a call without a result, and the conversation went on",
    "orphan_result": "a result without its call",
    "result_not_adjacent": "a result that does not stand right behind its call",
    "pending_call": "a call at the end that waits for its result",
    "duplicate_call_id": "two calls with one id",
    "duplicate_result": "two results for one call",
    "missing_id": "a result that names no call",
    "blank_text": "a text block with nothing in it",
    "empty_message": "a message without content",
    "unsigned_thinking": "thinking without the signature that the provider asks for",
    "thinking_only": "an answer that is nothing but thinking",
    "first_not_user": "a conversation that does not begin with the user",
    "dangling_parent": "a reference to a record that is not in the file",
    "parent_cycle": "records that hang on each other in a circle",
    "parent_after_child": "a record that hangs on a later one",
    "duplicate_uuid": "two records with one id",
    "repeated_record": "a record that was written again",
}
"""Each code and what it stands for. Codes of the readers (`odd_shape`, `unknown_record`, ...) come on top."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    line: 1-based physical line, None when it concerns the whole file. number: 1-based message, where one line or
    document holds several. id: of the call, or the uuid of the record. other: the line (or the message) that it
    collides with. fixable: whether `repair` can do something about it.
    """

    code: str
    level: Level
    line: int | None
    message: str
    id: str | None = None
    number: int | None = None
    other: int | None = None
    fixable: bool = False


Report = Callable[[Finding], None]
"""Takes each finding as it is made."""


@dataclass(slots=True)
class Counts:
    """Sums over the file; calls and results of every thread and path, each once."""

    records: int = 0
    calls: int = 0
    results: int = 0
    orphan_calls: int = 0
    orphan_results: int = 0
    pending_calls: int = 0
    dangling_parents: int = 0
    duplicates: int = 0
    torn: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome for one transcript. format: its name; messages: that would be sent; findings: by line."""

    path: str
    format: str
    messages: int
    findings: tuple[Finding, ...]
    counts: Counts

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong; warnings alone don't make a transcript invalid."""
        return not any(f.level == "error" for f in self.findings)

    @property
    def repairable(self) -> bool:
        """Whether a repair has something to do and can make the transcript valid."""
        return any(f.fixable for f in self.findings) and all(f.fixable for f in self.findings if f.level == "error")


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was done. line: of the file as it was given, None when it concerns all of it."""

    code: str
    line: int | None
    action: str
    id: str | None = None
    number: int | None = None
