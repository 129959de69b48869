"""Reading on: what an agent appended to its file since it was last read.

A reader goes on at a `Point`: the first line of the newest model call, so that lines which belong to the same response,
and the results of its calls, find it. What lies before the point is not looked at.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ctxctl.errors import InputError
from ctxctl.formats.base import FORMATS, Emit, Format
from ctxctl.formats.read import feed_lines
from ctxctl.formats.streams import Progress, open_stream
from ctxctl.model.transcript import Transcript

MARKED = 4096
"""Bytes before an offset by which a file is known again."""
HEAD = 50
"""Lines in which a session states its id."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a file where reading can go on. line, turn, exchange: lines, and calls and prompts of the main thread,
    before it; blocks: of what was read, before it. leaves: ids of the newest records before it, on the live path. more:
    what else the format needs, in plain JSON values."""

    line: int = 0
    turn: int = 0
    exchange: int = 0
    blocks: int = 0
    leaves: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


class Offsets:
    """Takes lines as they are read, and tells where each began. whole: where the last line ended that has an end;
    lines: how many have. end: of all bytes; count: of all lines."""

    def __init__(self, offset: int = 0, line: int = 0) -> None:
        self._first = line
        self._starts = array("q")
        self.end = self.whole = offset
        self.lines = line

    def add(self, data: bytes) -> None:
        """The next line, with its end."""
        self._starts.append(self.end)
        self.end += len(data)
        if data.endswith(b"\n"):
            self.whole = self.end
            self.lines = self.count

    @property
    def count(self) -> int:
        return self._first + len(self._starts)

    def start(self, line: int) -> int:
        """Where a line began, by its 1-based number; the end for the one that would come next."""
        at = line - 1 - self._first
        return self._starts[at] if at < len(self._starts) else self.end


def scan_on(
    path: str,
    emit: Emit,
    chosen: type[Format],
    offset: int,
    point: Point,
    offsets: Offsets,
    *,
    id_: str | None = None,
    progress: Progress | None = None,
) -> tuple[Transcript, Format]:
    """Read a plain file of a format that `appends` from an offset on, handing each block to `emit`. Blocks and calls
    are numbered from 0; lines, turns and exchanges go on. Raises InputError when it can't be read."""
    with open_stream(path) as stream:
        if not stream.plain:
            raise InputError("only a plain file can be read on", path=path)
        stream.seek(offset)
        reader = chosen(path, emit)
        if offset:
            reader.id = id_  # type: ignore[attr-defined]
            reader.go_on(point)
        feed_lines(reader, stream, stream.lines(), point.line, store=offsets, progress=progress)
    transcript = reader.finish()
    if offset:  # what records hang on may lie before
        kept = tuple(item for item in transcript.diagnostics if item.code != "dangling_parent")
        transcript = replace(transcript, diagnostics=kept)
    return transcript, reader


def next_line(path: str, offset: int) -> int:
    """Where the first line begins that starts at an offset or behind it, of a plain file."""
    if offset <= 0:
        return 0
    with open_stream(path) as stream:
        stream.seek(offset - 1)
        return offset - 1 + len(next(stream.lines(), b""))


def mark_at(path: str, offset: int) -> str:
    """SHA-256 in hex of up to 4,096 bytes before an offset of a file; empty where they can't be read."""
    import hashlib  # a status line has no use for it, and no time

    try:
        with open(path, "rb") as file:
            start = max(0, offset - MARKED)
            file.seek(start)
            data = file.read(offset - start)
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(data).hexdigest() if len(data) == offset - start else ""


def plain_size(path: str) -> int | None:
    """Bytes of a plain file, None for a pipe, a compressed file and what is no file."""
    if path == "-" or not os.path.isfile(path):
        return None
    with open_stream(path) as stream:
        return stream.size if stream.plain else None


def id_of(path: str, name: str) -> str | None:
    """The id that a plain file of a format states in its first lines, None when it states none there."""
    from ctxctl.formats.base import Diagnostics
    from ctxctl.formats.jsonlines import parse_line

    reader = FORMATS.get(name)(path, lambda block: None)
    with open_stream(path) as stream:
        for number, data in enumerate(stream.lines(), 1):
            for value in parse_line(data, number, Diagnostics()):
                if isinstance(value, dict):
                    reader.feed(value, number)
            found: str | None = getattr(reader, "id", None)
            if found or number >= HEAD:
                return found or None
    return None


def format_of(path: str) -> type[Format] | None:
    """The format of a plain file of JSON lines, by its first ones; None for a document. Raises NotATranscriptError."""
    from ctxctl.formats.base import Diagnostics, Json
    from ctxctl.formats.detect import detect
    from ctxctl.formats.jsonlines import parse_line

    records: list[Json] = []
    with open_stream(path) as stream:
        for number, data in enumerate(stream.lines(), 1):
            records.extend(parse_line(data, number, Diagnostics()))
            if number >= HEAD or (not records and data.strip()):
                break
    return detect(records, path) if any(isinstance(record, dict) for record in records) else None
