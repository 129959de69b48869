"""A file that is read while its agent writes it: each line once, and at any time what has come so far as a transcript.

The reader stays, so what is known after reading on is what reading the whole would tell.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from ctxctl.errors import InputError
from ctxctl.formats.base import Diagnostics, Emit, Format
from ctxctl.formats.read import LOOK_AT, feed_lines
from ctxctl.formats.streams import Stream, open_stream
from ctxctl.formats.tail import MARKED
from ctxctl.model.transcript import Transcript


class Growing:
    """A plain file of a format that `appends`. usage_only: lines that can't carry usage or a compaction are skipped.
    helper: it is a sub-agent's file that belongs to a session. offset: where the last whole line ended; lines: how many
    were read; reader: what read them."""

    def __init__(
        self, path: str, emit: Emit, chosen: type[Format], *, usage_only: bool = False, helper: bool = False
    ) -> None:
        self.path = path
        self.usage_only = usage_only
        self.reader = chosen(path, emit, usage_only=usage_only)
        if helper:
            self.reader.begin_companion(Path(path))
        self.offset = self.lines = 0
        self._file: tuple[int, int] | None = None
        self._head = self._mark = b""

    def read_on(self) -> bool:
        """Read the lines that were completed since; a torn last one waits. False when the file is not the one that was
        read so far: another one at its path, shorter, or changed in what was read. Raises InputError when it can't be
        read."""
        if not os.path.isfile(self.path):  # opening a named pipe would wait for ever
            raise InputError("no such file", path=self.path)
        with open_stream(self.path) as stream:
            if not stream.plain:
                raise InputError("only a plain file can be read on", path=self.path)
            if self._file is None:
                self._file = stream.file
            elif stream.file != self._file or not self._is_same(stream):
                return False
            stream.seek(self.offset)
            lines = self._whole_lines(stream)
            if self.usage_only and self.lines < LOOK_AT:  # the first ones say what session it is
                feed_lines(self.reader, stream, itertools.islice(lines, LOOK_AT - self.lines), self.lines)
            feed_lines(self.reader, stream, lines, self.lines, self.usage_only)
            stream.seek(0)
            self._head = stream.read(min(MARKED, self.offset))
            stream.seek(max(0, self.offset - MARKED))
            self._mark = stream.read(min(MARKED, self.offset))
        return True

    def _is_same(self, stream: Stream) -> bool:
        if (stream.size or 0) < self.offset:
            return False
        stream.seek(0)
        if stream.read(len(self._head)) != self._head:
            return False
        stream.seek(self.offset - len(self._mark))
        return stream.read(len(self._mark)) == self._mark

    def _whole_lines(self, stream: Stream) -> Iterator[bytes]:
        torn = False
        for data in stream.lines():  # to its end: a generator that is given up closes the file
            torn = torn or not data.endswith(b"\n")
            if torn:
                continue
            self.offset += len(data)
            self.lines += 1
            yield data

    def so_far(self) -> Transcript:
        """The transcript of the lines that were read, without blocks and diagnostics."""
        return so_far(self.reader)


def so_far(reader: Format) -> Transcript:
    """What a reader would tell if the file ended here; it can be fed further lines."""
    # `finish` gives up what it hands over: it gets copies of that, and shares the rest
    last = copy.copy(reader)
    last.diagnostics = Diagnostics()
    session = getattr(reader, "session", None)
    if session is not None:
        last.session = copy.copy(session)  # type: ignore[attr-defined]
        last.session.calls = list(session.calls)  # type: ignore[attr-defined]
    side = getattr(reader, "side", None)
    if side is not None:  # only a writer needs it
        last.side = type(side)()  # type: ignore[attr-defined]
    return last.finish()
