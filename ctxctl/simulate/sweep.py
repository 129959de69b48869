"""One transcript under every policy and capacity that was asked for, with the ceilings beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

from ctxctl.eviction.base import Policy, Setting
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.specs import Spec, policy_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.manager.options import ManagerOptions
from ctxctl.model.edits import Drop
from ctxctl.model.limits import DEFAULT_WINDOW, ModelTable
from ctxctl.model.replay import Floor, Replay, Step
from ctxctl.model.unit import Trace
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.simulate.bill import Baseline, CacheTerms, Costs, Tariff, baseline_of, best_interval, break_even, costs_of
from ctxctl.simulate.budget import evictable_budget, fixed_tokens
from ctxctl.simulate.replay import ReplayOptions, replay
from ctxctl.tokens.estimate import counter_for

if TYPE_CHECKING:
    from ctxctl.simulate.presets.schema import Preset

ENDLESS = 1 << 62
UNKNOWN = Costs()
LONG = 500
"""Turns from which on a session is long."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What to replay. policies and presets, times windows (tokens; none: the model's own), triggers and targets
    (utilization; none: those of the settings). share: instead of windows, a capacity of the protected content and this
    share of all that may leave, evicted to as soon as it is exceeded. summary: `low`, `typ` or `high`, for presets
    whose summary size nobody declares. optimum: whether the exact optimum is computed. steps: keep a row per turn."""

    policies: tuple[Spec, ...] = ()
    presets: tuple[Preset, ...] = ()
    windows: tuple[int, ...] = ()
    triggers: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()
    share: float | None = None
    summary: Literal["low", "typ", "high"] = "typ"
    terms: CacheTerms = field(default_factory=CacheTerms)
    model: str | None = None
    refetch: bool = True
    optimum: bool = True
    steps: bool = False
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    thresholds: PressureThresholds = field(default_factory=PressureThresholds)
    pressure: PressureOptions = field(default_factory=PressureOptions)
    manager: ManagerOptions = field(default_factory=ManagerOptions)


@dataclass(frozen=True, slots=True)
class Run:
    """One row: a policy at one capacity. Ratios are against what was recorded. None: not known, or it does not apply.

    rmr: weighted misses / weighted references; step_miss: turns with a miss / turns with a reference; miss_ratio:
    tokens fetched again / tokens demanded; regret: by how much of the demand more than the optimum. edits: turns at
    which something changed that had been sent.
    """

    policy: str
    group: str
    capacity: int | None
    trigger: float | None
    target: float | None
    unsupported: str | None = None
    exact: bool = True
    warning: str | None = None
    peak: int | None = None
    prompt_tokens: int | None = None
    evictions: int = 0
    evicted_tokens: int = 0
    compactions: int = 0
    compacted_tokens: int = 0
    edits: int = 0
    overflow_turns: int = 0
    hits: int = 0
    misses: int = 0
    weight: float = 0.0
    missed_weight: float = 0.0
    used_turns: int = 0
    missed_turns: int = 0
    demand: int = 0
    refetched_tokens: int = 0
    refetches: int = 0
    excess_rereads: int = 0
    cached_tokens: int = 0
    regret: float | None = None
    break_even_turns: float | None = None
    best_interval: float | None = None
    cost: Costs = UNKNOWN
    cost_ratio: Costs = UNKNOWN
    on_frontier: bool = False
    floor: Floor | None = None
    timeline: Sequence[int] = ()
    steps: Sequence[Step] = ()
    evicted: Sequence[tuple[int, Drop]] = ()

    @property
    def rmr(self) -> float | None:
        """Weighted misses / weighted references; None without a reference."""
        return self.missed_weight / self.weight if self.weight else None

    @property
    def miss_ratio(self) -> float | None:
        """Tokens fetched again / tokens demanded; None without demand."""
        return self.refetched_tokens / self.demand if self.demand else None

    @property
    def step_miss(self) -> float | None:
        """Turns with a miss / turns that used something earlier."""
        return self.missed_turns / self.used_turns if self.used_turns else None

    @property
    def hit_rate(self) -> float | None:
        """Prompt tokens in common with the request before / all of them."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


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
    capacities = _capacities(trace, options, window)
    plans = list(_plans(options, capacities))
    total = len(plans) + 2 + len(capacities)
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    base = _replay(trace, "recorded", ENDLESS, None, None, tariff, options)
    baseline = baseline_of(trace, base, tariff)
    own = options.windows[0] if options.windows else window
    ceilings = [_row(base, "ceiling", tariff, baseline, replace_capacity=own)]
    tick()
    endless = _replay(trace, "unbounded", ENDLESS, None, None, tariff, options)
    ceilings.append(_row(endless, "ceiling", tariff, baseline, replace_capacity=None))
    tick()
    best: dict[int, int] = {}
    note = None
    for capacity in capacities:
        # looking ahead is dear: over a long session it frees a little more at a time
        down = 1.0 if len(trace.turns) <= LONG or options.share is not None else 0.95
        seen = _replay(trace, "clairvoyant", capacity, 1.0, down, tariff, options)
        ceilings.append(_row(seen, "ceiling", tariff, baseline))
        tick()
        if options.optimum:
            found, note = _optimum(trace, capacity)
            if found is not None:
                best[capacity] = found.refetched_tokens
                ceilings.append(found)
    runs: list[Run] = []
    for plan in plans:
        runs.append(_planned(trace, plan, tariff, options, baseline, best))
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
    capacity = _capacities(trace, options, window)[0]
    base = _replay(trace, "recorded", ENDLESS, None, None, tariff, options)
    baseline = baseline_of(trace, base, tariff)
    played = _replay(trace, spec, capacity, trigger, target, tariff, options)
    row = _row(played, "policy", tariff, baseline, name=spec.text)
    return row, _row(base, "ceiling", tariff, baseline)


