"""The metrics of a recorded session: what the live monitor says of it, fed turn by turn (requirement H1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxctl.budgets.cost import cost_of
from ctxctl.health.monitor import ContextHealthMonitor, chosen
from ctxctl.health.result import Metrics, TurnMetrics
from ctxctl.health.resumes import resumes_of
from ctxctl.health.session import Session
from ctxctl.model.limits import ModelRow
from ctxctl.model.unit import CLEARED_TOKENS
from ctxctl.model.usage import Usage

if TYPE_CHECKING:
    from ctxctl.health.fidelity import Fidelity


def metrics_of(session: Session, fidelity: Fidelity | None = None) -> tuple[Metrics, list[TurnMetrics]]:
    """A session as a whole, and each of its turns; of several conversations in a file, those of the largest.

    Tokens of a turn are those that the provider reported, counted ones where it did not.
    """
    transcript, analysis = session.transcript, session.analysis
    monitor = ContextHealthMonitor(
        session.window,
        thresholds=session.options.analysis.thresholds,
        pressure=session.options.analysis.pressure,
        options=session.options.health,
        keep=None,
    )
    series = _run(session, monitor)
    why: dict[str, str] = {}
    for before, after in replaced(session).values():
        if after:
            monitor.record_compaction(before, after)
        else:
            why["compression_ratio"] = "the transcript does not hold what the compaction wrote"
    if "resume_success_rate" in session.options.health.metrics:
        for resume in resumes_of(session):
            monitor.record_resume(resume.ok)
        why["resume_success_rate"] = "no window began with a resume that can be judged"
    tokens = analysis.context.tokens
    known = session.window and tokens is not None
    if session.window and tokens is None:
        why["utilization"] = "the tokens of the window are unknown"
    if fidelity is not None and fidelity.score is None:
        why["fidelity"] = getattr(fidelity, "why", None) or "no probe could be asked"
    elif fidelity is None and not any(c.kind == "full" and not c.abandoned for c in transcript.compactions):
        why["fidelity"] = "nothing was compacted"
    late = _behind(session)
    if "full" in late and "compression_ratio" not in why:
        why["compression_ratio"] = "no call follows the compaction yet"
    metrics = monitor.snapshot()
    if series and late and metrics.compaction_frequency is not None:
        rates = {
            kind: rate + 100 * late.count(kind) / len(series) for kind, rate in metrics.compaction_frequency.items()
        }
        metrics = replace(metrics, compaction_frequency=rates)
    metrics = replace(
        metrics,
        utilization=tokens / session.window if known and session.window and tokens is not None else None,
        fidelity=fidelity.score if fidelity is not None else None,
        tool_result_bloat=_bloat(session),
        token_drift=analysis.context.drift,
        overflow_turns=len(transcript.overflows) if series or transcript.overflows else None,
    )
    if fidelity is not None and fidelity.score is not None:
        newest = next((at for at in reversed(range(len(series))) if "full" in series[at].compactions), None)
        if newest is not None:
            series[newest] = replace(series[newest], fidelity=fidelity.score)
    return chosen(metrics, session.options.health, why), series


def _run(session: Session, monitor: ContextHealthMonitor) -> list[TurnMetrics]:
    transcript, analysis = session.transcript, session.analysis
    first, last = session.first, session.turn_number(len(session.trace.turns))
    calls = {u.turn: u for u in transcript.usage if u.thread == transcript.main}
    layers: dict[int, list[str]] = {}
    for cut in transcript.compactions:
        if not cut.abandoned:
            layers.setdefault(cut.turn, []).append(cut.kind)
    refused = {overflow.turn for overflow in transcript.overflows}
    cached = reports_cache(session)
    left = cleared_at(session)
    rows: dict[str | None, ModelRow | None] = {}
    series: list[TurnMetrics] = []
    before: float | None = None
    for reading in analysis.pressure:
        turn = reading.turn
        if transcript.conversations and not first <= turn <= last:
            continue
        call = calls.get(turn)
        reported = call if call is not None and call.reported and call.prompt else None
        time = call.time if call is not None else None
        units, freed = left.get(turn, (0, 0))
        counted = analysis.counted[turn - 1] if 0 < turn <= len(analysis.counted) else None
        series.append(
            monitor.record_turn(
                reading.tokens,
                added=reading.added if series else None,
                turn=turn,
                counted=counted if reading.source == "reported" else None,
                prompt=reported.prompt if reported is not None else None,
                cache_read=reported.cache_read if reported is not None and cached else None,
                evictions=units,
                evicted_tokens=freed,
                compactions=tuple(layers.get(turn, ())),
                cost=_cost(session, reported, rows),
                seconds=max(0.0, time - before) if time is not None and before is not None else None,
                overflow=turn in refused,
            )
        )
        before = time if time is not None else before
    return series


def _behind(session: Session) -> list[str]:
    """Kinds of the compactions after the last call, which no turn can show."""
    transcript = session.transcript
    if transcript.conversations:
        return []
    last = session.turn_number(len(session.trace.turns))
    return [cut.kind for cut in transcript.compactions if cut.turn > last and not cut.abandoned]


def reports_cache(session: Session) -> bool:
    """Whether the transcript says what the provider's cache served: any call did read from it or write to it."""
    main = session.transcript.main
    return any(u.cache_read or u.cache_write for u in session.transcript.usage if u.thread == main)


