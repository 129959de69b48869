"""Opening a transcript: a path or `-`, plain, gzip or zstd, read-only and in one pass."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from ctxctl.errors import InputError, NotATranscriptError

BUFFER = 1 << 20
CHUNK = 1 << 13
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
NOT_TEXT = {
    b"PK\x03\x04": "a zip archive",
    b"SQLite format 3\x00": "a SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
}

Progress = Callable[[int, int | None], None]
"""Called now and then with bytes read and bytes in all (None when unknown), as stored on disk."""


class Stream:
    """A transcript's bytes. size: on disk, None for a pipe. `lines` may be iterated once."""

    def __init__(self, name: str, raw: BinaryIO, size: int | None) -> None:
        self.name = name
        self.size = size
        self._raw = raw
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw), BUFFER)
        try:
            head = buffered.peek(16)[:16]
        except OSError as error:
            raise InputError(f"reading failed: {error.strerror or error}", path=name) from error
        for magic, what in NOT_TEXT.items():
            if head.startswith(magic):
                raise NotATranscriptError(f"this is {what}, not a transcript that ctxctl reads", path=name)
        self._packed: _Packed | None = None
        if head.startswith((GZIP, ZSTD)):
            self._packed = _Packed(buffered, _inflate if head.startswith(GZIP) else _unpack)
            self._data: BinaryIO = io.BufferedReader(self._packed, BUFFER)
        else:
            self._data = buffered

    @property
    def truncated(self) -> str | None:
        """How a compressed stream ended that is cut or damaged, None when all is well."""
        return self._packed.trouble if self._packed is not None else None

    def position(self) -> int:
        """Bytes of the file consumed so far, 0 for a pipe."""
        return self._raw.tell() if self.size is not None else 0

    @property
    def plain(self) -> bool:
        """Whether it is a file whose bytes are those of its lines, so that reading can begin anywhere."""
        return self.size is not None and self._packed is None

    @property
    def file(self) -> tuple[int, int]:
        """Device and inode: another file at the same path has others."""
        status = os.fstat(self._raw.fileno())
        return status.st_dev, status.st_ino

    def seek(self, offset: int) -> None:
        """Go on at an offset of a plain file."""
        self._data.seek(offset)

    def read(self, size: int) -> bytes:
        """The next bytes of a plain file."""
        return self._data.read(size)

    def lines(self) -> Iterator[bytes]:
        """Physical lines with their ends, split on 0x0A only. A compressed stream is read as far as it goes; how it
        ended is told by `truncated`."""
        try:
            yield from self._data
        except OSError as error:
            raise InputError(f"reading failed: {error.strerror or error}", path=self.name) from error


class _Packed(io.RawIOBase):
    """A compressed stream that gives out everything up to where it is cut or damaged, and says how it ended."""

    def __init__(self, source: BinaryIO, unpack: Callable[[BinaryIO], Iterator[bytes]]) -> None:
        self._pieces = unpack(source)
        self._rest = memoryview(b"")
        self.trouble: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self.trouble is None:
            try:
                piece = next(self._pieces, None)
            except (EOFError, zlib.error) as error:
                self.trouble = str(error)
                return 0
            except Exception as error:
                if type(error).__module__.split(".")[0] != "zstandard":
                    raise
                self.trouble = str(error)
                return 0
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _inflate(source: BinaryIO) -> Iterator[bytes]:
    """The pieces of a gzip stream of one or more members; zero padding behind them is allowed (RFC 1952)."""
    member, data = zlib.decompressobj(31), source.read(CHUNK)
    started = True
    while data:
        piece = member.decompress(data, BUFFER)
        if piece:
            yield piece
        if member.eof:
            data = member.unused_data.lstrip(b"\x00") or source.read(CHUNK)
            member, started = zlib.decompressobj(31), bool(data)
        else:
            data = member.unconsumed_tail or source.read(CHUNK)
    if started:
        yield member.flush()
        raise EOFError("it stops before its end mark")


def _unpack(source: BinaryIO) -> Iterator[bytes]:
    """The pieces of a zstd stream of one or more frames."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame, data = decompressor.decompressobj(), source.read(CHUNK)
    started = True
    while data:
        piece = frame.decompress(data)
        if piece:
            yield piece
        if frame.eof:
            data = frame.unused_data or source.read(CHUNK)
            frame, started = decompressor.decompressobj(), bool(data)
        else:
            data = source.read(CHUNK)
    if started:
        raise EOFError("it stops before its end mark")


@contextmanager
def open_stream(path: str) -> Iterator[Stream]:
    """The stream of a path, or of stdin for `-`. InputError when it can't be opened."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", path="-", hint="pipe a transcript in, or give a file")
        yield Stream("-", sys.stdin.buffer, None)
        return
    try:
        raw = open(path, "rb", buffering=BUFFER)  # noqa: SIM115 - closed by the with statement below
    except FileNotFoundError:
        raise InputError("no such file", path=path, hint="check the path, or give a folder or a glob") from None
    except IsADirectoryError:
        raise InputError("this is a folder", path=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", path=path) from None
    with raw:
        status = os.fstat(raw.fileno())
        import stat

        yield Stream(path, raw, status.st_size if stat.S_ISREG(status.st_mode) else None)
