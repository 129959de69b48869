"""The report of `simulate`: what each policy would have cost and lost, and what that means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.pressure.options import PressureThresholds
from ctxctl.reports.build.meaning import meaning_of
from ctxctl.reports.build.paths import shared_folder
from ctxctl.reports.document import Column, Fact, Finding, Point, Report, Series, Table
from ctxctl.reports.plot import compact, plural, sparkline
from ctxctl.simulate.baseline import MODEL_OFF, OFF, Baseline
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.rows import Run
from ctxctl.simulate.sweep import Sweep
from ctxctl.simulate.total import Interval, SweepTotal, TotalRun

SPARK = 16

HOW = {"exact": "", "assumed": " ?", "sized": " ~", "unsupported": ""}
"""How far a replay can be trusted -> what stands behind its name."""


def sweep_report(sweep: Sweep, thresholds: PressureThresholds, *, timeline: bool) -> Report:
    """One transcript."""
    windows = ", ".join(compact(c) for c in dict.fromkeys(r.capacity for r in sweep.runs) if c is not None)
    window = f"window {windows}{' (assumed; set it with --window)' if sweep.assumed else ''}"
    named = f"{sweep.model} · " if sweep.model else ""
    base = sweep.baseline
    return Report(
        "simulate",
        sweep.path,
        f"{plural(sweep.turns, 'call')} · {named}{window}",
        facts=tuple(_facts(sweep)),
        series=tuple(_series(r, thresholds) for r in sweep.runs if r.steps) if timeline else (),
        tables=(
            _policies(sweep.runs, {}, base.calibrated),
            _ceilings(sweep.ceilings, {}, sweep.optimum_note),
            _unsupported(sweep.runs),
        ),
        meaning=tuple(meaning_of(sweep.runs, base.cost, sweep.multipliers, sweep.ceilings, calibrated=base.calibrated)),
        findings=tuple(_findings(sweep.runs, base.calibrated, base.replay_error, base.model_error)),
        next_steps=tuple(_next(sweep.runs)),
    )


def total_report(total: SweepTotal, failed: int) -> Report:
    """Several transcripts."""
    prefix = shared_folder([o.path for o in total.off])
    intervals = {id(t.run): t.intervals for t in (*total.runs, *total.ceilings)}
    runs = [t.run for t in total.runs]
    ceilings = [t.run for t in total.ceilings]
    return Report(
        "simulate",
        f"{plural(total.sessions, 'transcript')}",
        plural(total.turns, "call") + (f" · {failed:,} failed" if failed else ""),
        facts=tuple(_total_facts(total)),
        tables=(
            _policies(runs, intervals, total.calibrated),
            _ceilings(ceilings, intervals),
            _unsupported(runs),
            Table(
                "Bills that are more than 1% off",
                (Column("off", "right"), Column("cause"), Column("transcript", flexible=True)),
                tuple((f"{o.error:.1%}", o.cause, o.path.removeprefix(prefix)) for o in total.off),
                f"paths are below {prefix}" if prefix else "",
            ),
        ),
        meaning=tuple(meaning_of(runs, total.cost, total.multipliers, ceilings, calibrated=total.calibrated)),
        findings=tuple(_findings(runs, total.calibrated, total.replay_error, total.model_error)),
        next_steps=tuple(_next(runs)),
    )


def _facts(sweep: Sweep) -> Iterator[Fact]:
    base = sweep.baseline
    yield from _bill(base)
    if base.efficiency is not None:
        error = f", so priced {base.model_error:.1%} off the bill" if base.model_error is not None else ""
        yield Fact("Cache", f"served {base.efficiency:.0%} of the common prefixes{error}", _halves(base.halves))
    used = next((r for r in sweep.ceilings if r.policy == "unbounded"), None)
    if used is not None:
        count = used.hits + used.misses
        note = f"placebo {sweep.placebo:.0%}" if sweep.placebo is not None else ""
        calls = f"{used.used_turns:,} of {plural(sweep.turns, 'call')}"
        again = f", {sweep.rereads:,} the same call again" if sweep.rereads else ""
        yield Fact("References", f"{count:,} uses of earlier content in {calls}{again}", note)


def _bill(base: Baseline) -> Iterator[Fact]:
    if base.replayed_cost is None or not base.bill:
        told = "no usage was reported: figures in money are of estimated tokens (~)"
        if base.model is None:
            told = "no model is named; --model NAME prices the tokens"
        yield Fact("Bill", "unknown", told)
        return
    how = "as recorded" if base.recorded_cost is not None else "by reported usage at list prices"
    error = f", replay {base.replay_error:.1%} off (median call)" if base.replay_error is not None else ""
    part = f" for {base.reported_calls:,} of {plural(base.turns, 'call')}" if base.reported_calls < base.turns else ""
    yield Fact("Bill", f"${base.bill:,.2f} {how}{part}{error}", f"{base.model}, prices of {base.date}")


def _halves(halves: tuple[float, float] | None) -> str:
    if halves is None:
        return ""
    return f"second half of the bill told from the first to {halves[0]:+.0%}, by an ideal cache {halves[1]:+.0%}"


def _total_facts(total: SweepTotal) -> Iterator[Fact]:
    if total.replayed_cost is None or total.bill is None:
        yield Fact("Bill", "unknown", "no transcript has both a price and reported usage")
    else:
        error = f", {total.total_error:.2%} off" if total.total_error is not None else ""
        middle = f"; median call {total.replay_error:.2%} off" if total.replay_error is not None else ""
        how = "recorded" if total.recorded_cost == total.bill else "recorded or by usage"
        yield Fact(
            "Bill",
            f"${total.bill:,.2f} {how}, ${total.replayed_cost:,.2f} replayed{error}",
            f"{total.priced:,} of {plural(total.sessions, 'transcript')}{middle}",
        )
    if total.efficiency is not None:
        note = ""
        if total.halves is not None:
            told, ideal = total.halves
            note = f"second halves told from the first within {told:.0%}, by an ideal cache {ideal:.0%}"
        yield Fact("Cache", f"served {total.efficiency:.0%} of the common prefixes (median)", note)
    if total.placebo is not None:
        yield Fact("Placebo", f"{total.placebo:.1%}", "references that the same text finds in another transcript")


def _policies(runs: Sequence[Run], intervals: dict[int, dict[str, Interval | None]], calibrated: bool) -> Table:
    shown = [r for r in runs if r.unsupported is None]
    presets = [r for r in runs if r.group == "preset"]
    note = (
        "* none is both cheaper and loses less. cost: as a multiple of the recorded bill, cached as it was; "
        "ideal: with a perfect cache. lost: of what later turns used. over: calls above the window"
    )
    if presets:
        count = {how: len({r.policy for r in presets if r.replay == how}) for how in HOW}
        note += (
            f"\nof the presets {count['exact']} replay exactly, {count['assumed']} with an assumption where the "
            f"sources are silent (?), {count['sized']} with a summary of assumed size (~), "
            f"{count['unsupported']} are not supported"
        )
    return Table(
        "Policies, cheapest first",
        (
            Column(""),
            Column("policy"),
            Column("cost", "right"),
            Column("ideal", "right"),
            Column("no cache", "right"),
            Column("lost", "right"),
            Column("over", "right"),
            Column("USD", "right"),
            *((Column("cost 95%", "right"), Column("lost 95%", "right")) if intervals else ()),
            Column("window", "right"),
            Column("act", "right"),
            Column("peak", "right"),
            Column("evicted", "right"),
            Column("refetched", "right"),
            *((Column("window over time"),) if not intervals else ()),
        ),
        tuple(_row(r, intervals, calibrated) for r in shown),
        note,
        frozenset(i for i, r in enumerate(shown) if not r.on_frontier),
    )


def _row(run: Run, intervals: dict[int, dict[str, Interval | None]], calibrated: bool) -> tuple[str, ...]:
    cost = run.cost.best()
    regime = "calibrated" if run.cost_ratio.calibrated is not None else "ideal"
    spans = intervals.get(id(run), {})
    act = "" if run.trigger is None else f"{run.trigger:.0%}→{run.target or 0:.0%}"
    gone = f"{run.evictions:,}" if run.evictions or not run.compactions else plural(run.compactions, "edit")
    cells = [
        "*" if run.on_frontier else "",
        run.policy + HOW[run.replay],
        *(_times(run.cost_ratio)),
        "-" if run.rmr is None else f"{run.rmr:.1%}",
        f"{run.overflow_turns:,}" if run.overflow_turns else "",
        "-" if cost is None else f"{'' if calibrated else '~'}{cost:,.2f}",
        compact(run.capacity) if run.capacity is not None else "own",
        act,
        compact(run.peak) if run.peak is not None else "-",
        gone,
        compact(run.refetched_tokens),
    ]
    if intervals:
        cells[8:8] = [_span(spans.get(f"cost_ratio.{regime}"), ".2f"), _span(spans.get("rmr"), ".1%")]
    else:
        cells.append(sparkline(run.timeline, SPARK, run.capacity) if run.timeline else "")
    return tuple(cells)


def _times(ratio: Costs) -> tuple[str, str, str]:
    """The bill as a multiple of the recorded one: as the recording's cache served, with an ideal cache, without."""
    return tuple("-" if v is None else f"{v:.2f}x" for v in (ratio.best(), ratio.ideal, ratio.none))  # type: ignore[return-value]


