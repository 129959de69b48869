"""What git says of a folder, read without writing to it and without running what its repository configures."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ctxctl.model.text import clean

SECONDS = 2.0
"""How long git may take, all its runs together."""
MOST_DIRTY = 1000
MOST_SUBMODULES = 32
DEEPEST = 3
"""Submodules within submodules that are looked at."""

NO_GIT = "git is not installed"
NO_REPOSITORY = "no git repository"
BARE = "a bare repository"
FILTERS = "the repository defines filters that can't be switched off"
_NOTHING = "git: failed"
"""What is said of a run that fails without a word, as `git config` does when it finds nothing."""

_LOCAL = (
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"),
    *("GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE"),
    *("GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE"),
    *("GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_LITERAL_PATHSPECS", "GIT_TRACE", "GIT_TRACE2", "GIT_TRACE2_EVENT"),
)
"""Variables that a git hook sets for its own repository (`git rev-parse --local-env-vars`), and traces: inside of a
hook they would point every look at another folder to that one."""
_HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Git:
    """A work tree. top: its folder. head: full hash, None on a branch without a commit. branch: None when detached.
    dirty: paths relative to the top that differ from the head or that git does not know, a folder of unknown files as
    `name/`, at most MOST_DIRTY; None when there was no time to tell. problem: why nothing is known, else empty."""

    top: str | None = None
    head: str | None = None
    branch: str | None = None
    dirty: tuple[str, ...] | None = None
    problem: str = ""


def read(folder: str | Path, *, seconds: float = SECONDS, depth: int = 0) -> Git:
    """The state of the work tree that a folder lies in. Nothing is raised."""
    end = time.monotonic() + seconds
    top, said = _run(folder, ("rev-parse", "--show-toplevel"), end)
    if top is None:
        return Git(problem=said)
    root = os.fsdecode(top.removesuffix(b"\n"))
    options, said = _without_filters(root, end)
    if options is None:
        return _head_only(root, said)
    out, said = _run(
        root,
        (
            *options,
            *("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--no-renames", "-z"),
            # looking into submodules is left to `_submodules`: git would run what they configure
            *("--untracked-files=normal", "--ignore-submodules=dirty"),
        ),
        end,
    )
    if out is None:
        return _head_only(root, said)
    head, branch, dirty = _parsed(out)
    if depth < DEEPEST:
        dirty = sorted({*dirty, *_submodules(root, end, depth)})
    return Git(root, head, branch, tuple(dirty[:MOST_DIRTY]))


def head(folder: str | Path, *, seconds: float = SECONDS) -> Git:
    """Head and branch alone, which take no longer in a large work tree. Nothing is raised."""
    end = time.monotonic() + seconds
    top, said = _run(folder, ("rev-parse", "--show-toplevel"), end)
    return Git(problem=said) if top is None else _head_only(os.fsdecode(top.removesuffix(b"\n")), "")


def tags(folder: str | Path, *, seconds: float = SECONDS) -> tuple[str, ...]:
    """Tags at the head, sorted; none where git can't tell."""
    out, _ = _run(folder, ("tag", "--points-at", "HEAD"), time.monotonic() + seconds)
    return tuple(sorted((out or b"").decode("utf-8", "replace").split()))


def resolved(folder: str | Path, name: str, *, seconds: float = SECONDS) -> str | None:
    """The commit that a branch, tag or expression such as `HEAD~2` names; None where git knows no such."""
    if name.startswith("-") or "\0" in name:
        return None
    out, _ = _run(folder, ("rev-parse", "--verify", "-q", f"{name}^{{commit}}"), time.monotonic() + seconds)
    return _line(out)


def distance(folder: str | Path, old: str, new: str, *, seconds: float = SECONDS) -> tuple[int, int] | None:
    """How many commits only the old one has, and only the new one; None when one is not there."""
    if _HASH.fullmatch(old) is None or _HASH.fullmatch(new) is None:  # one that begins with a dash would be an option
        return None
    command = ("rev-list", "--left-right", "--count", f"{old}...{new}", "--")
    out, _ = _run(folder, command, time.monotonic() + seconds)
    counts = (out or b"").split()
    return (int(counts[0]), int(counts[1])) if len(counts) == 2 else None


