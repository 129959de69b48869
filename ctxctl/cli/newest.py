"""The session that an agent is writing: the newest of a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ctxctl.errors import InputError, UsageError

SUFFIX = ".jsonl"
PASSED_OVER = frozenset(("node_modules", "__pycache__", "subagents"))


def newest_of(folder: str, refused: frozenset[str] = frozenset()) -> str | None:
    """The session of a folder, and those below it, that was written last; sub-agents' files belong to a session.
    refused: files that turned out to be something else."""
    sessions = (entry for entry in _sessions(folder) if entry[0] not in refused)
    found = max(sessions, default=None, key=lambda entry: (entry[1], entry[0]))
    return found[0] if found is not None else None


def _sessions(folder: str) -> Iterator[tuple[str, int]]:
    """Files with the time of their last change."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in PASSED_OVER:
                    yield from _sessions(entry.path)
            elif entry.name.endswith(SUFFIX) and not entry.name.startswith("agent-") and entry.is_file():
                yield entry.path, entry.stat().st_mtime_ns
        except OSError:  # it is gone by now
            continue


def folder_of_agent(agent: str, here: Path | None = None) -> str:
    """Where an agent keeps the sessions of a working folder: for Claude Code `$CLAUDE_CONFIG_DIR/projects/<folder>`
    (default `~/.claude`), the path of the folder with `-` for all but letters and digits."""
    if agent != "claude-code":
        raise UsageError(f"--agent: unknown agent {agent!r}", hint="known: claude-code; give a PATH for others")
    base = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    working = str((here or Path.cwd()).resolve())
    folder = os.path.join(base, "projects", re.sub(r"[^A-Za-z0-9]", "-", working))
    if not os.path.isdir(folder):
        raise InputError("Claude Code keeps no session of this working folder there", path=folder)
    return folder
