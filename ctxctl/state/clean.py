"""What is not clean when a window closes (requirement S6)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxctl.model.state import AgentState
from ctxctl.state import git
from ctxctl.state.checks import Verified, verify
from ctxctl.state.environment import OTHERS, foreign
from ctxctl.state.environment import companions as own_names
from ctxctl.state.options import StateOptions
from ctxctl.state.progress import render
from ctxctl.state.shown import shown


@dataclass(frozen=True, slots=True)
class Unclean:
    """Something that is left over. code: uncommitted, git_unknown, service_running, progress_missing,
    progress_outdated, transcript_newer. what: the file or service; hint: how to get it clean."""

    code: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.code}: {self.what} ({self.hint})"


def unclean(
    state: AgentState,
    folder: Path,
    options: StateOptions | None = None,
    *,
    companions: Sequence[str] = OTHERS,
    verified: Verified | None = None,
    run_commands: bool = False,
) -> tuple[Unclean, ...]:
    """All that is not clean, in a fixed order.

    folder: where the state and its progress file lie. companions: names of ctxctl's own files there, beside those of
    the options. verified: the checks of this state, where they were made just now; else they are made, and run_commands
    says whether services that are commands may run. What can't be told is listed: a gate does not pass what it did not
    see. Work that goes on in the next window is no fault.
    """
    options = options or StateOptions()
    verified = verified or verify(state, folder, options, others=companions, run_commands=run_commands)
    return (
        *_uncommitted(verified, folder, own_names(options, companions)),
        *_running(verified),
        *_progress(state, folder / options.progress_file),
        *_transcript(state, verified),
    )


def _uncommitted(verified: Verified, folder: Path, names: Sequence[str]) -> Iterator[Unclean]:
    found, dirty = verified.git, verified.dirty
    if any(check.name == "cwd" and check.ok is False for check in verified.checks):
        # the task ran on another machine: what closes here is the state's folder
        found = git.read(folder)
        dirty = None if found.dirty is None else foreign(found.dirty, found.top, folder, names)
    if dirty is None:
        if found.problem not in (git.NO_REPOSITORY, git.NO_GIT, git.BARE):
            yield Unclean("git_unknown", found.problem, "`git status` in the working folder says more")
        return
    for path in dirty:
        yield Unclean("uncommitted", shown(path), "commit it, or throw it away; .gitignore for what is to stay")


def _running(verified: Verified) -> Iterator[Unclean]:
    for check in verified.checks:
        if check.name.startswith("services:") and check.ok:
            yield Unclean("service_running", f"{check.name.removeprefix('services:')}: {check.detail}", "stop it")


def _progress(state: AgentState, path: Path) -> Iterator[Unclean]:
    hint = "`ctxctl checkpoint` writes it anew"
    try:
        if not path.is_file():
            yield Unclean("progress_missing", path.name, hint)
            return
        expected = render(state).encode("utf-8", "replace")
        # no more is read than it may hold
        with open(path, "rb") as file:
            same = os.fstat(file.fileno()).st_size == len(expected) and file.read(len(expected) + 1) == expected
    except OSError as error:
        yield Unclean("progress_outdated", f"{path.name} can't be read: {error.strerror or error}", hint)
        return
    if not same:
        yield Unclean("progress_outdated", path.name, hint)


def _transcript(state: AgentState, verified: Verified) -> Iterator[Unclean]:
    if verified.newer:
        check = next(check for check in verified.checks if check.name == "transcript")
        path = shown(state.transcript.path)
        yield Unclean("transcript_newer", f"{path}: {check.detail}", f"`ctxctl checkpoint {path}` takes it in")