def _run(folder: str | Path, arguments: tuple[str, ...], end: float) -> tuple[bytes | None, str]:
    """What git writes, and, when it fails or runs out of time, None and why."""
    environment = {name: value for name, value in os.environ.items() if name not in _LOCAL}
    # no lock and so no new index; no question on the terminal; nothing fetched for a partial clone
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    # a folder that is laid out like a git directory is none: it may have come with a clone, settings and all
    safe = ("core.fsmonitor=false", "protocol.allow=never", "safe.bareRepository=explicit")
    command = ["git", *(word for setting in safe for word in ("-c", setting)), *arguments]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        return None, NO_GIT if os.path.isdir(folder) else "the folder is not there"
    except (OSError, ValueError) as error:
        return None, f"git can't be run: {getattr(error, 'strerror', None) or error}"
    try:
        out, errors = process.communicate(timeout=max(0.01, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        return None, "git took too long"
    except BaseException:
        _end(process)
        raise
    if process.returncode == 0:
        return out, ""
    lines = clean(errors.decode("utf-8", "replace")).strip().split("\n")
    said = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    said = said.removeprefix("fatal: ").removeprefix("error: ")
    for beginning, meaning in _MEANINGS:
        if said.startswith(beginning):
            return None, meaning
    return None, f"git: {said}" if said else _NOTHING


_MEANINGS = (
    ("not a git repository", NO_REPOSITORY),
    ("this operation must be run in a work tree", BARE),
    ("cannot use bare repository", BARE),
)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _without_filters(root: str, end: float) -> tuple[tuple[str, ...] | None, str]:
    """Options that switch off the filters that the repository itself defines: `git status` runs them, and a folder that
    came from elsewhere must not run anything. Those of the user's own settings stay (git-lfs). None, and why, where
    there are no such options."""
    asked = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$")
    out, said = _run(root, asked, end)
    if out is None and said != _NOTHING:
        return None, said
    parts = (out or b"").split(b"\0")
    options: list[str] = []
    for scope, name in zip(parts[::2], parts[1::2], strict=False):
        if scope in (b"local", b"worktree"):
            if b"=" in name:  # `-c` takes the name up to there
                return None, FILTERS
            key = os.fsdecode(name)
            options += ("-c", f"{key}=", "-c", f"{key.rpartition('.')[0]}.required=false")
    return tuple(options), ""


def _parsed(out: bytes) -> tuple[str | None, str | None, list[str]]:
    """Head, branch and paths of `git status --porcelain=v2 --branch -z` (git-status(1))."""
    head = branch = None
    dirty: list[str] = []
    entries = iter(out.split(b"\0"))
    for entry in entries:
        sort, _, rest = entry.partition(b" ")
        if sort == b"#":
            name, _, value = rest.decode("utf-8", "replace").partition(" ")
            if name == "branch.oid" and value != "(initial)":
                head = value
            elif name == "branch.head" and value != "(detached)":
                branch = value
        elif (fields := _BEFORE.get(sort)) is not None:
            dirty.append(_name(rest.split(b" ", fields)[-1]))
            if sort == b"2":
                dirty.append(_name(next(entries, b"")))
    return head, branch, sorted({path for path in dirty if path})


_BEFORE = {b"1": 7, b"2": 8, b"u": 9, b"?": 0}
"""Fields before the path, by the kind of an entry."""


def _name(path: bytes) -> str:
    # a name that is no UTF-8 reads the same today as from a state, which is UTF-8
    return path.decode("utf-8", "replace")


def _submodules(root: str, end: float, depth: int) -> list[str]:
    """Submodules with changes of their own."""
    if not os.path.isfile(os.path.join(root, ".gitmodules")):
        return []
    out, _ = _run(root, ("config", "-z", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"), end)
    paths = [entry.partition(b"\n")[2] for entry in (out or b"").split(b"\0") if entry]
    found: list[str] = []
    inside = os.path.realpath(root) + os.sep
    for path in paths[:MOST_SUBMODULES]:
        folder = os.path.join(root, os.fsdecode(path))
        left = end - time.monotonic()
        if left <= 0:
            break
        if os.path.realpath(folder).startswith(inside) and os.path.lexists(os.path.join(folder, ".git")):
            below = read(folder, seconds=left, depth=depth + 1)
            if below.dirty:
                found.append(_name(path))
    return found


def _head_only(root: str, said: str) -> Git:
    """Head and branch where there was no time, or no way, to tell what is dirty."""
    end = time.monotonic() + 0.5
    head, why = _run(root, ("rev-parse", "--verify", "-q", "HEAD"), end)
    branch, _ = _run(root, ("symbolic-ref", "--short", "-q", "HEAD"), end)
    if head is None and branch is None:
        return Git(problem=said or why)
    return Git(root, _line(head), _line(branch), None, said)


def _line(out: bytes | None) -> str | None:
    return None if out is None else out.decode("utf-8", "replace").strip() or None
