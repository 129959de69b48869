"""What a transcript format is, and what all of them share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from ctxctl.errors import UsageError
from ctxctl.model.block import Block
from ctxctl.model.text import clean
from ctxctl.model.transcript import Diagnostic, Severity, Transcript
from ctxctl.registry import Registry

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft
    from ctxctl.formats.tail import Point

Emit = Callable[[Block], None]
"""Takes each block as it is read. Blocks are numbered by the order of these calls, from 0."""

Json = Any
"""A decoded JSON value."""

FORMATS: Registry[type[Format]] = Registry("format", "ctxctl.formats", "ctxctl.formats")

MOST_PER_CODE = 50
DEEPEST = 5000


class Diagnostics:
    """Collects what could not be used, at most 50 of a code; the rest is counted, so that damage in each of a million
    lines stays a short list. path: of the companion file that is being read."""

    def __init__(self) -> None:
        self._items: list[Diagnostic] = []
        self._seen: dict[str, int] = {}
        self.path: str | None = None

    def add(self, severity: Severity, code: str, message: str, line: int | None = None) -> None:
        """Record one; `code` is a stable word for scripts, `message` is for people."""
        n = self._seen[code] = self._seen.get(code, 0) + 1
        if n <= MOST_PER_CODE:
            self._items.append(Diagnostic(severity, code, message, line, self.path))

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Take over what another collector holds."""
        for item in items:
            self.add(item.severity, item.code, item.message, item.line)

    def count(self, code: str) -> int:
        """How often a code was added, also beyond the list."""
        return self._seen.get(code, 0)

    def items(self) -> tuple[Diagnostic, ...]:
        """By line, what concerns the whole file last, with an entry that counts what was left out."""
        more = [
            Diagnostic("info", code, f"{n - MOST_PER_CODE} more of {code!r} are not listed", count=n - MOST_PER_CODE)
            for code, n in self._seen.items()
            if n > MOST_PER_CODE
        ]
        ordered = sorted(self._items, key=lambda i: (i.path or "", i.line if i.line is not None else 1 << 62))
        return (*ordered, *more)


class Format(ABC):
    """One transcript format. The class says how to recognize and write it; an instance reads one file.

    name: as on the command line. title: for people. document: the whole file is one JSON value. priority: lower is
    asked first when detecting; a format whose rule is more specific has the lower number. behind: of a reader that goes
    on within a file, whether what it read changes what lies before (a rewind), so that the whole must be read.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    document: ClassVar[bool] = False
    priority: ClassVar[int] = 50
    summary_first: ClassVar[bool] = False
    """Whether a compaction's summary stands in front of everything that stays, wherever what it replaced stood."""
    appends: ClassVar[bool] = False
    """Whether the agent appends lines to the file, so that reading can go on where it ended (`ctxctl.formats.tail`)."""

    def __init__(self, path: str, emit: Emit, *, usage_only: bool = False) -> None:
        self.path = path
        self.emit = emit
        self.usage_only = usage_only
        self.diagnostics = Diagnostics()
        self.records = 0
        self.complete = True
        self.on_model: Callable[[str], None] | None = None
        self.on_cut: Callable[[], None] | None = None
        self.behind = False

    def saw_model(self, model: str) -> None:
        """Called at the first call of each model, while the file is still being read."""
        if self.on_model is not None:
            self.on_model(model)

    def saw_cut(self) -> None:
        """Called at each point where the agent replaced its whole window, while the file is still being read."""
        if self.on_cut is not None:
            self.on_cut()

    @classmethod
    @abstractmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        """Whether the first records of a file (at most 50, parsed) are of this format."""

    @abstractmethod
    def feed(self, record: Json, line: int) -> None:
        """Take the next record. line: 1-based. Only objects are fed, and lists where `document` is true."""

    @abstractmethod
    def finish(self) -> Transcript:
        """Everything but the blocks, which were emitted."""

    def go_on(self, point: Point) -> None:
        """Called before the first record where reading goes on at a point within the file. Only where `appends`."""
        raise ValueError(f"{self.name} is read from its beginning")

    def point(self) -> Point:
        """Where to begin so that what follows is read as if everything had been: at the newest call of the main
        thread. Asked after `finish`; only where `appends`."""
        raise ValueError(f"{self.name} is read from its beginning")

    def wanted(self, line: bytes) -> bool:
        """Whether a raw line can carry usage or a compaction; the others are not parsed when only usage is asked."""
        return True

    @classmethod
    def companions(cls, path: Path) -> list[Path]:
        """Further files that belong to the session at `path`, such as those of its sub-agents."""
        return []

    @classmethod
    def is_companion(cls, path: Path) -> bool:
        """Whether a file belongs to a session beside it and is read with that."""
        return False

    def begin_companion(self, path: Path) -> None:
        """The records fed from here on come from this companion; only called for what `companions` named."""
        raise ValueError(f"{self.name} has no companion files, so {path} is none")

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        """The bytes of a compacted transcript, line by line. Raises UsageError for what the format can't do."""
        raise UsageError(f"ctxctl does not write {cls.name}", hint="`ctxctl list formats` shows what it writes")

    @staticmethod
    def encode(record: Json) -> bytes:
        """One record as the agent itself writes it: compact separators, UTF-8 not escaped."""
        return dumps(record)


def dumps(value: Json) -> bytes:
    """Compact JSON in UTF-8, keys in their order. Lone surrogates become U+FFFD: UTF-8 has no form for them, and the
    escaped form makes providers refuse the request."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        import json
        import sys

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEEPEST))  # orjson reads deeper than it writes
        try:
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        finally:
            sys.setrecursionlimit(limit)
        return clean(text).encode()


# A string of a JSON text that is base64, alone or in a data: URI, as long as no identifier or hash is.
PAYLOAD = re.compile(r'"(?:data:[^",]{0,200},)?(?:[A-Za-z0-9+/_-]|\\[rn/]){512,}={0,2}(?:\\[rn])*"')


def part_text(part: Json) -> str:
    """A content part of a type that is not known, as JSON text, without what it carries as base64: no model is sent a
    file or a recording as text."""
    return PAYLOAD.sub('""', dumps(part).decode())


def word(record: dict[str, Json], key: str) -> str | None:
    """A field that should be a string; None when it is absent or anything else."""
    value = record.get(key)
    return value if isinstance(value, str) else None
