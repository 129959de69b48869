"""The report of `simulate`: what each policy would have cost and lost, and what that means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.pressure.options import PressureThresholds
from ctxctl.reports.build.meaning import meaning_of
from ctxctl.reports.build.paths import shared_folder
from ctxctl.reports.document import Column, Fact, Finding, Point, Report, Series, Table
from ctxctl.reports.plot import compact, plural, sparkline
from ctxctl.simulate.baseline import OFF, Baseline
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.rows import Run
from ctxctl.simulate.sweep import Sweep
from ctxctl.simulate.total import Interval, SweepTotal, TotalRun

SPARK = 16


def sweep_report(sweep: Sweep, thresholds: PressureThresholds, *, timeline: bool) -> Report:
    """One transcript."""
    windows = ", ".join(compact(c) for c in dict.fromkeys(r.capacity for r in sweep.runs) if c is not None)
    window = f"window {windows}{' (assumed; set it with --window)' if sweep.assumed else ''}"
    named = f"{sweep.model} · " if sweep.model else ""
    return Report(
        "simulate",
        sweep.path,
        f"{plural(sweep.turns, 'call')} · {named}{window}",
        facts=tuple(_facts(sweep)),
        series=tuple(_series(r, thresholds) for r in sweep.runs if r.steps) if timeline else (),
        tables=(_policies(sweep.runs, {}), _ceilings(sweep.ceilings, {}, sweep.optimum_note), _unsupported(sweep.runs)),
        meaning=tuple(meaning_of(sweep.runs, sweep.baseline.cost, sweep.multipliers, sweep.ceilings)),
        findings=tuple(_findings(sweep.runs, sweep.baseline.calibrated, sweep.baseline.replay_error)),
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
            _policies(runs, intervals),
            _ceilings(ceilings, intervals),
            _unsupported(runs),
            Table(
                "Bills that are more than 1% off",
                (Column("off", "right"), Column("cause"), Column("transcript", flexible=True)),
                tuple((f"{o.error:.1%}", o.cause, o.path.removeprefix(prefix)) for o in total.off),
                f"paths are below {prefix}" if prefix else "",
            ),
        ),
        meaning=tuple(meaning_of(runs, total.cost, total.multipliers, ceilings)),
        findings=tuple(_findings(runs, total.calibrated, total.replay_error)),
        next_steps=tuple(_next(runs)),
    )


def _facts(sweep: Sweep) -> Iterator[Fact]:
    base = sweep.baseline
    yield from _bill(base)
    if base.efficiency is not None:
        yield Fact("Cache", f"served {base.efficiency:.0%} of what an ideal one would have", _halves(base.halves))
    used = next((r for r in sweep.ceilings if r.policy == "unbounded"), None)
    if used is not None:
        count = used.hits + used.misses
        note = f"placebo {sweep.placebo:.0%}" if sweep.placebo is not None else ""
        yield Fact(
            "References",
            f"{count:,} uses of earlier content in {used.used_turns:,} of {plural(sweep.turns, 'call')}"
            f", {sweep.rereads:,} of them the same call again",
            note,
        )


def _bill(base: Baseline) -> Iterator[Fact]:
    if base.replayed_cost is None:
        told = "no price: no model is named; --model NAME prices it" if base.model is None else "nothing was reported"
        yield Fact("Bill", "unknown", told)
        return
    own = base.recorded_cost is not None
    paid = base.recorded_cost if own else base.list_cost
    error = f", error {base.replay_error:.1%} of the median call" if base.replay_error is not None else ""
    yield Fact(
        "Bill",
        f"${paid or 0:,.2f} {'as recorded' if own else 'by usage'}, ${base.replayed_cost:,.2f} replayed{error}",
        f"{base.model}, prices of {base.date}",
    )


def _halves(halves: tuple[float, float] | None) -> str:
    if halves is None:
        return ""
    return f"second half of the bill predicted to {halves[0]:+.0%}, by an ideal cache {halves[1]:+.0%}"


def _total_facts(total: SweepTotal) -> Iterator[Fact]:
    if total.replayed_cost is None or total.recorded_cost is None:
        yield Fact("Bill", "unknown", "no transcript has both a price and reported usage")
    else:
        error = f", {total.total_error:.2%} off" if total.total_error is not None else ""
        middle = f"; median call {total.replay_error:.2%} off" if total.replay_error is not None else ""
        yield Fact(
            "Bill",
            f"${total.recorded_cost:,.2f} recorded, ${total.replayed_cost:,.2f} replayed{error}",
            f"{plural(total.priced, 'transcript')}{middle}",
        )
    if total.efficiency is not None:
        note = ""
        if total.halves is not None:
            note = f"second halves predicted within {total.halves[0]:.0%}, by an ideal cache {total.halves[1]:.0%}"
        yield Fact("Cache", f"served {total.efficiency:.0%} of what an ideal one would have (median)", note)
    if total.placebo is not None:
        yield Fact("Placebo", f"{total.placebo:.1%}", "references that the same text finds in another transcript")


def _policies(runs: Sequence[Run], intervals: dict[int, dict[str, Interval | None]]) -> Table:
    shown = [r for r in runs if r.unsupported is None]
    presets = [r for r in runs if r.group == "preset"]
    note = (
        "* none is both cheaper and loses less. cost: as a multiple of the recorded bill, cached as it was; "
        "ideal: with a perfect cache. lost: of what later turns used"
    )
    if presets:
        exact = len({r.policy for r in presets if r.unsupported is None and r.exact})
        sized = len({r.policy for r in presets if r.unsupported is None and not r.exact})
        out = len({r.policy for r in presets if r.unsupported is not None})
        note += f"\n{exact} presets replay exactly, {sized} with a summary of assumed size (~), {out} are not supported"
    return Table(
        "Policies, cheapest first",
        (
            Column(""),
            Column("policy"),
            Column("cost", "right"),
            Column("ideal", "right"),
            Column("no cache", "right"),
            Column("lost", "right"),
            Column("USD", "right"),
            *((Column("cost 95%", "right"), Column("lost 95%", "right")) if intervals else ()),
            Column("window", "right"),
            Column("act", "right"),
            Column("peak", "right"),
            Column("evicted", "right"),
            Column("refetched", "right"),
            Column("over", "right"),
            *((Column("window over time"),) if not intervals else ()),
        ),
        tuple(_row(r, intervals) for r in shown),
        note,
        frozenset(i for i, r in enumerate(shown) if not r.on_frontier),
    )


def _row(run: Run, intervals: dict[int, dict[str, Interval | None]]) -> tuple[str, ...]:
    cost = run.cost.best()
    regime = "calibrated" if run.cost_ratio.calibrated is not None else "ideal"
    spans = intervals.get(id(run), {})
    act = "" if run.trigger is None else f"{run.trigger:.0%}→{run.target or 0:.0%}"
    gone = f"{run.evictions:,}" if run.evictions or not run.compactions else f"{run.compactions:,} edits"
    cells = [
        "*" if run.on_frontier else "",
        run.policy + ("" if run.exact else " ~"),
        *(_times(run.cost_ratio)),
        "-" if run.rmr is None else f"{run.rmr:.1%}",
        "-" if cost is None else f"{cost:,.2f}",
        compact(run.capacity) if run.capacity is not None else "own",
        act,
        compact(run.peak) if run.peak is not None else "-",
        gone,
        compact(run.refetched_tokens),
        f"{run.overflow_turns:,}" if run.overflow_turns else "",
    ]
    if intervals:
        cells[7:7] = [_span(spans.get(f"cost_ratio.{regime}"), ".2f"), _span(spans.get("rmr"), ".1%")]
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
        "what the agent did, what could be kept at most, and the least that has to be lost at this window. What is lost"
        " says what this run used, not whether it would have failed without it"
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


def _findings(runs: Sequence[Run], calibrated: bool, error: float | None) -> Iterator[Finding]:
    if error is not None and error > OFF:
        yield Finding(
            "warning",
            "uncalibrated",
            f"the replayed bill is {error:.1%} off the recorded one (median call): figures in money are uncalibrated",
            "a row of your own prices under `models:` in .ctxctl.yaml, or --model, may match the bill",
        )
    elif not calibrated and error is None:
        yield Finding(
            "info", "no_bill", "nothing was reported to hold the bill against: figures in money are uncalibrated"
        )
    said = set()
    for run in runs:
        if run.floor is not None and run.overflow_turns and (run.capacity, run.floor.tokens) not in said:
            said.add((run.capacity, run.floor.tokens))
            causes = ", ".join(f"{cause} {tokens:,}" for cause, tokens in run.floor.causes[:4])
            yield Finding(
                "critical",
                "floor",
                f"{run.policy} at {compact(run.capacity or 0)}: at turn {run.floor.turn} {run.floor.tokens:,} tokens "
                f"may not leave: {causes}",
                f"a window above {run.floor.tokens:,} tokens, or fewer pins",
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