def _span(span: Interval | None, form: str) -> str:
    return "" if span is None else f"{span[0]:{form}}-{span[1]:{form}}"


def _ceilings(
    runs: Sequence[Run], intervals: dict[int, dict[str, Interval | None]], missing: str | None = None
) -> Table:
    return Table(
        "Ceilings",
        (
            Column("ceiling"),
            Column("cost", "right"),
            Column("ideal", "right"),
            Column("no cache", "right"),
            Column("lost", "right"),
            Column("miss ratio", "right"),
            Column("window", "right"),
            Column("peak", "right"),
            Column("refetched", "right"),
        ),
        tuple(
            (
                r.policy,
                *_times(r.cost_ratio),
                "-" if r.rmr is None else f"{r.rmr:.1%}",
                "-" if r.miss_ratio is None else f"{r.miss_ratio:.3f}",
                compact(r.capacity) if r.capacity is not None else "-",
                compact(r.peak) if r.peak is not None else "-",
                compact(r.refetched_tokens),
            )
            for r in runs
        ),
        "what the agent did itself, a window without an end, and an oracle"
        + ("" if missing else "; the optimum's miss ratio is the least that can be")
        + ". What is lost says what this run used, not whether it would have failed without it"
        + (f"\nno optimum: {missing}" if missing else ""),
    )


