"""Companion files: how wide their permissions may be, and appending to them while others do the same."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from ctxctl.errors import InputError, RefusedError

_HASH = re.compile(r"[0-9a-f]{64}")
POLL = 0.01
"""Seconds between two looks at a lock that is taken."""
WAIT = 10.0
"""Seconds for another writer of a file that is added to, unless a caller says otherwise."""


def sanitized(text: str, *, tool_output: bool = True) -> str:
    """A text as it may be kept or shown: without credentials and payloads, and without injected instructions where it
    came from a tool (requirements G2, G3)."""
    from ctxctl.guard.sanitize import sanitize  # its rules take a while to load

    return sanitize(text, tool_output=tool_output).text


def sanitized_values(value: Any) -> Any:
    """A JSON value whose texts are all without credentials and payloads; names stay, and so do our own hashes of
    files, which would pass for payloads."""
    if isinstance(value, str):
        return value if _HASH.fullmatch(value) else sanitized(value, tool_output=False)
    # one look at many texts takes little longer than one at a single text, and most hold nothing of the kind
    text = "\n".join(_texts(value))
    if sanitized(text, tool_output=False) == text:
        return value
    if isinstance(value, Mapping):
        return {name: sanitized_values(item) for name, item in value.items()}
    half = len(value) // 2
    if half:
        return [*sanitized_values(value[:half]), *sanitized_values(value[half:])]
    return [sanitized_values(item) for item in value]


def _texts(value: Any) -> Iterator[str]:
    """The texts of a JSON value that are looked at."""
    if isinstance(value, str):
        if not _HASH.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


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
def appending(path: Path, *, mode_of: str | None = None, wait: float = WAIT) -> Iterator[BinaryIO]:
    """A file open for reading and appending that no other writer of ours touches meanwhile.

    It is made, and its folder, when it is not there. wait: seconds for another writer. Raises InputError when it can't
    be had in that time, and for what is no plain file.
    """
    mode, end = bounded_mode(mode_of), time.monotonic() + wait
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = _plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, "r+b", mode)
            try:
                lock_until(path, file, end, wait)
                if _is_still(path, file):
                    break
            except BaseException:
                file.close()
                raise
            file.close()  # it was replaced while we waited: what holds now is the new file
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None
    with file:
        yield file


def opened_plain(path: Path) -> BinaryIO:
    """A file open for reading. Raises FileNotFoundError without one, and InputError for one that can't be read, and at
    once for a pipe, a socket or a device, which would be waited for."""
    try:
        return _plain(path, os.O_RDONLY, "rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None


def _plain(path: Path, flags: int, mode: str, permissions: int = 0o666) -> BinaryIO:
    """Open a file that is one. Raises OSError, for whatever else it is with the words for a user."""
    if path.exists() and not stat.S_ISREG(kind := path.stat().st_mode):
        raise _no_file(kind)
    # without O_NONBLOCK a pipe that took the file's place meanwhile would wait for its other end
    more = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags | more, permissions)
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            raise _no_file(kind)
        return cast(BinaryIO, os.fdopen(handle, mode))
    except BaseException:
        os.close(handle)
        raise


def _no_file(kind: int) -> OSError:
    if stat.S_ISDIR(kind):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return OSError("it is no plain file")


def append_whole(path: Path, file: BinaryIO, data: bytes) -> None:
    """Append to a file of `appending`, on a line of its own even where the last writer was cut off. Raises InputError
    when it can't be written; what had been written of it by then is taken back."""
    handle, written, size = file.fileno(), 0, None
    try:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                data = b"\n" + data
        # past the file's buffer, which would try again when it is closed, and raise there
        while written < len(data):
            written += os.write(handle, data[written:])
        os.fsync(handle)
    except OSError as error:
        with suppress(OSError):
            if written and size is not None and os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def lock_until(path: Path, file: BinaryIO, end: float, wait: float, *, shared: bool = False) -> None:
    """Take the file's lock; it is let go when the file is closed. Where the system has no such locks, appending in one
    piece is what keeps writers apart. end: when to give up, by `time.monotonic`; wait: the seconds until then, for the
    words of the InputError. shared: with others that read."""
    if not _taken(file.fileno(), end, shared):
        raise InputError(
            f"another process has been writing it for {wait:g} s",
            path=str(path),
            hint="run it again when that one has finished",
        )


@contextmanager
def locked(folder: Path, *, wait: float) -> Iterator[None]:
    """The folder's lock: among all writers of ours one at a time changes the state in it.

    It is a lock of the system on the folder itself: no file is left over, and it is gone with the process that holds
    it. Where the system has no such locks nothing keeps writers apart. wait: seconds until RefusedError is raised.
    Raises InputError for a folder that there is not.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(folder)) from None
    try:
        if not _taken(handle, time.monotonic() + wait, False):
            raise RefusedError(
                f"another process has been writing the state for {wait:g} s",
                path=str(folder),
                hint="run it again; cross_window.lock_wait in the settings waits longer",
            )
        yield
    finally:
        os.close(handle)


def _taken(handle: int, end: float, shared: bool) -> bool:
    """Whether the lock of what is open was got in time; where the system or the file system has none, it always is."""
    try:
        import fcntl
    except ImportError:
        return True
    mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    while True:
        try:
            fcntl.flock(handle, mode)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(POLL)
        except OSError:
            return True


def replace_whole(path: Path, data: bytes, *, mode_of: str | None = None) -> None:
    """Write a companion file whole or not at all: whoever reads it meanwhile gets the old one or the new one.

    A symbolic link keeps pointing to where it did, an existing file keeps its permissions, a new one is no wider than
    `mode_of`. Raises InputError when it can't be written; then nothing has changed.
    """
    with drafted_whole(path, data, mode_of=mode_of) as put:
        put()


@contextmanager
def drafted_whole(path: Path, data: bytes, *, mode_of: str | None = None) -> Iterator[Callable[[], None]]:
    """What `replace_whole` writes, beside its place, and the call that puts it there; gone afterwards where that was
    not made. Raises InputError, as the call does."""
    target = Path(os.path.realpath(path))
    name = ""

    def put() -> None:
        with _told(path):
            os.replace(name, target)

    try:
        with _told(path):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else bounded_mode(mode_of)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.", suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
        yield put
    finally:
        if name:
            with suppress(OSError):
                os.unlink(name)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """An error of the system as one of a file that can't be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None
