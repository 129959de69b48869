"""The rows of a simulation: one policy at one capacity, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctxctl.model.result import Evicted, Floor, Replay, Step
from ctxctl.simulate.baseline import Baseline
from ctxctl.simulate.bill import Costs, Tariff, break_even, costs_of

UNKNOWN = Costs()


@dataclass(frozen=True, slots=True)
class Run:
    """One row: a policy at one capacity. Ratios are against what was recorded. None: not known, or it does not apply.

    rmr: weighted misses / weighted references; step_miss: turns with a miss / turns with a reference; miss_ratio:
    tokens fetched again / tokens demanded; refetch_cost: USD of reading them once more; first_uses, first_misses:
    references to what the agent had not repeated itself. regret: by how much of the demand more than the optimum.
    edits: turns at which something changed that had been sent. replay: how far it can be trusted: exact; by a
    runtime's rules with an assumption in them; with summaries of assumed size; or not replayed.
    """

    policy: str
    group: str
    capacity: int | None
    trigger: float | None
    target: float | None
    unsupported: str | None = None
    replay: Literal["exact", "assumed", "sized", "unsupported"] = "exact"
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
    first_uses: int = 0
    first_misses: int = 0
    demand: int = 0
    refetched_tokens: int = 0
    refetches: int = 0
    refetch_cost: float | None = None
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
    evicted: Sequence[Evicted] = ()

    @property
    def exact(self) -> bool:
        """Whether nothing in it is assumed."""
        return self.replay == "exact"

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


def row_of(
    played: Replay,
    group: str,
    tariff: Tariff,
    baseline: Baseline,
    *,
    name: str | None = None,
    best: int | None = None,
    endless: bool = False,
) -> Run:
    """The row of a replay. best: tokens that the optimum fetches again at the same capacity; endless: it was
    replayed without a limit."""
    cost = costs_of(played, tariff, baseline.fit)
    return Run(
        name or played.policy,
        group,
        None if endless else played.capacity,
        None if endless else played.trigger,
        None if endless else played.target,
        peak=played.peak,
        prompt_tokens=sum(played.prompts),
        evictions=played.evictions,
        evicted_tokens=played.evicted_tokens,
        compactions=played.compactions,
        compacted_tokens=played.compacted_tokens,
        edits=played.edits,
        overflow_turns=0 if endless else played.overflow_turns,
        hits=played.hits,
        misses=played.misses,
        weight=played.weight,
        missed_weight=played.missed_weight,
        used_turns=played.used_turns,
        missed_turns=played.missed_turns,
        first_uses=played.first_uses,
        first_misses=played.first_misses,
        demand=played.demand,
        refetched_tokens=played.refetched,
        refetches=played.refetches,
        refetch_cost=tariff.to_read(played.refetched),
        excess_rereads=played.excess_rereads,
        cached_tokens=sum(played.cached),
        regret=_regret(played, best),
        break_even_turns=break_even(played, tariff.multipliers()),
        cost=cost,
        cost_ratio=cost.ratio(baseline.cost),
        floor=played.floor,
        timeline=played.prompts,
        steps=played.steps,
        evicted=played.evicted,
    )


def _regret(played: Replay, best: int | None) -> float | None:
    """Against the optimum at the same budget; a policy that overran it is held against nothing."""
    if best is None or not played.demand or played.overflow_turns:
        return None
    return (played.refetched - best) / played.demand


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
