"""`analyze`: one transcript, read once and measured."""

from __future__ import annotations

import os

from ctxctl.formats import scan
from ctxctl.formats.streams import Progress
from ctxctl.model.block import Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Diagnostic
from ctxctl.pressure.result import Analysis, AnalysisOptions, ContextState, SpikeFound
from ctxctl.pressure.shape import shape_of
from ctxctl.pressure.turns import forecast_of, newest_call, peak_of, pressure_of, usage_of, with_output
from ctxctl.pressure.window import window_of

__all__ = ["Analysis", "AnalysisOptions", "analyze"]


def analyze(
    path: str, table: ModelTable, options: AnalysisOptions | None = None, progress: Progress | None = None
) -> Analysis:
    """Read and measure the transcript at a path (or `-`).

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    options = options or AnalysisOptions()
    if options.reported_only:
        return _reported(path, table, options, progress)
    from ctxctl.pressure.measure import WATCHED, Facts, measure
    from ctxctl.trace.tally import Tally

    facts = Facts()
    tally = Tally(size_hint=_size(path))
    add, see = tally.add, facts.see

    def emit(block: Block) -> None:
        if block.kind in WATCHED:
            see(block, len(tally))
        add(block)

    try:
        transcript = scan(
            path,
            emit,
            format_name=options.format_name,
            companions=options.companions,
            progress=progress,
            on_model=tally.saw_model,
        )
        row = table.find(transcript.model)
        tally.finish(transcript.model, row.image_rule if row else None, transcript.stated)
    finally:
        tally.close()
    return measure(transcript, tally, facts, table, options)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size if path != "-" else None
    except OSError:
        return None


def _reported(path: str, table: ModelTable, options: AnalysisOptions, progress: Progress | None) -> Analysis:
    transcript = scan(
        path,
        lambda block: None,
        format_name=options.format_name,
        companions=options.companions,
        usage_only=True,
        progress=progress,
    )
    window = window_of(options.window, transcript, table)
    pressure, spikes, events = pressure_of(transcript, window, options)
    newest = newest_call(transcript)
    context = ContextState(
        newest.context if newest is not None else None,
        with_output(transcript, newest),
        None,
        None,
        None,
        newest.turn if newest is not None else None,
        None,
        None,
    )
    note = Diagnostic(
        "info",
        "lines_not_read",
        "only lines that carry usage or a compaction were read; the other figures are null, and what waits behind the "
        "newest answer is not in the window now",
    )
    return Analysis(
        transcript,
        window,
        *usage_of(transcript),
        context,
        pressure,
        peak_of(pressure),
        tuple(SpikeFound(s.turn, s.tokens, s.mean, s.ratio, None) for s in spikes),
        events,
        shape_of(pressure.tokens),
        (*transcript.diagnostics, note),
        forecast=forecast_of(pressure, context, window, options, frozenset()),
        turns=len(pressure),
        watermark=options.pressure.watermark,
        act_from=options.act_from,
    )
