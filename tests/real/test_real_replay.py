"""The measures on real runs of one agent: ceilings, controls, and what masking costs with and without a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import ctxctl
from ctxctl.eviction.base import Policy, Setting
from ctxctl.eviction.clairvoyant import Clairvoyant
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace
from ctxctl.simulate.budget import evictable_budget
from ctxctl.simulate.optimum import Optimum, optimum
from ctxctl.simulate.placebo import placebo
from ctxctl.simulate.replay import replay
from ctxctl.trace.build import Traced, build_trace

OUTPUT_PRICE = 6
SEEDS = 20


@dataclass(frozen=True)
class Run:
    name: str
    traced: Traced
    half: int

    @property
    def trace(self) -> Trace:
        return self.traced.trace


@pytest.fixture(scope="module")
def runs(transcripts: Path) -> list[Run]:
    models = ctxctl.load_models()
    found = []
    for path in sorted((transcripts / "mini-swe-agent").glob("*.json")):
        made = build_trace(str(path), models, pins_of(EvictionOptions()))
        if any(turn.usage for turn in made.trace.turns):
            found.append(Run(path.name.split(".")[0], made, evictable_budget(made.trace)))
    assert len(found) >= 36
    return found


def unlimited(run: Run, policy: str) -> Replay:
    return replay(run.trace, ContextWindowManager(10**9, policy=policy, trace=run.trace, explain=False))


def halved(run: Run, policy: str | Policy) -> Replay:
    manager = ContextWindowManager(run.half, policy=policy, trace=run.trace, trigger=1.0, target=1.0, explain=False)
    return replay(run.trace, manager)


def ratio(replays: Sequence[Replay]) -> float:
    """Tokens fetched again / tokens demanded, over all runs."""
    return sum(r.refetched for r in replays) / sum(r.demand for r in replays)


@pytest.fixture(scope="module")
def random_ratio(runs: list[Run]) -> float:
    return sum(ratio([halved(run, f"random:seed={seed}") for run in runs]) for seed in range(SEEDS)) / SEEDS


@pytest.fixture(scope="module")
def optima(runs: list[Run]) -> list[Optimum]:
    pytest.importorskip("scipy")
    found = [optimum(run.trace, run.half) for run in runs]
    return [one for one in found if isinstance(one, Optimum)]


def test_the_window_is_the_reported_prompt_at_every_call(runs: list[Run]) -> None:
    calls = 0
    for run in runs:
        for policy in ("unbounded", "recorded"):
            for turn, prompt in zip(run.trace.turns, unlimited(run, policy).prompts, strict=True):
                if turn.prompt is not None:
                    assert prompt == turn.prompt, (run.name, turn.index)
                    calls += 1
    assert calls > 2000


def test_nothing_is_missed_where_nothing_leaves(runs: list[Run]) -> None:
    done = [unlimited(run, "unbounded") for run in runs]
    assert all(r.rmr in (None, 0.0) and not r.misses and not r.refetched for r in done)
    assert sum(r.hits for r in done) > 10_000


def test_the_order_of_ceiling_policy_and_control(runs: list[Run], random_ratio: float) -> None:
    clairvoyant, lru = (ratio([halved(run, policy) for run in runs]) for policy in ("clairvoyant", "lru"))
    assert clairvoyant < 0.006
    assert clairvoyant < lru < random_ratio


def test_no_policy_is_below_the_optimum(runs: list[Run], optima: list[Optimum]) -> None:
    assert len(optima) == len(runs)
    for policy in ("clairvoyant", "lru", "fifo", "hybrid", "random", "largest-first"):
        for run, best in zip(runs, optima, strict=True):
            done = halved(run, policy)
            assert best.refetched <= done.refetched, (policy, run.name)
            assert best.demand == done.demand
    assert sum(best.seconds for best in optima) < 10


class Misled(Clairvoyant):
    """Sees a future in which each turn uses what some other turn did."""

    seed = 0

    def prepare(self, trace: Trace) -> None:
        used = [turn.references for turn in trace.turns]
        Random(self.seed).shuffle(used)
        super().prepare(
            replace(trace, turns=[replace(t, references=r) for t, r in zip(trace.turns, used, strict=True)])
        )


def test_a_shuffled_future_is_worth_little(runs: list[Run], random_ratio: float) -> None:
    def misled(run: Run, seed: int) -> Policy:
        policy = Misled(Setting(run.half))
        policy.seed = seed
        return policy

    shuffled = sum(ratio([halved(run, misled(run, seed)) for run in runs]) for seed in range(5)) / 5
    clairvoyant = ratio([halved(run, "clairvoyant") for run in runs])
    assert shuffled > 10 * clairvoyant
    assert 0.5 * random_ratio < shuffled < 1.5 * random_ratio


def relative_cost(runs: list[Run], policy: str, cost: Callable[[Replay], float]) -> float:
    return sum(cost(unlimited(run, policy)) for run in runs) / sum(cost(unlimited(run, "unbounded")) for run in runs)


def plain(done: Replay) -> float:
    return sum(done.prompts) + OUTPUT_PRICE * sum(done.outputs)


def cached(done: Replay) -> float:
    pairs = zip(done.prompts, done.cached, strict=True)
    return sum(0.1 * c + 1.25 * (p - c) for p, c in pairs) + OUTPUT_PRICE * sum(done.outputs)


def test_rolling_masking_saves_without_a_cache_and_doubles_the_bill_with_one(runs: list[Run]) -> None:
    assert 0.6 < relative_cost(runs, "mask:keep=10", plain) < 0.8
    assert 1.7 < relative_cost(runs, "mask:keep=10", cached) < 2.4


def test_masking_in_batches_saves_in_both(runs: list[Run]) -> None:
    assert relative_cost(runs, "mask:keep=3,every=10", plain) < 1.0
    assert relative_cost(runs, "mask:keep=3,every=10", cached) < 1.0


def test_the_placebo_is_small(runs: list[Run]) -> None:
    """The next run of the same repository, and one of another: what its results share with an agent's text is not what
    the agent used."""
    django = [run for run in runs if run.name.startswith("django")]
    sympy = [run for run in runs if run.name.startswith("sympy")]

    def mean(pairs: list[tuple[Run, Run]]) -> float:
        rates = [placebo(a.traced.written, a.trace, b.trace) for a, b in pairs]
        known = [rate for rate in rates if rate is not None]
        return sum(known) / len(known)

    inside = mean([*pairwise(django), *pairwise(sympy)])
    across = mean([*zip(django, sympy, strict=False), *zip(sympy, django, strict=False)])
    assert 0 < across < inside < 0.2
    assert all(placebo(run.traced.written, run.trace, run.trace) in (None, 1.0) for run in runs)
