"""Several transcripts under the same policies: sums, and intervals by a paired bootstrap over transcripts.

Each resample draws transcripts with replacement, the same ones for every policy (Efron 1979), so that policies are
compared on the same sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from ctxctl.simulate.baseline import OFF, trusted
from ctxctl.simulate.bill import REGIMES, Costs
from ctxctl.simulate.rows import Run, frontier
from ctxctl.simulate.sweep import Sweep

RESAMPLES = 1000
LEVEL = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TotalRun:
    """One policy over all transcripts. run: sums, and ratios of sums; intervals: of each ratio, at 95 %. sessions: how
    many it could be replayed on; priced: how many of them have a bill, which costs and their ratios are about."""

    run: Run
    sessions: int
    priced: int
    intervals: dict[str, Interval | None]


@dataclass(frozen=True, slots=True)
class Off:
    """A transcript whose replayed bill is more than 1 % off, and why as far as the recording tells."""

    path: str
    error: float
    cause: str


@dataclass(frozen=True, slots=True)
class SweepTotal:
    """Sums over transcripts. bill: as recorded, else at list prices, of the priced transcripts; recorded_cost: of those
    that record one. replay_error: median over transcripts of the median call's; total_error: of the sums. model_error:
    of the calibrated bills, median. halves: medians over transcripts, without sign."""

    sessions: int
    turns: int
    prompt_tokens: int
    cost: Costs
    bill: float | None
    recorded_cost: float | None
    replayed_cost: float | None
    priced: int
    replay_error: float | None
    total_error: float | None
    efficiency: float | None
    halves: tuple[float, float] | None
    off: tuple[Off, ...]
    runs: tuple[TotalRun, ...]
    ceilings: tuple[TotalRun, ...]
    placebo: float | None
    multipliers: tuple[float, float] | None
    model_error: float | None = None

    @property
    def calibrated(self) -> bool:
        """Whether replay and cache model reproduce the bills, so that money can be trusted."""
        return trusted(self.replay_error, self.model_error)


def total_of(sweeps: Sequence[Sweep], *, own_windows: bool) -> SweepTotal:
    """The sums over the sweeps of several transcripts. own_windows: each was replayed at its own model's window."""
    draws = _draws(len(sweeps))
    runs = _rows(sweeps, lambda s: s.runs, own_windows, draws)
    ordered = frontier([t.run for t in runs])
    by_label = {_label(t.run): t for t in runs}
    bases = [s.baseline for s in sweeps]
    known = [b for b in bases if b.bill is not None and b.replayed_cost is not None]
    truth = [b.bill or 0.0 for b in known]
    paid = [b.recorded_cost for b in bases if b.recorded_cost is not None]
    models = [b.model_error for b in bases if b.model_error is not None]
    again = [b.replayed_cost or 0.0 for b in known]
    errors = [b.replay_error for b in bases if b.replay_error is not None]
    halves = [b.halves for b in bases if b.halves is not None]
    efficiencies = [b.efficiency for b in bases if b.efficiency is not None]
    placebos = [s.placebo for s in sweeps if s.placebo is not None]
    multipliers = {s.multipliers for s in sweeps}
    return SweepTotal(
        len(sweeps),
        sum(s.turns for s in sweeps),
        sum(b.prompt_tokens for b in bases),
        sum_costs([(b.cost, b.cost) for b in bases])[0],
        sum(truth) if known else None,
        sum(paid) if paid else None,
        sum(again) if known else None,
        len(known),
        median(errors) if errors else None,
        abs(sum(again) - sum(truth)) / sum(truth) if sum(truth) else None,
        median(efficiencies) if efficiencies else None,
        (median(abs(a) for a, _ in halves), median(abs(b) for _, b in halves)) if halves else None,
        tuple(
            Off(s.path, s.baseline.total_error, s.baseline.cause or "unknown")
            for s in sweeps
            if s.baseline.total_error is not None and s.baseline.total_error > OFF
        ),
        tuple(replace(by_label[_label(r)], run=r) for r in ordered),
        tuple(_rows(sweeps, lambda s: s.ceilings, own_windows, draws)),
        sum(placebos) / len(placebos) if placebos else None,
        multipliers.pop() if len(multipliers) == 1 else None,
        median(models) if models else None,
    )


def _draws(count: int) -> list[list[int]]:
    random = Random(0)
    return [random.choices(range(count), k=count) for _ in range(RESAMPLES)] if count > 1 else []


Label = tuple[str, str, int | None, float | None, float | None]


def _label(run: Run) -> Label:
    return run.group, run.policy, run.capacity, run.trigger, run.target


