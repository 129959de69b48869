"""One transcript under every policy and capacity that was asked for, with the ceilings beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ctxctl.eviction.specs import Spec
from ctxctl.model.limits import ModelTable
from ctxctl.model.unit import Trace
from ctxctl.simulate.baseline import Baseline, baseline_of
from ctxctl.simulate.bill import Tariff
from ctxctl.simulate.options import SweepOptions
from ctxctl.simulate.plans import capacities_of, plans_of, play, run_plan
from ctxctl.simulate.rows import Run, frontier, row_of

ENDLESS = 1 << 62
LONG, VERY_LONG = 500, 5000
"""Turns above which a session is long, and very long."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All rows of one transcript. window: the model's, where no other was asked for; assumed: nothing told it."""

    path: str
    id: str | None
    model: str | None
    turns: int
    window: int
    assumed: bool
    baseline: Baseline
    runs: tuple[Run, ...]
    ceilings: tuple[Run, ...]
    placebo: float | None
    rereads: int
    multipliers: tuple[float, float] | None
    optimum_note: str | None


Step_ = Callable[[int, int], None]


def sweep(
    trace: Trace, table: ModelTable, options: SweepOptions, window: int | None, progress: Step_ | None = None
) -> Sweep:
    """Replay a trace under all that the options name. window: of the model, None when unknown. progress: told how many
    of how many replays are done. Raises InputError for a model without a price."""
    tariff = Tariff(trace, table, options.terms, options.model)
    capacities = capacities_of(trace, options, window)
    plans = list(plans_of(options, capacities))
    total = len(plans) + 2 + len(capacities)
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    base = play(trace, "recorded", ENDLESS, None, None, tariff, options)
    baseline = baseline_of(trace, base, tariff)
    ceilings = [row_of(base, "ceiling", tariff, baseline, endless=True)]
    tick()
    endless = play(trace, "unbounded", ENDLESS, None, None, tariff, options)
    ceilings.append(row_of(endless, "ceiling", tariff, baseline, endless=True))
    tick()
    best: dict[int, int] = {}
    note = None
    for capacity in capacities:
        # looking ahead is dear: over a long session it frees more at a time
        down = 1.0 if len(trace.turns) <= LONG or options.share is not None else 0.9
        if len(trace.turns) > VERY_LONG and options.share is None:
            down = 0.75
        seen = play(trace, "clairvoyant", capacity, 1.0, down, tariff, options)
        ceilings.append(row_of(seen, "ceiling", tariff, baseline))
        tick()
        if options.optimum:
            found, note = _optimum(trace, capacity)
            if found is not None:
                best[capacity] = found.refetched_tokens
                ceilings.append(found)
    runs: list[Run] = []
    for plan in plans:
        runs.append(run_plan(trace, plan, tariff, options, baseline, best.get(plan.capacity), window))
        tick()
    return Sweep(
        trace.path,
        trace.id,
        options.model or trace.model,
        len(trace.turns),
        capacities[0],
        window is None and not options.windows,
        baseline,
        frontier(runs),
        tuple(ceilings),
        trace.placebo,
        trace.rereads,
        tariff.multipliers(),
        note,
    )


def single(
    trace: Trace,
    table: ModelTable,
    options: SweepOptions,
    window: int | None,
    spec: Spec,
    trigger: float,
    target: float,
) -> tuple[Run, Run]:
    """One policy at one capacity, and what was recorded beside it."""
    tariff = Tariff(trace, table, options.terms, options.model)
    capacity = capacities_of(trace, options, window)[0]
    base = play(trace, "recorded", ENDLESS, None, None, tariff, options)
    baseline = baseline_of(trace, base, tariff)
    played = play(trace, spec, capacity, trigger, target, tariff, options)
    row = row_of(played, "policy", tariff, baseline, name=spec.text)
    return row, row_of(base, "ceiling", tariff, baseline)


def _optimum(trace: Trace, capacity: int) -> tuple[Run | None, str | None]:
    from ctxctl.simulate.optimum import optimum

    found = optimum(trace, capacity)
    if isinstance(found, str):
        return None, found
    return (
        Run(
            "optimum",
            "ceiling",
            capacity,
            1.0,
            1.0,
            hits=found.hits,
            misses=found.misses,
            demand=found.demand,
            refetched_tokens=found.refetched,
            regret=0.0,
        ),
        None,
    )
