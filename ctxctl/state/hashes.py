"""Files on disk: which of them are there, and the SHA-256 of their content, within a bound of bytes and of time."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from ctxctl.model.state import FileState

FILE_BYTES = 64 << 20
TOTAL_BYTES = 256 << 20
SECONDS = 1.0
_CHUNK = 1 << 20
_TICK_NS, _COARSE_NS = 20_000_000, 2_000_000_000
"""Time stamps of a file can be as coarse as the timer of the kernel (10 ms), on FAT 2 s: within that a second write
leaves the same one."""

Kind = Literal["file", "missing", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file as it is now. kind: other is no regular file, unknown one that can't be looked at. sha256: None when it
    was not read: too large, no budget left, no permission, or it changed meanwhile. mtime_ns: None when a write that
    comes right now could leave the same."""

    kind: Kind
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None


class Hasher:
    """Looks at files until its budget is used up. file_bytes: above that a file is not read."""

    def __init__(
        self, *, file_bytes: int = FILE_BYTES, total_bytes: int = TOTAL_BYTES, seconds: float = SECONDS
    ) -> None:
        self._file_bytes = file_bytes
        self._left = total_bytes
        self._end = time.monotonic() + seconds

    def look(self, path: str, known: FileState | None = None) -> OnDisk:
        """A file as it is now; its hash is the known one where size and time stamp are. Nothing is raised, and no
        pipe, socket or device is opened."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return OnDisk("missing")
        except (OSError, ValueError):  # a loop of links, no permission, a null character
            return OnDisk("unknown")
        if not stat.S_ISREG(found.st_mode):
            return OnDisk("other")
        if (
            known is not None
            and known.sha256 is not None
            and (known.size, known.mtime_ns) == (found.st_size, found.st_mtime_ns)
        ):
            return OnDisk("file", found.st_size, found.st_mtime_ns, known.sha256)
        digest = self._digest(path, found.st_size)
        return OnDisk("file", found.st_size, _settled(found.st_mtime_ns), digest)

    def _digest(self, path: str, size: int) -> str | None:
        if size > min(self._file_bytes, self._left) or time.monotonic() > self._end:
            return None
        try:
            # it may have become a pipe since; such one would wait for a writer
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return None
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode) or before.st_size != size:
                return None
            return self._read(handle, before)
        except OSError:
            return None
        finally:
            os.close(handle)

    def _read(self, handle: int, before: os.stat_result) -> str | None:
        """The hash of as many bytes as the size says: files of the kernel say 0 and have no end."""
        hash_, left = sha256(), before.st_size
        while left:
            data = os.read(handle, min(_CHUNK, left))
            if not data:
                return None
            hash_.update(data)
            left -= len(data)
            self._left -= len(data)
            if left and time.monotonic() > self._end:
                return None
        after = os.fstat(handle)
        same = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        return hash_.hexdigest() if same else None


def _settled(mtime_ns: int) -> int | None:
    """A time stamp that no later write can leave again. Git keeps such entries of its index apart in the same way
    (Documentation/technical/racy-git.txt)."""
    grain = _COARSE_NS if mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    return mtime_ns if time.time_ns() - mtime_ns > grain else None


def resolved(path: str, base: str) -> str:
    """Where a path of a session lies. base: the folder that a relative one starts from."""
    if path.startswith("~/"):
        path = os.path.expanduser(path)
    return os.path.normpath(os.path.join(base, path))
