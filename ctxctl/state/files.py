"""Companion files: how wide their permissions may be, and appending to them while others do the same."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from ctxctl.errors import InputError


def sanitized(text: str, *, tool_output: bool = True) -> str:
    """A text as it may be kept or shown: without credentials and payloads, and without injected instructions where it
    came from a tool (requirements G2, G3)."""
    from ctxctl.guard.sanitize import sanitize  # its rules take a while to load

    return sanitize(text, tool_output=tool_output).text


def time_stamp(now: datetime | str) -> str:
    """A time as companion files hold it: ISO 8601, to the second."""
    return now if isinstance(now, str) else now.isoformat(timespec="seconds")


def bounded_mode(mode_of: str | None) -> int:
    """Permissions of a new companion file: those that the umask leaves, and never wider than those of the file that
    it goes with. mode_of: that file; None or one that there is not: the umask alone."""
    mask = os.umask(0)
    os.umask(mask)
    mode = 0o666 & ~mask
    if mode_of is not None and os.path.isfile(mode_of):
        mode &= stat.S_IMODE(os.stat(mode_of).st_mode) | 0o600
    return mode


@contextmanager
def appending(path: Path, *, mode_of: str | None = None) -> Iterator[BinaryIO]:
    """A file open for reading and appending that no other writer of ours touches meanwhile.

    It is made, and its folder, when it is not there. Raises InputError when that can't be done.
    """
    mode = bounded_mode(mode_of)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode), "r+b")
            _lock(file)
            if _is_still(path, file):
                break
            file.close()  # it was replaced while we waited: what holds now is the new file
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None
    with file:
        yield file


def append_whole(path: Path, file: BinaryIO, data: bytes) -> None:
    """Append to a file of `appending`, on a line of its own even where the last writer was cut off. Raises InputError
    when it can't be written."""
    try:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                data = b"\n" + data
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO) -> None:
    """Wait for the file's lock; it is let go when the file is closed. Where the system has no such locks, appending in
    one piece is what keeps writers apart."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
