"""What the commands over the state of a task share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli.io import Streams
from ctxctl.errors import UsageError

if TYPE_CHECKING:
    from ctxctl.model.state import AgentState
    from ctxctl.state.clean import Unclean
    from ctxctl.state.saving import Saved


def transcript_of(state: AgentState) -> str:
    """The transcript that a state came from. Raises UsageError when it is not there."""
    path = state.transcript.path
    if not path or not os.path.isfile(path):
        what = f"the state's transcript {path} is not there" if path else "the state came from no transcript"
        raise UsageError(
            f"nothing to save: {what}, and no change by hand was given",
            hint="ctxctl checkpoint SESSION.jsonl, or --add-todo TEXT, or --require-clean to check alone",
        )
    return path


def unclean_of(saved: Saved, folder: Path, settings: Any) -> tuple[Unclean, ...]:
    """What is left undone (requirement S6)."""
    from ctxctl.state.clean import unclean
    from ctxctl.state.environment import companions

    names = companions(settings.cross_window, (settings.compaction.notes_file, settings.contract.ledger_file))
    return unclean(saved.state, folder=folder, options=settings.cross_window, companions=names)


def show(saved: Saved, unclean: Sequence[Unclean] | None, streams: Streams, as_json: bool, settings: Any) -> None:
    """The state on stdout."""
    from ctxctl.reports.build.checkpoint import checkpoint_data, checkpoint_report

    if as_json:
        from dataclasses import asdict

        from ctxctl.reports.json import dumps, envelope

        shown = {"cross_window": asdict(settings.cross_window)}
        streams.payload(dumps(envelope("checkpoint", shown, checkpoint_data(saved, unclean))))
    else:
        streams.payload(streams.text([checkpoint_report(saved, unclean)]))