def cleared_at(session: Session) -> dict[int, tuple[int, int]]:
    """Units, and tokens of theirs, that left the window without a summary in their place, by the call before which
    they did."""
    units: dict[int, set[int]] = {}
    tokens: dict[int, int] = {}
    for block, stay in enumerate(session.stays):
        if stay.cause == "cleared" and stay.left is not None:
            turn = session.turn_number(stay.left)
            units.setdefault(turn, set()).add(session.trace.unit_of[block])
            tokens[turn] = tokens.get(turn, 0) + session.trace.tokens[block]
    return {turn: (len(numbers), tokens[turn]) for turn, numbers in units.items()}


def replaced(session: Session) -> Mapping[int, tuple[int, int]]:
    """Tokens of what the agent's own compactions replaced, and of what they put in its place, by the call before which
    they did; those that a rewind left behind do not count."""
    trace = session.trace
    gone = {c.turn for c in session.transcript.compactions if c.abandoned}
    before: dict[int, int] = {}
    cleared: dict[int, int] = {}
    for block, stay in enumerate(session.stays):
        if stay.left is not None and stay.cause in ("compacted", "cleared"):
            before[stay.left] = before.get(stay.left, 0) + trace.tokens[block]
            cleared[stay.left] = cleared.get(stay.left, 0) + (stay.cause == "cleared")
    found = {}
    for turn, cut in trace.recorded.items():
        number = session.turn_number(turn)
        if number not in gone and before.get(turn):
            after = sum(trace.tokens[b] for b in cut.summary) + CLEARED_TOKENS * cleared.get(turn, 0)
            found[number] = (before[turn], after)
    return found


def _cost(session: Session, call: Usage | None, rows: dict[str | None, ModelRow | None]) -> float | None:
    """USD of a call at its own model's list prices."""
    if call is None:
        return None
    name = call.model or session.transcript.model
    if name not in rows:
        rows[name] = session.table.find(name)
    row = rows[name]
    return cost_of(call, row) if row is not None else None


def _bloat(session: Session) -> float | None:
    """Share of tool results in the window now, of all that is in it: system prompt and tools too."""
    kinds = session.analysis.composition.by_kind if session.analysis.composition is not None else {}
    tokens = session.analysis.context.tokens
    if not kinds or not tokens:
        return None
    results = kinds.get("tool_result")
    return min(1.0, results.tokens / tokens) if results is not None else 0.0
