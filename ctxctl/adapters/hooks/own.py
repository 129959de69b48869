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
_ID = 8
"""Characters of a session's id in a file's name."""


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
    """Whether the session that a state came from is another one, and went on a short while ago. Only one that lies
    beside the event's own is looked at: a state file may come from elsewhere."""
    if not position.path or event.transcript is None or position.id == event.session:
        return False
    here, there = os.path.realpath(os.path.expanduser(event.transcript)), os.path.realpath(position.path)
    if here == there or os.path.dirname(here) != os.path.dirname(there):
        return False
    try:
        found = os.stat(there)
    except OSError:
        return False
    return found.st_size > position.size and time.time() - found.st_mtime < LIVE
