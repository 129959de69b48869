"""From PATH arguments to transcripts: files, folders, globs, stdin."""

from __future__ import annotations

import fnmatch
import glob
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ctxctl.errors import InputError, NothingFoundError, UsageError

SUFFIXES = (".jsonl", ".json", ".traj")
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Input:
    """One file to read. found: it came from a folder, so that it may turn out not to be a transcript at all."""

    path: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """All files of a command line. single: one PATH that names a file (or stdin), so that the result stands alone."""

    items: tuple[Input, ...]
    single: bool


def resolve(paths: list[str] | None, note: Callable[[str], None] = lambda text: None) -> Inputs:
    """Expand PATH arguments. A missing file stays in the list: reading it says what is wrong with it.

    note: told of folders further down that can't be read.
    """

    def closed(error: OSError) -> None:
        note(f"warning: {error.filename}: this folder can't be read ({error.strerror}); it is passed over")

    if not paths:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError(
                "no PATH given, and nothing is piped in", hint="try `ctxctl demo`, or give a transcript file"
            )
        return Inputs((Input("-"),), True)
    items: dict[str, Input] = {}  # by what a path leads to: a link to a file of the list is no second one
    single = len(paths) == 1
    for path in paths:
        if path == "-":
            items["-"] = Input("-")
        elif os.path.isdir(path):
            single = False
            for found in _walk(Path(path), closed):
                items.setdefault(os.path.realpath(found), Input(found, True))
        elif not os.path.lexists(path) and glob.has_magic(path):
            single = False
            matches = _matches(path)
            if not matches and len(paths) == 1:
                raise NothingFoundError("no file matches", path=path, hint="check the folder and the pattern")
            for match in matches:
                if os.path.isdir(match):
                    for found in _walk(Path(match), closed):
                        items.setdefault(os.path.realpath(found), Input(found, True))
                elif os.path.isfile(match) or not os.path.exists(match):  # a named pipe would wait for ever
                    items.setdefault(os.path.realpath(match), Input(match))
        else:
            items.setdefault(os.path.realpath(path), Input(path))
    if not items:
        raise NothingFoundError(
            "no transcript in there",
            path=paths[0] if len(paths) == 1 else None,
            hint=f"files that end in {', '.join(SUFFIXES)} (also with .gz, .zst) are looked at",
        )
    return Inputs(tuple(items.values()), single and len(items) == 1)


def is_same(path: str, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _matches(pattern: str) -> list[str]:
    """What a glob stands for, sorted: as `glob` has it, but `**` does not follow links to folders, which may lead in
    circles. `**` at the end stands for the folders before it."""
    parts = Path(pattern).parts
    if "**" not in parts:
        return sorted(glob.glob(pattern))
    at = parts.index("**")
    head, rest = parts[:at], parts[at:]
    bases = sorted(glob.glob(os.path.join(*head))) if head else ["."]
    while rest and rest[-1] == "**":
        rest = rest[:-1]
    if not rest:
        return bases
    hidden = any(part.startswith(".") for part in rest)
    found = []
    for base in bases:
        for folder, folders, names in os.walk(base):
            folders[:] = [f for f in folders if hidden or not f.startswith(".")]
            below = Path(folder).relative_to(base).parts
            found += [
                os.path.normpath(os.path.join(folder, n)) if base == "." else os.path.join(folder, n)
                for n in names
                if _fits((*below, n), rest)
            ]
    return sorted(found)


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether path parts match a pattern's; only a part that starts with a dot matches one that does."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or bool(parts and not parts[0].startswith(".") and _fits(parts[1:], pattern))
    if not parts or (parts[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _walk(folder: Path, closed: Callable[[OSError], None]) -> list[str]:
    """Files of a folder that may be transcripts, sorted. Files that belong to a session beside them are read with it;
    hidden folders, and those of packages, are passed over."""
    from ctxctl.formats import FORMATS

    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError("this folder can't be read", path=str(folder))
    readers = [reader for _, reader in FORMATS]
    found = []
    for base, folders, names in os.walk(folder, onerror=closed):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("node_modules", "__pycache__"))
        here = Path(base)
        for name in sorted(names):
            stem = name
            for suffix in COMPRESSED:
                stem = stem.removesuffix(suffix)
            if stem != name and stem in names:
                continue  # the plain file beside a compressed copy is the newer one
            if not stem.endswith(SUFFIXES) or not os.path.isfile(here / name):
                continue  # opening a named pipe would wait for ever
            if not any(reader.is_companion(here / name) for reader in readers):
                found.append(str(here / name))
    return found
