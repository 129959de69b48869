"""Bringing the resume prompt into a window that begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxctl.adapters.hooks.base import RESUMED, HookAgent, HookEvent, context
from ctxctl.adapters.hooks.own import is_of_another, lies_beside
from ctxctl.adapters.hooks.saving import LOCK_WAIT, Answer, Setup, save, state_of
from ctxctl.errors import CtxctlError, TargetError
from ctxctl.model.state import AgentState

GIT_SECONDS = 0.4
HASH_SECONDS = 0.2
"""Seconds for git, and for the hashes of files, when a state is verified; what they don't get to is not told."""


GOES_ON = frozenset(("resume", "compact"))
"""Sources of a session's start after which it goes on itself, so that the state of another one is none of its own."""


def resume(event: HookEvent, agent: HookAgent, setup: Setup, now: datetime, *, own: bool) -> Answer:
    """Bring in the resume prompt, where there is a state and its task is not over. own: the setup is the session's
    alone, and not that of its project."""
    options = setup.options
    path = setup.folder / options.state_file
    state = state_of(setup)
    if state is None:
        return Answer(b"", "no state: nothing to bring in")
    if not own and event.source in GOES_ON and is_of_another(state.transcript, event):
        return Answer(b"", f"the state is of another session ({state.transcript.id}): nothing to bring in")
    state, note = caught_up(state, event, setup, now)
    if event.source not in RESUMED and not unfinished(state):
        return Answer(b"", f"{note}the task of the state is done: nothing to bring in")
    try:
        text = prompt_of(state, setup, agent)
        refused: dict[str, Any] = {}
    except TargetError:
        text = pointer(state, path, setup.folder / options.progress_file)
        refused = {"by": "hook", "target_tokens": options.resume_budget, "agent_limit": agent.context_limit}
    size = f"{agent.measured(text):,} of {agent.context_limit:,}"
    note += f"brought in window {state.window_id}: {size}" + _recorded(state, setup, now, refused)
    return Answer(context(event.name, text), note)


def caught_up(state: AgentState, event: HookEvent, setup: Setup, now: datetime) -> tuple[AgentState, str]:
    """The state with what its session did after the last checkpoint, as far as that can be had."""
    position = state.transcript
    if not lies_beside(position, event):
        return state, ""
    try:
        if os.stat(position.path).st_size <= position.size:
            return state, ""
        state, note = save(position.path, setup, now, event.name)
    except (CtxctlError, OSError) as error:
        return state, f"not caught up with the session: {error}; "
    return state, f"{note}; "


def unfinished(state: AgentState) -> bool:
    """Whether something is left to do."""
    return bool(state.current_subtask or state.remaining_subtasks or state.open_issues)


def prompt_of(state: AgentState, setup: Setup, agent: HookAgent) -> str:
    """The resume prompt: within `resume_budget` tokens, and within what the agent takes from a hook. Commands that tell
    whether a service runs are not run. Raises TargetError when what is never cut is too long."""
    from ctxctl.state.checks import verify
    from ctxctl.state.hashes import Hasher
    from ctxctl.state.resume import prompt
    from ctxctl.state.validate import validate
    from ctxctl.tokens.engines import count

    budget = setup.options.resume_budget
    verified = verify(
        state,
        setup.folder,
        setup.options,
        others=(setup.notes_file, setup.ledger_file),
        hasher=Hasher(seconds=HASH_SECONDS),
        git_seconds=GIT_SECONDS,
    )
    warnings = validate(state, verified)

    def made(size: Callable[[str], int]) -> str:
        return prompt(
            state,
            count=size,
            budget=budget,
            checks=verified.checks,
            stale=verified.stale,
            warnings=warnings,
            where=str(setup.folder / setup.options.state_file),
        ).text

    # what an agent takes is nearly always less than the budget: then tokens are counted once and not part by part
    text = made(both(lambda text: 0, agent.measured, budget, agent.context_limit))
    return text if count(text) <= budget else made(both(count, agent.measured, budget, agent.context_limit))


def both(count: Callable[[str], int], measured: Callable[[str], int], budget: int, limit: int) -> Callable[[str], int]:
    """A measure of texts that is at most `budget` only where `count` is so and `measured` at most `limit`."""
    return lambda text: max(count(text), -(-measured(text) * budget // limit))


def pointer(state: AgentState, path: Path, progress: Path) -> str:
    """What stands for a prompt that is too long for a hook: where the state lies, and how goal and step begin."""
    from ctxctl.model.text import shortened
    from ctxctl.state.files import sanitized

    lines = ["[CONTEXT_WINDOW_RESUME]", "The state of this task is longer than a hook may bring in."]
    for label, text in (
        ("Goal", state.task_goal),
        ("Current step", state.current_subtask.text if state.current_subtask else ""),
    ):
        if text:
            flat = " ".join(sanitized(text, tool_output=False).split())
            lines.append(f"{label} (first words): {shortened(flat, 600)}")
    lines.append(f"Read it before going on: `ctxctl resume {path}`, or {progress}")
    return "\n".join(lines)


def _recorded(state: AgentState, setup: Setup, now: datetime, refused: Mapping[str, Any]) -> str:
    """Put it into the audit trail; what kept it out, for the log: the window gets its prompt all the same. refused:
    what was longer than may be brought in."""
    from ctxctl.state import audit

    about = {"trigger": "hook", "state_version": state.state_version, "window_id": state.window_id}
    turn, id_ = state.transcript.turn or None, state.transcript.id
    events = [audit.Event("resume", about, turn, id_)]
    if refused:
        events.insert(0, audit.Event("budget_refusal", {**about, **refused}, turn, id_))
    try:
        audit.append(
            setup.folder / setup.options.audit_file,
            events,
            now=now,
            mode_of=str(setup.folder / setup.options.state_file),
            wait=LOCK_WAIT,
        )
    except (CtxctlError, OSError, ValueError) as error:
        return f"; not in the audit trail: {error}"
    return ""