def _unsupported(runs: Sequence[Run]) -> Table:
    rows = {r.policy: r.unsupported for r in runs if r.unsupported is not None}
    return Table("Not supported", (Column("preset"), Column("why", flexible=True, prose=True)), tuple(rows.items()))


def _series(run: Run, thresholds: PressureThresholds) -> Series:
    size = run.capacity or 1
    points = []
    for step in run.steps:
        marks = ("overflow",) if step.prompt > size else ("compaction",) if step.dropped or step.shrunk > 0 else ()
        points.append(Point(step.turn, step.prompt, step.level or None, marks))
    bands = tuple((name, getattr(thresholds, name) * size) for name in ("yellow", "orange", "red"))
    return Series(f"{run.policy} at {compact(size)}   (▼ eviction  X overflow)", tuple(points), bands, size)


def _findings(
    runs: Sequence[Run], calibrated: bool, error: float | None, model_error: float | None
) -> Iterator[Finding]:
    if error is not None and error > OFF:
        yield Finding(
            "warning",
            "uncalibrated",
            f"the replayed bill is {error:.1%} off the recorded one (median call): figures in money are uncalibrated",
            "a row of your own prices under `models:` in .ctxctl.yaml, or --model, may match the bill",
        )
    elif model_error is not None and model_error > MODEL_OFF:
        yield Finding(
            "warning",
            "uncalibrated",
            f"the cache as fitted prices the recording {model_error:.0%} off its bill: figures in money are "
            "uncalibrated",
            "--cache-life tells how long entries lived, where the recording does not show it",
        )
    elif not calibrated and error is None:
        yield Finding(
            "info", "no_bill", "nothing was reported to hold the bill against: figures in money are uncalibrated"
        )
    said = set()
    for run in runs:
        if run.floor is not None and run.overflow_turns and run.capacity not in said:
            said.add(run.capacity)
            causes = ", ".join(f"{cause} {tokens:,}" for cause, tokens in run.floor.causes[:4])
            pins = any(cause in ("rule", "preserve", "pinned") for cause, _ in run.floor.causes)
            yield Finding(
                "critical",
                "floor",
                f"a window of {run.capacity:,} is too small: at turn {run.floor.turn} {run.floor.tokens:,} tokens may "
                f"not leave: {causes}",
                f"--window {run.floor.tokens + 1} or more holds them" + (", or fewer pins" if pins else ""),
            )
        if run.warning:
            yield Finding("warning", "preset", run.warning)


def _next(runs: Sequence[Run]) -> Iterator[str]:
    best = next((r for r in runs if r.on_frontier and (r.cost_ratio.best() or 1) < 1), None)
    if best is not None and best.group == "policy":
        yield "`ctxctl tune PATHS --max-loss 0.05` finds the cheapest settings for your own sessions"
    if not any(r.group == "preset" for r in runs):
        yield "`ctxctl simulate --preset all PATHS` compares with what known agents do"


__all__ = ["TotalRun", "sweep_report", "total_report"]
