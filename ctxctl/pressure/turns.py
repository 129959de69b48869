"""The calls of the main thread, turn by turn: pressure, peak, and the sums of what they used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage, UsageTotals, total_usage
from ctxctl.pressure.monitor import ContextPressureMonitor, LevelChange, Reading, Spike, until_overflow
from ctxctl.pressure.readings import Readings
from ctxctl.pressure.result import AnalysisOptions, ContextState, Forecast, Peak
from ctxctl.pressure.window import WindowSize

WEIGHT = ("micro", "rollback", "full")
"""What names a turn before which several things happened: the last of these."""


def usage_of(
    transcript: Transcript,
) -> tuple[UsageTotals, dict[str, UsageTotals], tuple[tuple[str, bool, UsageTotals], ...]]:
    threads: dict[str, list[Usage]] = {}
    for call in transcript.usage:
        threads.setdefault(call.thread, []).append(call)
    branches = tuple(
        (b.leaf, b.live, total_usage(transcript.usage[i] for i in sorted(b.calls))) for b in transcript.branches
    )
    total = total_usage(transcript.usage, transcript.inherited)
    return total, {name: total_usage(calls) for name, calls in threads.items()}, branches


def main_calls(transcript: Transcript) -> Iterator[Usage]:
    return (u for u in transcript.usage if u.thread == transcript.main)


def pressure_of(
    transcript: Transcript,
    window: WindowSize,
    options: AnalysisOptions,
    counted: Sequence[float] | None = None,
    starts: frozenset[int] = frozenset(),
) -> tuple[Readings, list[Spike], tuple[LevelChange, ...]]:
    """Run the monitor over the calls of the main thread.

    counted: tokens of the window by turn (index 0 is turn 1), for calls of which nothing was reported; those are left
    out when it is None. starts: turns at which a new conversation, and so a new monitor, begins.
    """

    monitors: list[ContextPressureMonitor] = []
    cuts: dict[int, str] = {}
    for cut in transcript.compactions:
        cuts[cut.turn] = max(cuts.get(cut.turn, cut.kind), cut.kind, key=WEIGHT.index)

    def readings() -> Iterator[Reading]:
        for usage in main_calls(transcript):
            if not monitors or usage.turn in starts:
                monitors.append(
                    ContextPressureMonitor(window.tokens, thresholds=options.thresholds, options=options.pressure)
                )
            tokens, source = usage.context, "reported"
            if not tokens:
                if counted is None:
                    continue
                tokens, source = round(counted[usage.turn - 1]), "counted"
            yield monitors[-1].update(tokens, turn=usage.turn, source=source, compaction=cuts.get(usage.turn))

    found = Readings(readings())
    return found, [s for m in monitors for s in m.spikes], tuple(e for m in monitors for e in m.events)


def forecast_of(
    pressure: Readings, context: ContextState, window: WindowSize, options: AnalysisOptions, starts: frozenset[int]
) -> Forecast | None:
    """The forecast for the window now; None when its newest turn was not measured, or it did not grow yet."""
    last = pressure.index_of(context.at_turn)
    used = context.tokens
    if last is None or used is None or (context.reported is None and pressure[last].source == "reported"):
        return None
    added: list[int] = []
    for at in range(last, 0, -1):  # the first reading is no growth
        reading = pressure[at]
        if reading.turn in starts or len(added) == options.pressure.velocity_window:
            break
        if reading.added is not None:
            added.append(reading.added)
    if not added:
        return None
    velocity = sum(added) / len(added)
    return Forecast(velocity, until_overflow(used, window.tokens, velocity))


def peak_of(pressure: Readings) -> Peak | None:
    """The fullest turn, the first of equals."""
    if not pressure:
        return None
    tokens = pressure.tokens
    top = pressure[tokens.index(max(tokens))]
    return Peak(top.tokens, top.utilization, top.turn)


def newest_call(transcript: Transcript) -> Usage | None:
    """The newest call of the live branch whose context was reported; None when the window was cut down after it."""
    cut = max(
        (
            c.turn
            for c in transcript.compactions
            if (c.kind == "full" and not c.abandoned) or (c.kind == "rollback" and not transcript.branches)
        ),
        default=0,
    )
    newest = None
    for index, usage in enumerate(transcript.usage):
        if usage.thread == transcript.main and usage.context and index not in transcript.abandoned:
            newest = usage
    return newest if newest is None or newest.turn >= cut else None


def with_output(transcript: Transcript, call: Usage | None) -> int | None:
    """Tokens of the window once the call was answered."""
    if call is None or call.context is None:
        return None
    return call.context if transcript.context_has_answer else call.context + call.output
