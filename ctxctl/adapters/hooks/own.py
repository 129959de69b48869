"""Sessions that run side by side in one project: each has a state of its own.

The project's state goes from one session to the next. One that would take it from a session which is still at work
mixes two tasks, and one that is older than it can't: such a session gets its own files beside it,
`agent_state.SESSION.json` and `agent_progress.SESSION.md`.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

from ctxctl.adapters.hooks.base import HookEvent
from ctxctl.adapters.hooks.saving import Setup, state_of
from ctxctl.errors import CtxctlError, RefusedError
from ctxctl.model.state import Position

LIVE = 600.0
"""A session whose file was written to in the last so many seconds, and after its checkpoint, is still at work."""
_ID = 64
"""Characters of a session's id in a file's name: all of a UUID. In those of Codex the first eight alone are the time,
the same for a minute."""
_DAY = re.compile(r"/\d{4}/\d\d/\d\d$")
"""The folders of a day, in which Codex keeps the sessions that began on it."""


def set_up_for(event: HookEvent, setup: Setup) -> Setup:
    """The setup with the files that an event's session uses: its own where it has them or needs them."""
    own = own_setup(event, setup)
    if own is not None:
        return own
    mine = _named(event, setup)
    try:
        state = state_of(setup)
    except CtxctlError:
        return setup
    return mine if mine is not None and state is not None and _is_at_work(state.transcript, event) else setup


def own_setup(event: HookEvent, setup: Setup) -> Setup | None:
    """The setup with the session's own files, None for a session that has none."""
    mine = _named(event, setup)
    return mine if mine is not None and (mine.folder / mine.options.state_file).is_file() else None


def after_refusal(event: HookEvent, setup: Setup, error: RefusedError) -> Setup | None:
    """The setup for a session whose checkpoint was refused because the state is of another one that went on later:
    both run, and neither is the next window of the other. None for every other refusal."""
    from ctxctl.trace.grown import FORCE

    mine = _named(event, setup)
    if error.hint != FORCE or mine is None:
        return None
    try:
        state = state_of(setup)
    except CtxctlError:
        return None
    return mine if state is not None and is_of_another(state.transcript, event) else None


def is_of_another(position: Position, event: HookEvent) -> bool:
    """Whether a state came from another session than the event's, by the id and the file of both. One that came from
    no session, or an event that names none, is no other's."""
    if position.id and position.id == event.session:
        return False
    if position.path and event.transcript is not None and _real(event.transcript) == os.path.realpath(position.path):
        return False
    return bool((position.id or position.path) and (event.session or event.transcript))


def _named(event: HookEvent, setup: Setup) -> Setup | None:
    id_ = re.sub(r"[^0-9A-Za-z]", "", event.session or "")[:_ID]
    if not id_:
        return None
    mine = tuple(_with(name, id_) for name in (setup.options.state_file, setup.options.progress_file))
    return replace(setup, options=replace(setup.options, state_file=mine[0], progress_file=mine[1]))


def _with(name: str, id_: str) -> str:
    path = Path(name)
    return str(path.with_name(f"{path.stem}.{id_}{path.suffix}"))


def _is_at_work(position: Position, event: HookEvent) -> bool:
    """Whether the session that a state came from is another one, and went on a short while ago."""
    if not is_of_another(position, event) or not lies_beside(position, event):
        return False
    try:
        found = os.stat(os.path.realpath(position.path))
    except OSError:
        return False
    return found.st_size > position.size and time.time() - found.st_mtime < LIVE


def lies_beside(position: Position, event: HookEvent) -> bool:
    """Whether the session that a state came from is the event's own, or one that its agent keeps in the same place. No
    other is looked at: a state file may come from elsewhere, and says nothing about what may be read."""
    if not position.path or event.transcript is None:
        return False
    return _place(_real(event.transcript)) == _place(position.path)


def _real(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))


def _place(path: str) -> str:
    return _DAY.sub("", os.path.dirname(os.path.realpath(path)).replace(os.sep, "/"))
