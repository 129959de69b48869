"""Where the recall store of a command line is, and putting an original back."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxctl.cli.inputs import is_same
from ctxctl.cli.io import write_file
from ctxctl.cli.placing import back_up, writers_of
from ctxctl.errors import InputError, NothingFoundError, UsageError
from ctxctl.state.recall_file import SUFFIX, Run, is_store, store_beside
from ctxctl.state.recall_reader import RecallReader


@dataclass(frozen=True, slots=True)
class Place:
    """A store, and the compacted transcript where that was named. gone: it was, and is not there."""

    store: Path
    transcript: Path | None = None


def place_of(path: str | None) -> Place:
    """The store that a PATH argument means: itself, the one beside it, or without PATH the only one in this folder."""
    if path is None:
        found = sorted(glob.glob(f"*{SUFFIX}"))
        if len(found) == 1:
            return Place(Path(found[0]))
        if found:
            raise UsageError(f"several recall stores lie here: {', '.join(found)}", hint=f"`ctxctl recall {found[0]}`")
        raise NothingFoundError(
            "no recall store in this folder", hint="`ctxctl recall PATH` takes a compacted transcript or its store"
        )
    given = Path(path)
    if is_store(given):
        return Place(given)
    for base in (given, Path(os.path.realpath(given))):
        if os.path.lexists(store_beside(base)):
            return Place(store_beside(base), given)
    if path.endswith(SUFFIX) and given.is_file():
        raise InputError("this file is not a recall store", path=path)
    if not given.exists():
        raise InputError("no such file", path=path, hint="name a compacted transcript, or its recall store")
    backup = Path(f"{path}.bak")
    if backup.is_file():
        hint = f"{backup} beside it holds what it was before: `cp {backup} {path}` puts that back"
    else:
        hint = f"`ctxctl compact` writes it with its output, unless --no-recall was given; looked for {path}{SUFFIX}"
    raise NothingFoundError("no recall store beside it", path=path, hint=hint)


def undo(
    reader: RecallReader, place: Place, run_id: str | None, output: Path | None, in_place: bool, force: bool
) -> dict[str, Any]:
    """Write the original of a compaction to a file, or over the compacted transcript; the `result` of the command."""
    if (output is None) == (not in_place):
        raise UsageError("--undo needs -o FILE or --in-place, one of them", hint="-o FILE keeps the compacted one")
    target = place.transcript if in_place else output
    if target is None:
        raise UsageError(
            "--in-place needs the compacted transcript, not its store",
            hint=f"`ctxctl recall --undo --in-place {str(place.store).removesuffix(SUFFIX)}`",
        )
    if in_place and not target.exists():
        raise InputError("no such file", path=str(target), hint="-o FILE writes the original to a new file")
    if not in_place and any(is_same(str(p), target) for p in (place.store, place.transcript) if p is not None):
        raise UsageError(f"{target} is an input", hint="--in-place puts the original over the compacted transcript")
    before = _state(target) if in_place else None
    now = _hash(place.transcript) if place.transcript is not None and place.transcript.is_file() else None
    run = reader.run(run_id) if run_id is not None else _run_for(reader, now)
    result: dict[str, Any] = {
        "store": str(place.store),
        "recall_id": run.id,
        "source": run.source,
        "output": str(target),
        "bytes": run.size,
        "sha256": run.sha256,
        "changed_since": now is not None and now != run.output_sha256,
        "backup": None,
        "written": [],
    }
    if not in_place:
        modes = [str(p) for p in (place.store, place.transcript) if p is not None]
        write_file(target, reader.original(run), force=force, modes_of=modes)
        return {**result, "written": [str(target)]}
    if now == run.sha256:
        return {**result, "changed_since": False}
    if result["changed_since"] and not force:
        raise UsageError(
            f"{target} is not what the compaction {run.id} wrote: it was changed since",
            hint="-o FILE writes the original to a new file; --force puts it back and keeps a backup of what is there",
        )
    if not force and (writers := writers_of(str(target))):
        raise UsageError(
            f"{target} is open for writing: {', '.join(writers)}",
            hint="end that process first, or --force all the same",
        )
    backup = back_up(target)
    write_file(target, _unless_changed(reader.original(run), target, before), force=True)
    return {**result, "backup": str(backup), "written": [str(target), str(backup)]}


def _run_for(reader: RecallReader, digest: str | None) -> Run:
    """The compaction that wrote a file of this hash, else the newest."""
    runs = reader.runs()
    if not runs:
        raise NothingFoundError("no compaction in this store", path=str(reader.path))
    return next((run for run in runs if run.output_sha256 == digest), runs[0])


def _unless_changed(pieces: Iterator[bytes], path: Path, before: tuple[int, ...] | None) -> Iterator[bytes]:
    """Pieces, and an error at their end when the file that they replace is no longer what was looked at."""
    yield from pieces
    if _state(path) != before:
        raise InputError(
            "another process wrote into it meanwhile; nothing was replaced",
            path=str(path),
            hint="end it, then try again",
        )


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _hash(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None
