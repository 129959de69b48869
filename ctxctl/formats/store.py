"""The lines of a transcript by number, for a second pass: a writer copies those that stay."""

from __future__ import annotations

import os
import stat
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO

from ctxctl.errors import InputError
from ctxctl.formats.streams import GZIP, ZSTD

IN_MEMORY = 1 << 24
"""Bytes of a pipe or a compressed file that are kept in memory; more go to an unnamed temporary file."""


class LineStore:
    """Filled by `scan(..., store=...)`, then asked by line number. A plain file is read again where it lies, by offset;
    what can be read only once is kept.

    `packed` tells whether the file is compressed, `changed` whether it grew or was replaced since, which a live session
    does.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._ends = array("q", [0])
        self._spool: IO[bytes] | None = None
        self._file: IO[bytes] | None = None
        self._before = _state(path)
        self.packed = self._before is not None and _packed(path)
        if self._before is None or self.packed:
            self._spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by `close`

    def add(self, data: bytes) -> None:
        """The next physical line, with its end."""
        self._ends.append(self._ends[-1] + len(data))
        if self._spool is not None:
            self._spool.write(data)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return self._ends[-1]

    def get(self, line: int) -> bytes:
        """A line by its 1-based number, with its end. Raises IndexError for one that there is not, InputError when the
        file can't be read again."""
        if not 1 <= line < len(self._ends):
            raise IndexError(f"there is no line {line}")
        start, end = self._ends[line - 1], self._ends[line]
        file = self._open()
        if file.tell() != start:
            file.seek(start)
        data = file.read(end - start)
        if len(data) != end - start:
            raise InputError("the file became shorter while it was read", path=self.path)
        return data

    def _open(self) -> IO[bytes]:
        if self._spool is not None:
            return self._spool
        if self._file is None:
            try:
                self._file = open(self.path, "rb")  # noqa: SIM115 - closed by `close`
            except OSError as error:
                raise InputError(f"can't be read again: {error.strerror or error}", path=self.path) from None
        return self._file

    @property
    def changed(self) -> bool:
        """Whether the file is no longer what it was when reading began."""
        return self._before is not None and _state(self.path) != self._before

    def size_hint(self) -> int | None:
        """Bytes of the file on disk, None for a pipe."""
        return self._before[2] if self._before is not None else None

    @contextmanager
    def spooled(self) -> Iterator[str]:
        """A path under which all lines can be read once more: the file itself, or a temporary copy of what came by a
        pipe or was compressed."""
        if self._spool is None:
            yield self.path
            return
        with tempfile.NamedTemporaryFile(prefix="ctxctl-", suffix=".jsonl") as copy:
            for line in range(1, len(self) + 1):
                copy.write(self.get(line))
            copy.flush()
            yield copy.name

    def close(self) -> None:
        """Give up what is open."""
        for file in (self._spool, self._file):
            if file is not None:
                file.close()
        self._file = None

    def __enter__(self) -> LineStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _state(path: str) -> tuple[int, int, int, int] | None:
    """Device, inode, size and time of a regular file; None for what can be read only once."""
    try:
        found = os.stat(path) if path != "-" else None
    except OSError:
        return None
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _packed(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4).startswith((GZIP, ZSTD))
