"""Putting a written transcript in its place: whole or not at all, with its mode, its link and a backup."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxctl.cli.io import new_mode
from ctxctl.errors import InputError, UsageError


@contextmanager
def drafted(target: Path, pieces: Iterable[bytes], source: str) -> Iterator[tuple[Path, str]]:
    """A temporary file beside the target that holds the pieces, and their SHA-256; gone afterwards unless it was put in
    place. It is packed when the target's suffix says so. source: whose permissions bound its own."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(target)) from None
    draft = Path(name)
    digest = hashlib.sha256()
    try:
        try:
            with os.fdopen(handle, "wb") as file:
                for piece in _packed(target, pieces):
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, new_mode(target, (source,)))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise InputError(f"can't be written: {error.strerror or error}", path=str(target)) from None
        yield draft, digest.hexdigest()
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _packed(target: Path, pieces: Iterable[bytes]) -> Iterator[bytes]:
    if target.suffix == ".gz":
        packer = zlib.compressobj(wbits=31)
        yield from (packer.compress(piece) for piece in pieces)
        yield packer.flush()
    elif target.suffix == ".zst":
        import zstandard

        chunks = zstandard.ZstdCompressor().compressobj()
        yield from (chunks.compress(piece) for piece in pieces)
        yield chunks.flush()
    else:
        yield from pieces


def put(draft: Path, target: Path, *, force: bool) -> None:
    """Make the draft the target. Raises UsageError where the target appeared meanwhile and may not be replaced."""
    try:
        if force:
            os.replace(draft, target)
        else:
            try:
                os.link(draft, target)
            except FileExistsError:
                raise UsageError(f"{target} exists", hint="--force replaces it") from None
            except OSError:  # a file system without hard links
                if target.exists():
                    raise UsageError(f"{target} exists", hint="--force replaces it") from None
                os.replace(draft, target)
        _settle(target.parent)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(target)) from None


def _settle(folder: Path) -> None:
    """The new name of a file outlives a crash, where the file system lets a folder be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def back_up(path: Path) -> Path:
    """A copy of a file beside it, as `.bak`, `.bak1` and so on: none is ever overwritten. Same bytes, same mode."""
    number = 0
    while True:
        backup = path.with_name(f"{path.name}.bak{number or ''}")
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o700 | 0o600)
        except FileExistsError:
            number += 1
            continue
        except OSError as error:
            raise InputError(f"no backup can be written: {error.strerror or error}", path=str(backup)) from None
        try:
            with os.fdopen(handle, "wb") as copy, open(path, "rb") as original:
                shutil.copyfileobj(original, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
            os.chmod(backup, mode)
        except OSError as error:
            with suppress(OSError):
                backup.unlink()
            raise InputError(f"no backup can be written: {error.strerror or error}", path=str(backup)) from None
        return backup


def writers_of(path: str) -> list[str]:
    """Other processes that have a file open for writing, as `PID NAME`; empty where the system does not tell."""
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        with suppress(OSError):
            for descriptor in os.scandir(process / "fd"):
                with suppress(OSError):
                    other = descriptor.stat()
                    if (other.st_dev, other.st_ino) == (wanted.st_dev, wanted.st_ino) and _writes(process, descriptor):
                        found.append(f"{process.name} {(process / 'comm').read_text().strip()}")
    return sorted(set(found))


def _writes(process: Path, descriptor: os.DirEntry[str]) -> bool:
    for line in (process / "fdinfo" / descriptor.name).read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
