"""Which project an event belongs to, and where the state of that lies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ctxctl.adapters.hooks.base import HookAgent, HookEvent
from ctxctl.errors import InputError

MOST = 4096
"""Bytes of a `.git` file that are read: it holds one path."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where an event happened. start: the agent's working folder as far as it lies in the project, else the project.
    root: of the project, None for a folder that is in none. named: whether the agent names its project."""

    start: Path
    root: Path | None
    named: bool


def where(event: HookEvent, agent: HookAgent, environment: Mapping[str, str]) -> Where | None:
    """The project of an event; None where neither the event nor its agent names a folder.

    An agent's working folder moves with its `cd`, also out of the project, so the project is the one that it names
    (`HookAgent.project_variable`), else the repository. An agent that went on to a worktree still names the checkout
    in which it was started: then the worktree is the project.
    """
    project = _named(agent, environment)
    if event.cwd is None:
        return None if project is None else Where(project, project, True)
    start = Path(event.cwd)
    if project is None:
        root = next((folder for folder in (start, *start.parents) if os.path.lexists(folder / ".git")), None)
        return Where(start, root, False)
    worktree = _worktree(start)
    if worktree is not None and not project.is_relative_to(worktree):
        return Where(start, worktree, True)
    return Where(start if start.is_relative_to(project) else project, project, True)


def state_folder(
    event: HookEvent, agent: HookAgent, given: Path | None, state_file: str, environment: Mapping[str, str]
) -> Path:
    """Where the state lies: the folder that was given, else the nearest one from the event's working folder up to the
    root of its project that holds a state, else the root where the agent names it, else the working folder itself.

    Without a project only the working folder is looked at. Raises InputError when there is no folder.
    """
    here = where(event, agent, environment)
    if given is not None:
        found = ((here.root or here.start) if here is not None else Path()) / given
    elif here is None:
        raise InputError("the hook's JSON names no `cwd`, and --state-dir was not given")
    else:
        inner = [here.start, *here.start.parents]
        inner = inner[: inner.index(here.root) + 1] if here.root is not None else inner[:1]
        holding = next((folder for folder in inner if (folder / state_file).is_file()), None)
        found = holding or (here.root if here.root is not None and here.named else here.start)
    if not found.is_dir():
        raise InputError("there is no such folder, and a hook makes none", path=str(found))
    return found


def _named(agent: HookAgent, environment: Mapping[str, str]) -> Path | None:
    named = environment.get(agent.project_variable) if agent.project_variable else None
    root = Path(named) if named else None
    return root if root is not None and root.is_absolute() and root.is_dir() else None


def _worktree(start: Path) -> Path | None:
    """The root of the worktree that a folder lies in: its `.git` is a file. That of a submodule is one too, and belongs
    to the repository around it."""
    for folder in (start, *start.parents):
        git = folder / ".git"
        if git.is_dir():
            return None
        if git.is_file():
            try:
                with open(git, "rb") as file:
                    target = file.read(MOST).decode("utf-8", "replace")
            except OSError:
                return folder
            if "/modules/" not in target.replace("\\", "/"):
                return folder
    return None
