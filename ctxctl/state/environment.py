"""The environment of a task as it is now: working folder, git, files with their hashes, what is in use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ctxctl.model.state import Environment, FileState, Service, WorkingFile
from ctxctl.model.summary import FileFact
from ctxctl.state import git
from ctxctl.state.hashes import Hasher, resolved
from ctxctl.state.options import StateOptions

MOST_READ = 200
"""Files that were only read and are kept: the newest."""
OTHERS = ("agent_notes.md", "agent_ledger.jsonl")
"""Companions whose names other rooms set: these are their defaults."""
_UNTRACKED = 200


def companions(options: StateOptions, others: Sequence[str] = OTHERS) -> tuple[str, ...]:
    """Names of the files that ctxctl itself writes beside a state. others: notes and ledger."""
    return (options.state_file, options.progress_file, options.audit_file, *others)


def base_of(cwd: str | None, folder: Path) -> str:
    """Where relative paths of a session start: its working folder, else the state's."""
    return cwd if cwd and os.path.isabs(cwd) and os.path.isdir(cwd) else os.path.abspath(folder)


def observe(
    cwd: str | None,
    facts_files: Sequence[FileFact],
    known: Environment,
    services: Sequence[Service],
    *,
    folder: Path,
    working_set: int,
    companions: Sequence[str] = (),
    recent: Sequence[str] = (),
    hasher: Hasher | None = None,
    git_seconds: float = git.SECONDS,
) -> tuple[Environment, tuple[WorkingFile, ...]]:
    """The environment now, and the files in use, the newest first.

    cwd: as the transcript says. facts_files: all of the task, in the order in which they came up. known: of the state
    before; the hash of a file that looks the same is taken from it. folder: where the state lies. working_set: how many
    files are in use at most. companions: names of ctxctl's own files in the folder, which are never dirty. recent:
    paths that are known to be in use, the newest first; `…` stands for the front of one that was cut, and what is no
    known file is passed over. Where the working folder is not on this machine nothing is said of git. Nothing is
    raised.
    """
    base = base_of(cwd, folder)
    hasher = hasher or Hasher()
    before = {resolved(file.path, base): file for file in known.files}
    files = []
    for fact in _bounded(facts_files):
        where = resolved(fact.path, base)
        disk = hasher.look(where, before.get(where))
        files.append(
            FileState(fact.path, fact.role, fact.actions, disk.sha256, disk.size, disk.mtime_ns, written=fact.hash)
        )
    found = git.read(base, seconds=git_seconds) if cwd is None or base == cwd else git.Git()
    dirty = known.dirty if found.dirty is None and found.top is not None else found.dirty or ()
    environment = Environment(
        cwd=cwd,
        git_head=found.head,
        git_branch=found.branch,
        dirty=foreign(dirty, found.top, folder, companions),
        files=tuple(files),
        services=tuple(services),
        extra=known.extra,
    )
    return environment, _in_use(files, recent, base, working_set)


def _bounded(files: Sequence[FileFact]) -> list[FileFact]:
    """All that were modified, and the newest of those that were only read."""
    left = sum(file.role == "read" for file in files) - MOST_READ
    kept = []
    for file in files:
        if file.role == "read" and left > 0:
            left -= 1
        else:
            kept.append(file)
    return kept


def _in_use(files: Sequence[FileState], recent: Sequence[str], base: str, most: int) -> tuple[WorkingFile, ...]:
    places = {resolved(file.path, base): file for file in files}
    order: dict[str, None] = {}
    for path in recent:
        if path.startswith("…"):  # cut at its front
            end = path[1:]
            found = [where for where in places if end and where.endswith(end)]
        else:
            found = [where for where in (resolved(path, base),) if where in places]
        if len(found) == 1:
            order[found[0]] = None
    order |= dict.fromkeys(reversed(places))
    used = [places[where] for where in order]
    used = [file for file in used if not ("deleted" in file.actions and file.size is None)]
    return tuple(WorkingFile(file.path, file.sha256) for file in used[:most])


def foreign(dirty: Iterable[str], top: str | None, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Dirty paths without ctxctl's own files in the state's folder. top: the folder of the work tree. A folder of
    unknown files that holds nothing else is left out as well."""
    if top is None or not names:
        return tuple(dirty)
    own = os.path.relpath(os.path.realpath(folder), os.path.realpath(top)).replace(os.sep, "/")
    inside = "" if own == "." else f"{own}/"
    if inside.startswith("../"):
        return tuple(dirty)
    kept = []
    for path in dirty:
        if path.endswith("/"):
            if inside.startswith(path) and _only_companions(os.path.join(top, path), os.path.join(top, own), names):
                continue
        elif path.startswith(inside) and _is_companion(path[len(inside) :], names):
            continue
        kept.append(path)
    return tuple(kept)


def _is_companion(name: str, names: Sequence[str]) -> bool:
    """Whether a file is one of ours, its backup, or what a write that was cut off left."""
    if name in names:
        return True
    for own in names:
        stem, suffix = os.path.splitext(own)
        # of an earlier task, or of a session of its own: `agent_state.window-2.json`
        if name.startswith(f"{stem}.") and name.endswith(suffix):
            return True
        if name.startswith((f"{own}.", f".{own}.")) and name.endswith((".tmp", ".bak")):
            return True
    return False


def _only_companions(place: str, own: str, names: Sequence[str]) -> bool:
    seen = 0
    own = os.path.normpath(own)
    for folder, _, found in os.walk(place):
        seen += len(found) + 1
        if seen > _UNTRACKED or any(
            os.path.normpath(folder) != own or not _is_companion(name, names) for name in found
        ):
            return False
    return True
