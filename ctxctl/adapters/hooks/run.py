"""What a hook does: save the state before a compaction, bring the resume prompt into a window that begins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from ctxctl.adapters.hooks.base import HookAgent, HookEvent, block
from ctxctl.adapters.hooks.bringing import resume
from ctxctl.adapters.hooks.own import set_up_for
from ctxctl.adapters.hooks.places import is_settings
from ctxctl.adapters.hooks.saving import Answer, Setup, check_inside, save
from ctxctl.errors import InputError
from ctxctl.model.state import AgentState

NAMED = 10
"""Things that are not clean, of those that an agent is told."""


def state_folder(event: HookEvent, given: Path | None, state_file: str, environment: Mapping[str, str]) -> Path:
    """Where the state lies: the folder that was given, else the nearest one from the event's working folder up to the
    root of its project that holds a state, else the working folder itself.

    An agent's working folder moves with its `cd`, so the project is the one that it names (`CLAUDE_PROJECT_DIR`), else
    the repository; without either, only the working folder is looked at. Raises InputError when there is no folder.
    """
    if event.cwd is None and given is None:
        raise InputError("the hook's JSON names no `cwd`, and --state-dir was not given")
    start = Path(event.cwd or ".")
    root = _root(start, environment)
    if given is not None:
        found = (root or start) / given
    else:
        inner = [start, *start.parents]
        inner = inner[: inner.index(root) + 1] if root is not None else inner[:1]
        found = next((folder for folder in inner if (folder / state_file).is_file()), None) or (
            root if root is not None and _named(start, environment) else start
        )
    if not found.is_dir():
        raise InputError("there is no such folder, and a hook makes none", path=str(found))
    return found


def _named(start: Path, environment: Mapping[str, str]) -> Path | None:
    named = environment.get("CLAUDE_PROJECT_DIR")
    root = Path(named) if named else None
    return root if root is not None and root.is_absolute() and (root == start or root in start.parents) else None


def _root(start: Path, environment: Mapping[str, str]) -> Path | None:
    named = _named(start, environment)
    if named is not None:
        return named
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)


def respond(event: HookEvent, agent: HookAgent, setup: Setup, now: datetime) -> Answer:
    """Do what an event asks for and say what its agent is told. Raises CtxctlError when it can't be done."""
    spec = agent.events.get(event.name)
    if spec is None:
        return Answer(b"", f"{event.name} is not an event that ctxctl answers")
    if event.agent_id is not None:
        return Answer(b"", "inside of a sub-agent: nothing to do")
    check_inside(setup)
    if spec.action == "resume":
        own = set_up_for(event, setup)
        # a session that begins catches up with the one before, and only its own state is none of that
        setup = own if (own.folder / own.options.state_file).is_file() else setup
        check_inside(setup)
        return resume(event, agent, setup, now)
    if event.transcript is None:
        raise InputError("the hook's JSON names no `transcript_path`: nothing to save")
    path = os.path.expanduser(event.transcript)
    if not os.path.isfile(path):
        raise InputError("there is no such transcript: nothing to save", path=path)
    setup = set_up_for(event, setup)
    check_inside(setup)
    state, note = save(path, setup, now, event.name)
    if event.name == "Stop" and setup.clean and not event.stop_active:
        reason = not_clean(state, setup, agent)
        if reason:
            return Answer(block(reason), f"{note}; sent back: {reason.splitlines()[0]}")
    return Answer(b"", note)


def not_clean(state: AgentState, setup: Setup, agent: HookAgent) -> str:
    """What an agent is told that stops with things left open; empty when all is clean. The settings in which its hooks
    stand are no work of its task."""
    from ctxctl.state.checks import verify
    from ctxctl.state.clean import unclean

    verified = verify(state, setup.folder, setup.options, others=(setup.notes_file, setup.ledger_file))
    found = unclean(state, setup.folder, setup.options, verified=verified)
    # the session goes on while its hook runs: that it is newer than the checkpoint just taken is no one's fault
    found = tuple(one for one in found if one.code != "transcript_newer")
    top = verified.git.top or ""
    found = tuple(one for one in found if one.code != "uncommitted" or not is_settings(agent, top, one.what))
    if not found:
        return ""
    lines = [f"{len(found)} not clean before this window closes:"]
    lines += [f"- {one.code.replace('_', ' ')}: {one.what} ({one.hint})" for one in found[:NAMED]]
    if len(found) > NAMED:
        lines.append(f"- and {len(found) - NAMED} more")
    lines.append("Settle them, or say why they stay as they are; you are asked once.")
    return "\n".join(lines)
