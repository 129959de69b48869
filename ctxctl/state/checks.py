"""The checks of the boot sequence (requirement S4): is the environment still the one that the state was saved in?

All are O(state): the transcript is never read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ctxctl.model.state import AgentState, Environment, FileState, Position, Service
from ctxctl.state import git, services
from ctxctl.state.environment import OTHERS, base_of, companions, foreign
from ctxctl.state.hashes import Hasher
from ctxctl.state.options import StateOptions
from ctxctl.state.shown import names, shown
from ctxctl.state.stale import Compared, compare

_SLACK = 3.0
"""Seconds by which a file may be newer than `saved_at`, which is cut to the second, and still be of before."""


@dataclass(frozen=True, slots=True)
class Check:
    """One look at the environment. name: `cwd`, `git_head`, `git_branch`, `git_dirty`, `files`, `services:NAME` or
    `transcript`. ok: None when there is nothing to compare, or it was not tried. detail: what was found, in words."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What the checks found. stale: files whose content is no longer the saved one, then those that are gone, as the
    state names them. missing: those that are gone. dirty: paths of the work tree that differ from the head now, None
    when that can't be told. git: all that git said. newer: the transcript has gone on since the checkpoint. base: the
    folder that relative paths start from."""

    checks: tuple[Check, ...]
    stale: tuple[str, ...]
    missing: tuple[str, ...]
    dirty: tuple[str, ...] | None
    git: git.Git
    newer: bool
    base: str

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks that did not pass."""
        return tuple(check for check in self.checks if check.ok is False)


def verify(
    state: AgentState,
    folder: Path,
    options: StateOptions | None = None,
    *,
    others: Sequence[str] = OTHERS,
    run_commands: bool = False,
    hasher: Hasher | None = None,
    git_seconds: float = git.SECONDS,
) -> Verified:
    """All checks of a state at once.

    folder: where the state lies. options: names of ctxctl's own files there, which are never dirty, and services that
    are declared beside those of the state; others: further such names. run_commands: whether services that are commands
    may run: a state may come from elsewhere, and runs nothing by itself. Nothing is raised.
    """
    options = options or StateOptions()
    environment = state.environment
    base = base_of(environment.cwd, folder)
    cwd = _cwd(environment, folder)
    found = git.read(base, seconds=git_seconds) if cwd.ok is not False else git.Git(problem="the folder is not there")
    dirty = None if found.dirty is None else foreign(found.dirty, found.top, folder, companions(options, others))
    files = compare(state, base, hasher or Hasher())
    transcript, newer = _transcript(state.transcript, state.saved_at)
    checks = (
        cwd,
        _head(environment, found, base),
        _branch(environment, found),
        _dirty(environment, found, dirty),
        _files(environment.files, files),
        *_services(declared(environment.services, options), base, run_commands),
        transcript,
    )
    return Verified(checks, files.stale, files.missing, dirty, found, newer, base)


def declared(known: Sequence[Service], options: StateOptions) -> tuple[Service, ...]:
    """The services of a state and of the settings, which replace known ones of their name."""
    given = [Service(item.name, item.port, item.command) for item in options.services]
    return tuple({service.name: service for service in (*known, *given)}.values())


def _cwd(environment: Environment, folder: Path) -> Check:
    cwd = environment.cwd
    if cwd is None:
        return Check("cwd", None, f"no working folder is known; {shown(str(folder))} stands for it")
    if not os.path.isabs(cwd):
        return Check("cwd", False, f"{shown(cwd)} is no absolute path")
    if not os.path.isdir(cwd):
        reason = "is no folder" if os.path.lexists(cwd) else "is not there"
        return Check("cwd", False, f"{shown(cwd)} {reason}")
    if not os.access(cwd, os.R_OK | os.X_OK):
        return Check("cwd", False, f"{shown(cwd)} can't be read")
    return Check("cwd", True, shown(cwd))


