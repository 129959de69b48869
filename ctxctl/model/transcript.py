"""A transcript: what one agent session wrote, as read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxctl.model.block import MAIN, Block
from ctxctl.model.usage import Usage

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that a reader could not use or had to bridge. line: 1-based, None when it concerns the whole file;
    path: of a companion file, when it lies there; count: how many this entry stands for."""

    severity: Severity
    code: str
    message: str
    line: int | None = None
    path: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Compaction:
    """A point where the agent itself replaced or cleared part of its window.

    turn: the first model call after it. at: index of the first block that came after it. kind: `full` (summary),
    `micro` (old tool results cleared), `rollback` (turns dropped). kept: indexes of earlier blocks that stay, in the
    order in which they follow the summary. cleared: indexes of blocks whose content is gone. back_to: of a rollback,
    the first block that left: the window is again what it was before it. before, after: tokens of the window as the
    transcript states them. abandoned: it lies on a path that a rewind left behind.
    """

    turn: int
    at: int
    kind: Literal["full", "micro", "rollback"]
    line: int
    trigger: str | None = None
    before: int | None = None
    after: int | None = None
    kept: tuple[int, ...] = ()
    cleared: tuple[int, ...] = ()
    back_to: int | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One path of a conversation that was rewound, with what it shares with the others. leaf: id of its last record;
    messages: message records on it; calls: indexes into `Transcript.usage`."""

    leaf: str
    live: bool
    messages: int
    calls: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """Message records of the main thread by role, and of all sub-agents together."""

    user: int = 0
    assistant: int = 0
    sidechain: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """One of several independent conversations in a file. first, last: range of its blocks, last exclusive."""

    line: int
    first: int
    last: int
    messages: int
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Overflow:
    """The provider refused a request as too long, or stopped at the window's end."""

    turn: int
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class RawLine:
    """The bytes of one physical line (with its end), or of a whole JSON document."""

    line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one file holds.

    main: name of the thread that the window belongs to.
    blocks: every content block in file order; empty when the file was scanned (they were handed out instead).
    live: indexes of the blocks in the window now, in the order in which the model sees them.
    cleared: those of them whose content was replaced by a placeholder.
    superseded: blocks that a later copy repeats; they count nowhere.
    order: ids of the message records in the window.
    usage: one per model call of any thread, in file order.
    call_keys: beside usage, equal for copies of one call in several files (within one process); empty where a format
    has no ids for calls.
    abandoned: indexes of calls that a rewind left behind.
    parts: first block of each sub-agent file, and the prefix of its ids.
    window: the context window that the transcript itself states, tokens.
    context_has_answer: whether the reported context of a call holds its answer too.
    stated: tokens of blocks that the provider counted and whose text is not in the file (encrypted reasoning).
    dropped: blocks that the provider itself leaves out, from block `at` on.
    ratio: of reported to counted tokens, as a compaction stated it whose calls can't tell it any more.
    complete: False when the last line is torn.
    raw: the lines as read, when the file may be written back.
    side: what the reader leaves for the writer of the same format, None where that needs nothing.
    """

    id: str | None
    format: str
    path: str
    main: str = MAIN
    model: str | None = None
    models: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    live: tuple[int, ...] = ()
    cleared: frozenset[int] = frozenset()
    superseded: frozenset[int] = frozenset()
    order: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()
    call_keys: Sequence[int] = ()
    inherited: int = 0
    compactions: tuple[Compaction, ...] = ()
    branches: tuple[Branch, ...] = ()
    abandoned: frozenset[int] = frozenset()
    overflows: tuple[Overflow, ...] = ()
    conversations: tuple[Conversation, ...] = ()
    threads: tuple[str, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()
    records: int = 0
    exchanges: int = 0
    messages: MessageCounts = field(default_factory=MessageCounts)
    unreachable: int = 0
    errors: int = 0
    complete: bool = True
    window: int | None = None
    context_has_answer: bool = False
    stated: Mapping[int, int] = field(default_factory=dict)
    dropped: tuple[tuple[int, tuple[int, ...]], ...] = ()
    cwd: str | None = None
    ratio: float | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    raw: tuple[RawLine, ...] = ()
    side: object = field(default=None, repr=False, compare=False)

    @property
    def full_compactions(self) -> int:
        """How often the whole window was replaced by a summary, on whatever path."""
        return sum(1 for c in self.compactions if c.kind == "full")
