"""Opening a transcript: a path or `-`, plain, gzip or zstd, read-only and in one pass."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from ctxctl.errors import InputError

BUFFER = 1 << 20
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
        self.truncated: str | None = None
        self._raw = raw
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw), BUFFER)
        head = buffered.peek(16)[:16]
        for magic, what in NOT_TEXT.items():
            if head.startswith(magic):
                raise InputError(f"this is {what}, not a transcript that ctxctl reads", path=name)
        self.compressed = head.startswith((GZIP, ZSTD))
        if head.startswith(GZIP):
            self._data: BinaryIO = io.BufferedReader(gzip.GzipFile(fileobj=buffered, mode="rb"), BUFFER)
        elif head.startswith(ZSTD):
            import zstandard

            reader = zstandard.ZstdDecompressor().stream_reader(buffered, read_across_frames=True)
            self._data = io.BufferedReader(cast(io.RawIOBase, reader), BUFFER)
        else:
            self._data = buffered

    def position(self) -> int:
        """Bytes of the file consumed so far, 0 for a pipe."""
        return self._raw.tell() if self.size is not None else 0

    def lines(self) -> Iterator[bytes]:
        """Physical lines with their ends, split on 0x0A only. A compressed stream that ends early, or is damaged, ends
        the iteration and is named in `truncated`."""
        try:
            yield from self._data
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.truncated = str(error)
        except OSError as error:
            raise InputError(f"reading failed: {error.strerror or error}", path=self.name) from error
        except Exception as error:
            if type(error).__module__.split(".")[0] != "zstandard":
                raise
            self.truncated = str(error)


@contextmanager
def open_stream(path: str) -> Iterator[Stream]:
    """The stream of a path, or of stdin for `-`. InputError when it can't be opened."""
    if path == "-":
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
