"""How large the window is, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxctl.model.limits import ModelTable, names_long_window
from ctxctl.model.transcript import Transcript

WindowSource = Literal["config", "transcript", "model table", "assumed", "unknown"]


@dataclass(frozen=True, slots=True)
class WindowSize:
    """tokens: None when unknown. source: `config` (the user said so), `transcript` (it states or proves it),
    `model table`, `assumed` (the model runs with either of two sizes), `unknown`."""

    tokens: int | None
    source: WindowSource


def window_of(given: int | None, transcript: Transcript, table: ModelTable) -> WindowSize:
    """The first that applies: what the user set, what the transcript states or proves, the model's row."""
    if given is not None:
        return WindowSize(given, "config")
    if transcript.window is not None:
        return WindowSize(transcript.window, "transcript")
    row = table.find(transcript.model)
    if transcript.model is not None and names_long_window(transcript.model):
        return WindowSize((row and row.long_window) or 1_000_000, "transcript")
    peak = max((u.context or 0 for u in transcript.usage if u.thread == transcript.main), default=0)
    if row is None or row.window is None:
        return WindowSize(None, "unknown")
    if row.long_window is not None:
        # one model, two sizes: a request above the smaller one proves the larger
        return WindowSize(row.long_window, "transcript") if peak > row.window else WindowSize(row.window, "assumed")
    if peak > row.window:
        return WindowSize(None, "unknown")  # the row is wrong for this session, and what is right is not known
    return WindowSize(row.window, "model table")
