"""Which files belong to a Claude Code session: those of its sub-agents, in two layouts, plain or packed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import orjson

from ctxctl.errors import InputError
from ctxctl.formats.base import word
from ctxctl.formats.streams import open_stream

SESSION_ENDS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def companions_of(path: Path) -> list[Path]:
    """`<stem>/subagents/**/agent-*.jsonl`, and in the older layout `agent-*.jsonl` beside the session."""
    stem = _plain(path).stem
    found = _agent_files(path.parent / stem, "subagents/**/")
    if not path.name.startswith("agent-"):
        found += [helper for helper, session in _in_old_layout(path.parent) if session == stem]
    return found


def belongs_to_a_session(path: Path) -> bool:
    """Whether a file is a sub-agent's whose session lies beside it."""
    if not path.name.startswith("agent-"):
        return False
    if "subagents" in path.parts[:-1]:
        at = len(path.parts) - 1 - path.parts[::-1].index("subagents")
        folder = Path(*path.parts[:at])
        return any(folder.with_name(folder.name + end).is_file() for end in SESSION_ENDS)
    sessions = {_plain(helper): session for helper, session in _in_old_layout(path.parent)}
    session = sessions.get(_plain(path))
    return session is not None and any((path.parent / f"{session}{end}").is_file() for end in SESSION_ENDS)


def _in_old_layout(folder: Path) -> list[tuple[Path, str | None]]:
    """The sub-agent files of a folder in the older layout, each with the session that it names."""
    try:
        return _listed(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return []


@lru_cache(maxsize=64)
def _listed(folder: Path, changed: int) -> list[tuple[Path, str | None]]:
    """changed: when the folder was, so that a new file is seen; each of its sessions asks for the same list."""
    return [(path, _session_of(path)) for path in _agent_files(folder)]


def _agent_files(folder: Path, below: str = "") -> list[Path]:
    """Sub-agent files, of a plain and a packed one of the same name only the plain one."""
    plain = {str(path): path for path in folder.glob(f"{below}agent-*.jsonl")}
    for path in (p for end in SESSION_ENDS[1:] for p in folder.glob(f"{below}agent-*{end}")):
        plain.setdefault(str(_plain(path)), path)
    return [plain[name] for name in sorted(plain) if plain[name].is_file()]  # opening a named pipe would wait for ever


def _plain(path: Path) -> Path:
    """The path without the suffix of a packed file."""
    return path.with_suffix("") if path.suffix in (".gz", ".zst") else path


def _session_of(path: Path) -> str | None:
    """The parent's session id as the first line of a sub-agent file states it."""
    try:
        with open_stream(str(path)) as stream:
            record = orjson.loads(next(stream.lines(), b""))
    except (InputError, orjson.JSONDecodeError):
        return None
    return word(record, "sessionId") if isinstance(record, dict) else None
