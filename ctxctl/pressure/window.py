"""How large the window is, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxctl.model.limits import ModelRow, ModelTable, names_long_window
from ctxctl.model.transcript import Transcript

WindowSource = Literal["config", "transcript", "model table", "assumed", "unknown"]


@dataclass(frozen=True, slots=True)
class WindowSize:
    """tokens: None when unknown. source: `config` (the user said so), `transcript` (it states or proves it),
    `model table`, `assumed` (the model runs with either of two sizes), `unknown`."""

    tokens: int | None
    source: WindowSource


def window_of(given: int | None, transcript: Transcript, table: ModelTable) -> WindowSize:
    """The first that applies: what the user set, what the transcript states or proves, the row of the model that
    answered last."""
    if given is not None:
        return WindowSize(given, "config")
    if transcript.window is not None:
        return WindowSize(transcript.window, "transcript")
    model = _current(transcript)
    row = table.find(model)
    named = {model, *(name for name in transcript.models if row is not None and table.find(name) is row)}
    if any(name is not None and names_long_window(name) for name in named):
        return WindowSize((row and row.long_window) or 1_000_000, "transcript")
    if row is None or row.window is None:
        return WindowSize(None, "unknown")
    peak = _largest(transcript, row, table)
    if row.long_window is not None:
        # one model, two sizes: a request above the smaller one proves the larger
        return WindowSize(row.long_window, "transcript") if peak > row.window else WindowSize(row.window, "assumed")
    if peak > row.window:
        return WindowSize(None, "unknown")  # the row is wrong for this session, and what is right is not known
    return WindowSize(row.window, "model table")


def why_unknown(transcript: Transcript, table: ModelTable) -> str:
    """What a user should know of a window that `window_of` does not know."""
    model = _current(transcript)
    if model is None:
        return "no model is named"
    row = table.find(model)
    if row is None:
        like = table.suggest(model)
        return f"model {model!r} is not in the table" + (f" (like it: {', '.join(like)})" if like else "")
    if row.window is None:
        return f"the table has no window for model {row.id!r}"
    return (
        f"a request of {_largest(transcript, row, table):,} tokens was larger than the window of {row.window:,} that "
        f"the table has for {row.id!r}"
    )


def _current(transcript: Transcript) -> str | None:
    """The model that answered last on the main thread."""
    calls = reversed(transcript.usage)
    newest = next((u.model for u in calls if u.thread == transcript.main and u.model and u.reported), None)
    return newest or transcript.model


def _largest(transcript: Transcript, row: ModelRow, table: ModelTable) -> int:
    """Tokens of the fullest call of the main thread that a row is about."""
    rows: dict[str | None, bool] = {}
    largest = 0
    for usage in transcript.usage:
        if usage.thread == transcript.main and usage.context is not None and usage.context > largest:
            name = usage.model or transcript.model
            if name not in rows:
                rows[name] = table.find(name) is row
            if rows[name]:
                largest = usage.context
    return largest