def _rows(
    sweeps: Sequence[Sweep], pick: Callable[[Sweep], Sequence[Run]], own_windows: bool, draws: list[list[int]]
) -> list[TotalRun]:
    """One row per policy and capacity, in the order of the first transcript that has it."""
    groups: dict[Label, list[tuple[Run, Costs]]] = {}
    for sweep in sweeps:
        for run in pick(sweep):
            placed = replace(run, capacity=None) if own_windows else run
            groups.setdefault(_label(placed), []).append((run, sweep.baseline.cost))
    return [_total_run(members, label[2], draws) for label, members in groups.items()]


SUMMED = (
    "evictions",
    "evicted_tokens",
    "compactions",
    "compacted_tokens",
    "edits",
    "overflow_turns",
    "hits",
    "misses",
    "weight",
    "missed_weight",
    "used_turns",
    "missed_turns",
    "first_uses",
    "first_misses",
    "demand",
    "refetched_tokens",
    "refetches",
    "excess_rereads",
    "cached_tokens",
)


def _total_run(members: list[tuple[Run, Costs]], capacity: int | None, draws: list[list[int]]) -> TotalRun:
    first = members[0][0]
    runs = [run for run, _ in members]
    cost, base = sum_costs([(r.cost, b) for r, b in members])
    sums = {name: sum(getattr(r, name) for r in runs) for name in SUMMED}
    prompts = [r.prompt_tokens for r in runs if r.prompt_tokens is not None]
    evens = [r.break_even_turns for r in runs if r.break_even_turns is not None]
    fetched = [r.refetch_cost for r in runs if r.refetch_cost is not None]
    best = [(r.regret * r.demand) for r in runs if r.regret is not None]
    total = replace(
        first,
        capacity=capacity,
        warning=next((r.warning for r in runs if r.warning), None),
        peak=max((r.peak for r in runs if r.peak is not None), default=None),
        prompt_tokens=sum(prompts) if prompts else None,
        regret=sum(best) / sums["demand"] if len(best) == len(runs) and sums["demand"] else None,
        refetch_cost=sum(fetched) if fetched else None,
        break_even_turns=median(evens) if evens else None,
        cost=cost,
        cost_ratio=cost.ratio(base),
        floor=next((r.floor for r in runs if r.floor is not None), None),
        timeline=(),
        steps=(),
        evicted=(),
        **sums,
    )
    intervals: dict[str, Interval | None] = {
        "rmr": _interval([r.missed_weight for r in runs], [r.weight for r in runs], draws),
        "miss_ratio": _interval([r.refetched_tokens for r in runs], [r.demand for r in runs], draws),
    }
    for name in REGIMES:
        intervals[f"cost_ratio.{name}"] = _interval(
            [getattr(r.cost, name) for r in runs], [getattr(b, name) for _, b in members], draws
        )
    return TotalRun(total, len(runs), sum(1 for r in runs if r.cost.none is not None), intervals)


def sum_costs(pairs: Sequence[tuple[Costs, Costs]]) -> tuple[Costs, Costs]:
    """Sums of each regime over the transcripts where both bills are known, so that their ratio compares like with
    like; None where there is none."""
    sums: list[tuple[float | None, float | None]] = []
    for name in REGIMES:
        known = [
            (one, other)
            for a, b in pairs
            if (one := getattr(a, name)) is not None and (other := getattr(b, name)) is not None
        ]
        sums.append((sum(a for a, _ in known), sum(b for _, b in known)) if known else (None, None))
    return Costs(*(a for a, _ in sums)), Costs(*(b for _, b in sums))


def _interval(above: Sequence[float | None], below: Sequence[float | None], draws: list[list[int]]) -> Interval | None:
    """The middle 95 % of the ratio of sums over the resamples."""
    if not draws or len(draws[0]) != len(above):
        return None
    known = [a is not None and b is not None for a, b in zip(above, below, strict=True)]
    tops = [(a or 0.0) * k for a, k in zip(above, known, strict=True)]
    bottoms = [(b or 0.0) * k for b, k in zip(below, known, strict=True)]
    ratios: list[float] = []
    for draw in draws:
        bottom = sum([bottoms[i] for i in draw])
        if bottom:
            ratios.append(sum([tops[i] for i in draw]) / bottom)
    if len(ratios) < RESAMPLES / 2:
        return None
    ratios.sort()
    cut = (1 - LEVEL) / 2
    return ratios[int(cut * len(ratios))], ratios[min(len(ratios) - 1, int((1 - cut) * len(ratios)))]
