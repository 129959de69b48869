"""A session that is being written, as it is now: what `ctxctl watch` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxctl.budgets.cost import cost_of, session_cost
from ctxctl.budgets.forecast import minutes_of, pace_of
from ctxctl.health.alerts import alerts_of, is_stable
from ctxctl.health.monitor import ContextHealthMonitor
from ctxctl.health.result import TurnMetrics
from ctxctl.health.session import Examining
from ctxctl.model.finding import Finding
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage
from ctxctl.pressure.readings import Readings
from ctxctl.pressure.result import ContextState
from ctxctl.pressure.turns import forecast_of, newest_call, pressure_of, with_output
from ctxctl.pressure.window import window_of

CURVE = 400
"""Newest turns whose tokens a view holds."""
PACE = 10
"""Newest turns over which seconds per turn are taken."""


@dataclass(frozen=True, slots=True)
class View:
    """A session now. None: not known.

    state: `live`, `waiting` (nothing in it yet), `missing` (the file is gone), `unreadable`; note: what there is to say
    of that. changed: when the file was last written, seconds since 1970. turn: of the newest call of the main thread.
    tokens: of the window, as the provider reported them at the newest call, with its answer and what waits behind it
    (`waiting`, an estimate; None where only usage is read). source: `reported`, or `stated` where the agent compacted
    the window since and says what is left. utilization, level: of `tokens`. velocity: tokens added per turn lately;
    burn_rate: over the last 10 turns. turns_left: until the window is full, -1 when it is; minutes_left: at the pace of
    the last turns. cost: USD at list prices, with sub-agents; hit_rate: share of the prompts that the cache served.
    compactions: full ones. curve: tokens at the newest turns, at most 400. alerts: requirement H2. last_tool: newest
    tool called. partial: only usage is read of so large a file.
    """

    path: str
    state: str = "live"
    note: str | None = None
    changed: float | None = None
    session: str | None = None
    format: str | None = None
    model: str | None = None
    turn: int | None = None
    tokens: int | None = None
    reported: int | None = None
    waiting: int | None = None
    source: str | None = None
    window: int | None = None
    window_source: str = "unknown"
    utilization: float | None = None
    level: str | None = None
    velocity: float | None = None
    burn_rate: float | None = None
    turns_left: int | None = None
    minutes_left: float | None = None
    seconds_per_turn: float | None = None
    cost: float | None = None
    hit_rate: float | None = None
    compactions: int = 0
    requests: int = 0
    curve: tuple[int, ...] = ()
    alerts: tuple[Finding, ...] = ()
    last_tool: str | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Held:
    transcript: Transcript


def view_of(
    transcript: Transcript,
    calls: Sequence[Usage],
    table: ModelTable,
    options: Examining,
    waiting: int | None,
) -> View:
    """The view of a transcript. calls: with those of its sub-agents. waiting: tokens behind the newest answer."""
    analysis = options.analysis
    window = window_of(analysis.window, transcript, table)
    pressure, _, _ = pressure_of(transcript, window, analysis)
    newest = newest_call(transcript)
    reported = newest.context if newest is not None else None
    turn = newest.turn if newest is not None else None
    context = ContextState(
        reported,
        with_output(transcript, newest),
        None,
        None,
        None,
        turn,
        None,
        None,
        pending=waiting if newest else None,
    )
    tokens, source = context.tokens, "reported"
    if tokens is None:
        tokens, source = _stated(transcript), "stated"
    forecast = forecast_of(pressure, context, window, analysis, frozenset())
    monitor = ContextHealthMonitor(
        window.tokens, thresholds=analysis.thresholds, pressure=analysis.pressure, options=options.health, keep=None
    )
    series = _series(transcript, pressure, table, monitor)
    used = tokens / window.tokens if tokens is not None and window.tokens else None
    metrics = replace(monitor.snapshot(), utilization=used)
    alerts = alerts_of(series, metrics, options.health.alerts, is_stable(_Held(transcript)))
    seconds = pace_of([t.seconds for t in series[-PACE:] if t.seconds is not None])
    left = forecast.turns if forecast is not None else None
    return View(
        transcript.path,
        session=transcript.id,
        format=transcript.format,
        model=transcript.model,
        turn=pressure[-1].turn if pressure else None,
        tokens=tokens,
        reported=reported,
        waiting=waiting,
        source=source if tokens is not None else None,
        window=window.tokens,
        window_source=window.source,
        utilization=used,
        level=analysis.thresholds.level(used) if used is not None else None,
        velocity=forecast.velocity if forecast is not None else None,
        burn_rate=metrics.burn_rate,
        turns_left=left,
        minutes_left=minutes_of(None if left is None else max(0, left), seconds),
        seconds_per_turn=seconds,
        cost=session_cost(calls, table, transcript.model),
        hit_rate=metrics.cache_hit_rate,
        compactions=sum(c.kind == "full" and not c.abandoned for c in transcript.compactions),
        requests=sum(u.reported for u in calls),
        curve=tuple(pressure.tokens[-CURVE:]),
        # what is over by now is for who looks at the whole session
        alerts=tuple(a for a in alerts if a.code not in options.health.ignore and a.turn in (None, series[-1].turn)),
    )


def _stated(transcript: Transcript) -> int | None:
    """Tokens that the newest compaction says it left, where no call was made since."""
    full = [c for c in transcript.compactions if c.kind == "full" and not c.abandoned]
    return full[-1].after if full else None


def _series(
    transcript: Transcript, pressure: Readings, table: ModelTable, monitor: ContextHealthMonitor
) -> list[TurnMetrics]:
    """The turns of the main thread through the health monitor, as far as usage tells of them."""
    main = {u.turn: u for u in transcript.usage if u.thread == transcript.main}
    cached = any(u.cache_read or u.cache_write for u in main.values())
    layers: dict[int, list[str]] = {}
    for cut in transcript.compactions:
        if not cut.abandoned:
            layers.setdefault(cut.turn, []).append(cut.kind)
    refused = {overflow.turn for overflow in transcript.overflows}
    rows = {name: table.find(name) for name in {u.model or transcript.model for u in main.values()}}
    series: list[TurnMetrics] = []
    before: float | None = None
    for reading in pressure:
        call = main[reading.turn]
        sent = call if call.reported and call.prompt else None
        row = rows[call.model or transcript.model]
        series.append(
            monitor.record_turn(
                reading.tokens,
                added=reading.added if series else None,
                turn=reading.turn,
                prompt=sent.prompt if sent is not None else None,
                cache_read=sent.cache_read if sent is not None and cached else None,
                compactions=layers.get(reading.turn, ()),
                cost=cost_of(sent, row) if sent is not None and row is not None else None,
                seconds=max(0.0, call.time - before) if call.time is not None and before is not None else None,
                overflow=reading.turn in refused,
            )
        )
        before = call.time if call.time is not None else before
    return series