def _head(environment: Environment, found: git.Git, base: str) -> Check:
    name, saved, now = "git_head", environment.git_head, found.head
    if saved is None:
        return Check(name, None, f"none was saved; now {now[:12]}" if now else found.problem or "no commit yet")
    if now is None:
        return Check(name, False, f"{saved[:12]} was saved; now {found.problem or 'there is no commit'}")
    if now == saved:
        return Check(name, True, now[:12])
    change = f"{saved[:12]} -> {now[:12]}"
    counts = git.distance(base, saved, now)
    if counts is None:
        return Check(name, False, f"{change}: the saved commit is not in this repository")
    lost, new = counts
    if not lost:
        return Check(name, False, f"{_commits(new)} later ({change})")
    if not new:
        return Check(name, False, f"{_commits(lost)} back ({change})")
    return Check(name, False, f"on another line: {_commits(new)} more and {_commits(lost)} less ({change})")


def _commits(count: int) -> str:
    return f"{count} commit" if count == 1 else f"{count} commits"


def _branch(environment: Environment, found: git.Git) -> Check:
    saved, now, name = environment.git_branch, found.branch, "git_branch"
    if saved is None and environment.git_head is None:
        return Check(name, None, f"none was saved; now {shown(now)}" if now else found.problem or "detached")
    if found.top is None:
        return Check(name, False, f"{shown(saved or 'detached')} was saved; now {found.problem}")
    if saved == now:
        return Check(name, True, shown(now) if now else "detached")
    return Check(name, False, f"{shown(saved or 'detached')} -> {shown(now or 'detached')}")


def _dirty(environment: Environment, found: git.Git, dirty: tuple[str, ...] | None) -> Check:
    name, then = "git_dirty", set(environment.dirty)
    if dirty is None:
        tracked = environment.git_head is not None or bool(then)
        return Check(name, False if tracked and found.top is None else None, found.problem or "not known")
    if environment.git_head is None and environment.git_branch is None and not then:
        return Check(name, None, f"none was saved; now {_files_of(len(dirty))}")
    more, less = [path for path in dirty if path not in then], sorted(then - set(dirty))
    if not more and not less:
        return Check(name, True, f"{_files_of(len(dirty))}, as saved" if dirty else "clean, as saved")
    parts = [f"changed since: {names(more)}"] if more else []
    parts += [f"no longer changed: {names(less)}"] if less else []
    return Check(name, False, "; ".join(parts))


def _files_of(count: int) -> str:
    return "clean" if not count else f"{count} changed {'file' if count == 1 else 'files'}"


def _files(files: Sequence[FileState], found: Compared) -> Check:
    known = sum(file.sha256 is not None for file in files)
    parts = [f"{len(found.changed)} changed since: {names(found.changed)}"] if found.changed else []
    parts += [f"{len(found.missing)} gone: {names(found.missing)}"] if found.missing else []
    parts += [f"{found.unread} could not be compared"] if found.unread else []
    if found.stale:
        return Check("files", False, "; ".join(parts))
    if not known:
        return Check("files", None, "; ".join(["no hash was saved", *parts]))
    whole = f"{known} {'file is' if known == 1 else 'files are'} as saved" if not parts else ""
    return Check("files", None if parts else True, whole or "; ".join(parts))


def _services(known: Sequence[Service], base: str, run_commands: bool) -> Iterable[Check]:
    answers = services.look(known, cwd=Path(base), run_commands=run_commands)
    for service, (ok, detail) in zip(known, answers, strict=True):
        yield Check(f"services:{shown(service.name)}", ok, shown(detail))


def _transcript(position: Position, saved_at: str) -> tuple[Check, bool]:
    """The check, and whether the transcript has gone on."""
    name, path = "transcript", position.path
    if not path:
        return Check(name, None, "none is known"), False
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return Check(name, False, f"{shown(path)} is not there"), False
    if not stat.S_ISREG(found.st_mode):
        return Check(name, None, f"{shown(path)} is no regular file"), False
    if found.st_size > position.size:
        return Check(name, False, f"{found.st_size - position.size:,} bytes newer than the checkpoint"), True
    if found.st_size < position.size:
        less = position.size - found.st_size
        return Check(name, False, f"{less:,} bytes shorter than at the checkpoint: it was written anew"), True
    saved = _seconds(saved_at)
    if saved is not None and found.st_mtime > saved + _SLACK:
        return Check(name, False, "written after the checkpoint, with the same size"), True
    return Check(name, True, f"nothing new since the checkpoint ({found.st_size:,} bytes)"), False


def _seconds(time: str) -> float | None:
    try:
        parsed = datetime.fromisoformat(time)
        return parsed.timestamp() if parsed.tzinfo is not None else None
    except (ValueError, OverflowError, OSError):
        return None
