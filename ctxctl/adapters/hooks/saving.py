"""Saving the state of a session from its agent's hook."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ctxctl.errors import RefusedError
from ctxctl.model.state import AgentState
from ctxctl.state.options import StateOptions

MOST_BYTES = 22_000_000
"""Of a session that grew by more than this since the state, the newest part alone is read. 20 MB are to be answered in
a second, and are so with room to spare; a file that is called 20 MB may hold 20 x 1,048,576 bytes and a little."""

OUTSIDE = 0.3
"""Seconds for git, and for the hashes of files."""
LOCK_WAIT = 0.3
"""Seconds that a hook waits for another writer of the state, and of the audit trail."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where a hook works and by which settings. clean: an agent that stops is sent back once with what is not clean."""

    folder: Path
    options: StateOptions = field(default_factory=StateOptions)
    notes_file: str = "agent_notes.md"
    ledger_file: str = "agent_ledger.jsonl"
    clean: bool = False


def check_inside(setup: Setup) -> None:
    """Raises RefusedError where a companion file is none of the state's folder. Nobody asks a hook to write, and both
    the links of a project and its settings may come from elsewhere: neither may point it to the files of its user."""
    folder = os.path.realpath(setup.folder)
    options = setup.options
    for name in (options.state_file, options.progress_file, options.audit_file, setup.notes_file):
        place = os.path.realpath(setup.folder / name)
        if os.path.commonpath((folder, place)) != folder or place == folder:
            raise RefusedError(
                f"it lies outside of the state's folder, at {place}: a hook writes there only",
                path=str(setup.folder / name),
                hint="--state-dir names the folder",
            )


@dataclass(frozen=True, slots=True)
class Answer:
    """out: what stdout gets, empty for nothing to say. note: what was done, for the log."""

    out: bytes
    note: str


def state_of(setup: Setup) -> AgentState | None:
    """The state as it stands, None where there is none. Raises InputError for one that can't be read."""
    from ctxctl.state.store import StateStore

    return StateStore(setup.folder / setup.options.state_file, setup.folder / setup.options.progress_file).load()


def save(path: str, setup: Setup, now: datetime, why: str) -> tuple[AgentState, str]:
    """Take a checkpoint of a session: its state, and a note that says which."""
    from ctxctl.state.saving import Wish, checkpoint

    wish = Wish(
        path,
        most=MOST_BYTES,
        wait=LOCK_WAIT,
        seconds=OUTSIDE,
        notes_file=setup.notes_file,
        ledger_file=setup.ledger_file,
        trigger=f"hook {why}",
        notes=why == "PreCompact",  # before any compaction for what is not noted yet (requirement C3)
    )
    saved = checkpoint(wish, setup.folder, setup.options, now)
    state = saved.state
    skipped = state.transcript.skipped
    told = [f"saved version {state.state_version} of window {state.window_id}"]
    told += [f"{skipped:,} bytes of the session were never read"] if skipped else []
    return state, "; ".join((*told, *saved.told))
