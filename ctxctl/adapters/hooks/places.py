"""Where an agent's settings lie, and what is written there as the command of its hooks."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ctxctl.adapters.hooks.base import HookAgent, Scope
from ctxctl.errors import UsageError

MOST_BACKUPS = 100


def project_root(agent: HookAgent, start: Path) -> Path:
    """The folder of the project: the nearest one, up to the root of its repository, that holds the agent's folder, else
    that root, else the start itself."""
    home = Path.home()
    for folder in (start, *start.parents):
        if (folder / agent.folder).is_dir() and folder != home:
            return folder
        if (folder / ".git").exists():
            return folder
    return start


def home_folder(agent: HookAgent, environment: Mapping[str, str]) -> Path:
    """The agent's folder for all projects."""
    named = environment.get(agent.home_variable)
    return Path(named).expanduser() if named else Path.home() / agent.folder


def settings_path(agent: HookAgent, scope: Scope, root: Path, environment: Mapping[str, str]) -> Path:
    """The settings file of a scope. Raises UsageError for a scope that the agent does not have."""
    if scope not in agent.files:
        raise UsageError(f"{agent.title} has no {scope} settings", hint=f"--scope {' or '.join(agent.files)}")
    folder = home_folder(agent, environment) if scope == "user" else root / agent.folder
    return folder / agent.files[scope]


def command_line(agent: HookAgent, scope: Scope, *, clean: bool = False, state_dir: str | None = None) -> str:
    """The command that the agent runs.

    `ctxctl` alone where it is found on the path and stays there: in settings that others share, and where it is not
    merely a virtual environment that is switched on. Else its absolute path, quoted.
    """
    words = [*_program(scope), "hook", "run", agent.name]
    if clean:
        words.append("--require-clean")
    if state_dir is not None:
        words += ["--state-dir", state_dir]
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    return shlex.join(words)


def _program(scope: Scope) -> list[str]:
    found = shutil.which("ctxctl")
    if found is not None and (scope == "project" or sys.prefix == sys.base_prefix):
        return ["ctxctl"]
    beside = Path(sys.executable).with_name("ctxctl.exe" if os.name == "nt" else "ctxctl")
    if beside.is_file():
        return [str(beside)]
    return ["ctxctl"] if found is not None else [sys.executable, "-m", "ctxctl"]


def is_settings(agent: HookAgent, top: str, path: str) -> bool:
    """Whether a path that git names, a folder as `name/`, is a settings file of the agent's or a copy of one, or a
    folder that holds nothing else. top: the folder of the work tree."""
    folder, name = os.path.split(path)
    if os.path.basename(folder) != agent.folder or not agent.folder:
        return False
    try:
        names = [name] if name else os.listdir(os.path.join(top, folder))
    except OSError:
        return False
    return all(any(one == file or one.startswith(f"{file}.bak") for file in agent.files.values()) for one in names)


def backups(path: Path) -> Iterator[Path]:
    """The copies beside a settings file, by their number. One in between may be gone."""
    for number in range(MOST_BACKUPS):
        copy = path.with_name(f"{path.name}.bak{number or ''}")
        if copy.is_file():
            yield copy


def missing_program(command: str) -> str | None:
    """The program of a command when it is not there."""
    try:
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError:
        return None
    return words[0] if words and shutil.which(words[0]) is None else None
