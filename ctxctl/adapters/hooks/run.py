"""What a hook does: save the state before a compaction, bring the resume prompt into a window that begins."""

from __future__ import annotations

import os
from datetime import datetime

from ctxctl.adapters.hooks.base import HookAgent, HookEvent, block
from ctxctl.adapters.hooks.bringing import resume
from ctxctl.adapters.hooks.own import after_refusal, own_setup, set_up_for
from ctxctl.adapters.hooks.places import is_settings
from ctxctl.adapters.hooks.saving import Answer, Setup, check_inside, save, state_of
from ctxctl.errors import CtxctlError, InputError, RefusedError
from ctxctl.model.state import AgentState

NAMED = 10
"""Things that are not clean, of those that an agent is told."""


def respond(event: HookEvent, agent: HookAgent, setup: Setup, now: datetime) -> Answer:
    """Do what an event asks for and say what its agent is told. Raises CtxctlError when it can't be done."""
    spec = agent.events.get(event.name)
    if spec is None:
        return Answer(b"", f"{event.name} is not an event that ctxctl answers")
    if event.agent_id is not None:
        return Answer(b"", "inside of a sub-agent: nothing to do")
    check_inside(setup)
    if spec.action == "resume":
        # a session that begins catches up with the one before, and only its own state is none of that
        own = own_setup(event, setup)
        if own is not None:
            check_inside(own)
        return resume(event, agent, own or setup, now, own=own is not None)
    used = set_up_for(event, setup)
    check_inside(used)
    try:
        used, state, note = _saved(event, setup, used, now)
    except (CtxctlError, OSError) as error:
        if not _must_be_clean(event, setup):
            raise
        # what is left over is left over, whether its state could be saved or not
        found, note = _as_it_stands(used), f"error: {error}"
        reason = not_clean(found or AgentState(), used, agent, saved=found is not None)
    else:
        reason = not_clean(state, used, agent) if _must_be_clean(event, setup) else ""
    if reason:
        return Answer(block(reason), f"{note}; sent back: {reason.splitlines()[0]}")
    return Answer(b"", note)


def _must_be_clean(event: HookEvent, setup: Setup) -> bool:
    return event.name == "Stop" and setup.clean and not event.stop_active


def _saved(event: HookEvent, setup: Setup, used: Setup, now: datetime) -> tuple[Setup, AgentState, str]:
    """Save the state of an event's session; the setup that it was saved by, which may be the session's own by now."""
    if event.transcript is None:
        raise InputError("the hook's JSON names no `transcript_path`: nothing to save")
    path = os.path.expanduser(event.transcript)
    if not os.path.isfile(path):
        raise InputError("there is no such transcript: nothing to save", path=path)
    try:
        return used, *save(path, used, now, event.name)
    except RefusedError as error:
        own = after_refusal(event, setup, error) if used == setup else None
        if own is None:
            raise
    check_inside(own)
    state, note = save(path, own, now, event.name)
    return own, state, f"beside the state of a session that went on later: {note}"


def _as_it_stands(setup: Setup) -> AgentState | None:
    """The state that is there, None where none can be read."""
    try:
        return state_of(setup)
    except CtxctlError:
        return None


def not_clean(state: AgentState, setup: Setup, agent: HookAgent, *, saved: bool = True) -> str:
    """What an agent is told that stops with things left open; empty when all is clean. The settings in which its hooks
    stand are no work of its task. saved: there is a state, so that there must be a progress file too."""
    from ctxctl.state.checks import verify
    from ctxctl.state.clean import unclean

    verified = verify(state, setup.folder, setup.options, others=(setup.notes_file, setup.ledger_file))
    found = unclean(state, setup.folder, setup.options, verified=verified)
    # the session goes on while its hook runs: that it is newer than the checkpoint just taken is no one's fault
    found = tuple(one for one in found if one.code != "transcript_newer")
    if not saved:
        found = tuple(one for one in found if not one.code.startswith("progress_"))
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
