"""The checkpoint goes with each compaction (requirement S7): up to date before it, pointing to its output after it."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ctxctl.facts.carry import counted_anew
from ctxctl.model.block import Block
from ctxctl.state.checkpoint import known
from ctxctl.state.files import time_stamp
from ctxctl.state.options import StateOptions
from ctxctl.state.saving import Saved, Wish, checkpoint, without_secrets
from ctxctl.state.store import StateStore
from ctxctl.trace.grown import read_grown


def knows(folder: Path, options: StateOptions, path: str, id_: str | None) -> bool:
    """Whether the state in a folder came from a transcript. id_: as the transcript states it. Raises InputError for a
    state that can't be read."""
    state = StateStore(folder / options.state_file, folder / options.progress_file).load()
    if state is None or path == "-":
        return False
    position = state.transcript
    return position.path == os.path.abspath(path) or bool(id_ and position.id == id_)


def before(path: str, folder: Path, options: StateOptions, now: datetime, *, format_name: str | None = None) -> Saved:
    """Save what the transcript tells so far. Raises what `checkpoint` does."""
    return checkpoint(Wish(path, format_name=format_name, trigger="compact"), folder, options, now)


def after(path: str, folder: Path, options: StateOptions, now: datetime) -> tuple[str, ...]:
    """The transcript was replaced by its compacted form, and a new window begins: reading goes on behind what stands in
    the file now. Returns the files written. Raises what `checkpoint` does."""
    store = StateStore(folder / options.state_file, folder / options.progress_file, options.lock_wait)
    with store.updating() as update:
        if update.state is None:
            return ()
        state = update.state
        grown = read_grown(path, None, lambda _: _passed, tail_turns=0)
        carry = counted_anew(state.transcript.carry, grown.position.turn, grown.position.exchange)
        update.save(
            without_secrets(
                replace(
                    state,
                    state_version=state.state_version + 1,
                    window_id=state.window_id + 1,
                    saved_at=time_stamp(now),
                    transcript=replace(grown.position, carry=carry, window=state.window_id + 1),
                    inherited=known(state, same=True),  # the file no longer holds what was there before
                )
            )
        )
    return str(store.path), str(store.progress)


def _passed(block: Block, number: int) -> None:
    """All of it was told before."""
