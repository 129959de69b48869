"""What the hook protocols of agents have in common: the event on stdin, the answer on stdout, the limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ctxctl.errors import InputError
from ctxctl.registry import Registry

Action = Literal["checkpoint", "resume"]
"""What ctxctl does on an event: save the state, or bring the resume prompt into the window."""

Scope = Literal["project", "local", "user"]
"""Whose settings file: that of the project, one's own for the project, or one's own for all projects."""

RESUMED = frozenset(("resume", "clear", "compact"))
"""Sources of a session's start after which the task goes on; all others (`startup`, `fork`, ...) begin one."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What an agent tells its hook. Fields that it did not give, or gave as something else than text, are None.

    name: the event. transcript: path of the session's file. cwd: the agent's working folder. source: why a session
    starts. trigger: `manual` or `auto` for a compaction. stop_active: the agent is already going on because a hook
    stopped it from stopping. agent_id: of the sub-agent inside which the event happened.
    """

    name: str
    session: str | None = None
    transcript: str | None = None
    cwd: str | None = None
    source: str | None = None
    trigger: str | None = None
    stop_active: bool = False
    agent_id: str | None = None


def parse(data: bytes) -> HookEvent:
    """The event that an agent wrote. Raises InputError when it is no JSON object that names one."""
    try:
        value = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"stdin holds no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"stdin holds a JSON {type(value).__name__}, not the object that a hook gets")
    name = _text(value, "hook_event_name")
    if name is None:
        raise InputError("the JSON on stdin has no `hook_event_name`")
    return HookEvent(
        name,
        session=_text(value, "session_id"),
        transcript=_text(value, "transcript_path"),
        cwd=_text(value, "cwd"),
        source=_text(value, "source"),
        trigger=_text(value, "trigger"),
        stop_active=value.get("stop_hook_active") is True,
        agent_id=_text(value, "agent_id"),
    )


def _text(value: Mapping[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) and found.strip() else None


def context(event: str, text: str) -> bytes:
    """The answer that brings a text into the window."""
    return _line({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def block(reason: str) -> bytes:
    """The answer that keeps an agent from stopping; it goes on with the reason as its next message."""
    return _line({"decision": "block", "reason": reason})


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class EventSpec:
    """An event that ctxctl answers. matcher: the pattern that its group gets; None for events without one. timeout:
    seconds that the settings file allows the hook. deadline: seconds after which the hook gives up by itself."""

    action: Action
    matcher: str | None
    timeout: int
    deadline: float


@dataclass(frozen=True, slots=True)
class HookAgent:
    """The hook protocol of an agent.

    title: its name for people. folder: its folder in a project and in the home folder; home_variable: the environment
    variable that names the latter instead. project_variable: the one that names the project to its hooks, empty where
    there is none. files: name of the settings file by scope, the narrowest scope first.
    events: what ctxctl answers; defaults: those that are installed unless others are named. context_limit: the longest
    text that a hook can bring into the window whole; measured: its length in the limit's own unit. notes: what a user
    must know after an installation. switched_off: what keeps all hooks from running, given the agent's home folder and
    the project's folder of the agent; None when nothing does.
    """

    name: str
    title: str
    folder: str
    home_variable: str
    project_variable: str
    files: Mapping[Scope, str]
    events: Mapping[str, EventSpec]
    defaults: tuple[str, ...]
    context_limit: int
    measured: Callable[[str], int]
    switched_off: Callable[[Path, Path], str | None]
    notes: tuple[str, ...] = field(default=())

    @property
    def default_scope(self) -> Scope:
        """The one that touches the fewest other people and projects."""
        return next(iter(self.files))


registry: Registry[HookAgent] = Registry("agent", "ctxctl.adapters.hooks.agents", "ctxctl.hooks")


def utf16(text: str) -> int:
    """Length as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8(text: str) -> int:
    """Length in bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


ANY = HookAgent(
    name="",
    title="an agent",
    folder="",
    home_variable="",
    project_variable="",
    files={"project": ""},
    events={
        "SessionStart": EventSpec("resume", None, 10, 8.0),
        "PreCompact": EventSpec("checkpoint", None, 10, 8.0),
        "Stop": EventSpec("checkpoint", None, 10, 8.0),
        "SessionEnd": EventSpec("checkpoint", None, 3, 1.2),
    },
    defaults=(),
    context_limit=10_000,
    measured=utf8,
    switched_off=lambda home, project: None,
)
"""What is answered to an agent that was not named: the events that all protocols share, the narrowest limits."""