@dataclass(frozen=True, slots=True)
class _Plan:
    subject: Spec | Preset
    capacity: int
    trigger: float | None
    target: float | None


def _capacities(trace: Trace, options: SweepOptions, window: int | None) -> list[int]:
    if options.share is not None:
        return [evictable_budget(trace, options.share)]
    return list(dict.fromkeys(options.windows)) or [window or DEFAULT_WINDOW]


def _plans(options: SweepOptions, capacities: Sequence[int]) -> Iterator[_Plan]:
    """The cross product; a policy that does not rank has no use for several triggers and targets."""
    exactly = options.share is not None
    triggers: Sequence[float | None] = (1.0,) if exactly else options.triggers or (None,)
    targets: Sequence[float | None] = (1.0,) if exactly else options.targets or (None,)
    from ctxctl.eviction.base import POLICIES

    for spec in options.policies:
        many = POLICIES.get(spec.name).ranks
        for capacity, trigger, target in product(
            capacities, triggers if many else triggers[:1], targets if many else targets[:1]
        ):
            yield _Plan(spec, capacity, trigger, target)
    for preset in options.presets:
        for capacity in capacities:
            yield _Plan(preset, capacity, None, None)


def _planned(
    trace: Trace, plan: _Plan, tariff: Tariff, options: SweepOptions, baseline: Baseline, best: dict[int, int]
) -> Run:
    if isinstance(plan.subject, Spec):
        played = _replay(trace, plan.subject, plan.capacity, plan.trigger, plan.target, tariff, options)
        from ctxctl.eviction.base import POLICIES

        cls = POLICIES.get(plan.subject.name)
        row = _row(played, cls.group, tariff, baseline, name=plan.subject.text, best=best.get(plan.capacity))
        if not cls.ranks:
            row = replace(row, trigger=None, target=None)
        keep = dict(plan.subject.parameters).get("keep", 10)
        return replace(row, best_interval=best_interval(int(keep), tariff.multipliers())) if cls.name == "mask" else row
    from ctxctl.simulate.presets import preset_policy

    preset = plan.subject
    exact = preset.class_ == "deterministic"
    if preset.unsupported is not None:
        return Run(preset.id, "preset", plan.capacity, None, None, preset.unsupported, False)
    setting = Setting(plan.capacity, _counter(trace), options.eviction)
    policy = preset_policy(preset, setting, options.summary)
    warning = policy.warning(fixed_tokens(trace))
    played = _replay(trace, policy, plan.capacity, None, None, tariff, options)
    row = _row(played, "preset", tariff, baseline, name=preset.id, best=best.get(plan.capacity))
    return replace(row, trigger=None, target=None, exact=exact, warning=warning)


