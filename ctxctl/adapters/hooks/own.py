"""Sessions that run side by side in one project: each has a state of its own.

The project's state goes from one session to the next. One that would take it from a session which is still at work
mixes two tasks, so it gets its own files beside it: `agent_state.SESSION.json` and `agent_progress.SESSION.md`.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

from ctxctl.adapters.hooks.base import HookEvent
from ctxctl.adapters.hooks.saving import Setup
from ctxctl.errors import CtxctlError
from ctxctl.model.state import Position
from ctxctl.state import record

LIVE = 600.0
"""A session whose file was written to in the last so many seconds, and after its checkpoint, is still at work."""
_ID = 64
"""Characters of a session's id in a file's name: all of a UUID. In those of Codex the first eight alone are the time,
the same for a minute."""
_DAY = re.compile(r"/\d{4}/\d\d/\d\d$")
"""The folders of a day, in which Codex keeps the sessions that began on it."""


def set_up_for(event: HookEvent, setup: Setup) -> Setup:
    """The setup with the files that an event's session uses: its own where it has them or needs them."""
    mine = _named(event, setup)
    if mine is None:
        return setup
    if (setup.folder / mine.options.state_file).is_file():
        return mine
    try:
        state = record.load(setup.folder / setup.options.state_file)
    except CtxctlError:
        return setup
    return mine if _is_at_work(state.transcript, event) else setup


def _named(event: HookEvent, setup: Setup) -> Setup | None:
    id_ = re.sub(r"[^0-9A-Za-z]", "", event.session or "")[:_ID]
    if not id_:
        return None
    options = replace(
        setup.options,
        state_file=_with(setup.options.state_file, id_),
        progress_file=_with(setup.options.progress_file, id_),
    )
    return replace(setup, options=options)


def _with(name: str, id_: str) -> str:
    path = Path(name)
    return str(path.with_name(f"{path.stem}.{id_}{path.suffix}"))


def _is_at_work(position: Position, event: HookEvent) -> bool:
    """Whether the session that a state came from is another one, and went on a short while ago."""
    if position.id == event.session or not lies_beside(position, event):
        return False
    here, there = os.path.realpath(os.path.expanduser(event.transcript or "")), os.path.realpath(position.path)
    try:
        found = os.stat(there)
    except OSError:
        return False
    return here != there and found.st_size > position.size and time.time() - found.st_mtime < LIVE


def lies_beside(position: Position, event: HookEvent) -> bool:
    """Whether the session that a state came from is the event's own, or one that its agent keeps in the same place. No
    other is looked at: a state file may come from elsewhere, and says nothing about what may be read."""
    if not position.path or event.transcript is None:
        return False
    return _place(os.path.expanduser(event.transcript)) == _place(position.path)


def _place(path: str) -> str:
    return _DAY.sub("", os.path.dirname(os.path.realpath(path)).replace(os.sep, "/"))