def _counter(trace: Trace) -> Callable[[str, str], int]:
    """Tokens of a text that replaces another, counted as the trace's own blocks were."""
    return counter_for(trace.model, trace.counter, trace.ratio)


def _replay(
    trace: Trace,
    policy: str | Spec | Policy,
    capacity: int,
    trigger: float | None,
    target: float | None,
    tariff: Tariff,
    options: SweepOptions,
) -> Replay:
    if not isinstance(policy, Policy):
        policy = policy_of(policy, Setting(capacity, _counter(trace), options.eviction))
    manager = ContextWindowManager(
        capacity,
        policy=policy,
        trigger=trigger,
        target=target,
        thresholds=options.thresholds,
        pressure=options.pressure,
        eviction=options.eviction,
        options=options.manager,
        trace=trace,
        explain=options.steps,
    )
    return replay(
        trace,
        manager,
        ReplayOptions(tariff.life, options.terms.minimum, options.refetch, options.steps),
    )


def _row(
    played: Replay,
    group: str,
    tariff: Tariff,
    baseline: Baseline,
    *,
    name: str | None = None,
    best: int | None = None,
    replace_capacity: int | bool | None = True,
) -> Run:
    cost = costs_of(played, tariff, baseline.fit)
    own = replace_capacity is True
    capacity = played.capacity if own else replace_capacity
    return Run(
        name or played.policy,
        group,
        None if capacity is True else capacity,
        played.trigger if own else None,
        played.target if own else None,
        peak=played.peak,
        prompt_tokens=sum(played.prompts),
        evictions=played.evictions,
        evicted_tokens=played.evicted_tokens,
        compactions=played.compactions,
        compacted_tokens=played.compacted_tokens,
        edits=played.edits,
        overflow_turns=played.overflow_turns if own else 0,
        hits=played.hits,
        misses=played.misses,
        weight=played.weight,
        missed_weight=played.missed_weight,
        used_turns=played.used_turns,
        missed_turns=played.missed_turns,
        demand=played.demand,
        refetched_tokens=played.refetched,
        refetches=played.refetches,
        excess_rereads=played.excess_rereads,
        cached_tokens=sum(played.cached),
        regret=(played.refetched - best) / played.demand if best is not None and played.demand else None,
        break_even_turns=break_even(played, tariff.multipliers()),
        cost=cost,
        cost_ratio=cost.ratio(baseline.cost),
        floor=played.floor,
        timeline=played.prompts,
        steps=played.steps,
        evicted=played.evicted,
    )


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


def frontier(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The rows, those marked that no other beats in cost and loss at once (Pareto). Rows sorted by cost, then loss."""

    def cost(run: Run) -> float:
        best = run.cost.best()
        return best if best is not None else float(run.prompt_tokens or 0)

    ready = [r for r in runs if r.unsupported is None]
    ready.sort(key=lambda r: (cost(r), r.rmr or 0.0, r.policy, r.capacity or 0))
    marked: list[Run] = []
    least: float | None = None
    for run in ready:
        loss = run.rmr or 0.0
        better = least is None or loss < least
        if better and not run.overflow_turns:  # what the provider refuses is no choice
            least = loss
            run = replace(run, on_frontier=True)
        marked.append(run)
    return (*marked, *(r for r in runs if r.unsupported is not None))
