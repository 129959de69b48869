"""The cheapest settings that keep the loss under a bound, searched over a user's own sessions.

A grid over policy, trigger and target, then the weights of hybrid and the neighbourhood of the best. Half of the
sessions are held out, when there are enough, and the choice is judged on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ctxctl.eviction.options import EvictionOptions, EvictionWeights
from ctxctl.eviction.specs import Spec
from ctxctl.model.limits import ModelTable
from ctxctl.model.unit import Trace
from ctxctl.simulate.options import SweepOptions
from ctxctl.simulate.rows import Run
from ctxctl.simulate.sweep import single

POLICIES = ("fifo", "lru", "priority", "semantic", "type-ttl", "hybrid")
TRIGGERS = (0.30, 0.45, 0.60, 0.75, 0.90)
TARGETS = (0.15, 0.30, 0.45, 0.60, 0.75)
WEIGHTS = (
    (0.3, 0.3, 0.2, 0.2),
    (0.7, 0.1, 0.1, 0.1),
    (0.1, 0.7, 0.1, 0.1),
    (0.1, 0.1, 0.7, 0.1),
    (0.1, 0.1, 0.1, 0.7),
    (0.4, 0.1, 0.1, 0.4),
    (0.1, 0.4, 0.1, 0.4),
    (0.4, 0.1, 0.4, 0.1),
    (0.25, 0.25, 0.25, 0.25),
)
"""Weights of hybrid that are tried: freshness, priority, time to live, reference."""
STEP = 0.05
LEAST = 4
"""With fewer sessions nothing is held out."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings that are tried. weights: of hybrid, in the order of WEIGHTS."""

    policy: str
    trigger: float
    target: float
    weights: tuple[float, float, float, float] | None = None

    @property
    def spec(self) -> Spec:
        """As a policy with its parameters."""
        names = ("freshness", "priority", "type_ttl", "reference")
        return Spec(self.policy, tuple(zip(names, self.weights, strict=True)) if self.weights else ())


@dataclass(frozen=True, slots=True)
class Score:
    """What settings did on some sessions. cost: USD of the calibrated (else ideal) bill, tokens sent where no price is
    known; base: the same of what was recorded. loss: weighted misses / weighted references. overflows: refused
    calls."""

    cost: float
    base: float
    loss: float
    overflows: int
    priced: bool
    sessions: int

    @property
    def ratio(self) -> float:
        """Of the recorded bill."""
        return self.cost / self.base if self.base else 1.0


@dataclass(frozen=True, slots=True)
class Tuned:
    """The choice, what it did where it was found and where it was not, and how many settings were tried. None: no
    settings keep the bound; then `best_loss` is the least that any lost."""

    choice: Candidate | None
    trained: Score | None
    held_out: Score | None
    tried: int
    best_loss: float
    training: tuple[str, ...]
    testing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """A session to tune on. window: of its model, None when unknown."""

    trace: Trace
    window: int | None


def tune(
    subjects: Sequence[Subject],
    table: ModelTable,
    options: SweepOptions,
    max_loss: float,
    progress: Callable[[int, int | None], None] | None = None,
) -> Tuned:
    """Search. Deterministic: sessions alternate between training and testing in the order in which they come."""
    training = list(subjects[::2]) if len(subjects) >= LEAST else list(subjects)
    testing = list(subjects[1::2]) if len(subjects) >= LEAST else []
    known: dict[Candidate, Score] = {}

    def judge(candidate: Candidate) -> Score:
        if candidate not in known:
            known[candidate] = score(candidate, training, table, options)
            if progress is not None:
                progress(len(known), None)
        return known[candidate]

    for candidate in grid():
        judge(candidate)
    best = _best(known, max_loss)
    while best is not None:
        for near in _around(best):
            judge(near)
        better = _best(known, max_loss)
        if better is None or better == best:
            break
        best = better
    least = min((s.loss for s in known.values()), default=0.0)
    names = tuple(s.trace.path for s in training), tuple(s.trace.path for s in testing)
    if best is None:
        return Tuned(None, None, None, len(known), least, *names)
    held = score(best, testing, table, options) if testing else None
    return Tuned(best, known[best], held, len(known), least, *names)


def grid() -> Iterator[Candidate]:
    """Every policy with every trigger and a lower target."""
    for policy in POLICIES:
        for trigger in TRIGGERS:
            for target in TARGETS:
                if target < trigger:
                    yield Candidate(policy, trigger, target)


def _around(best: Candidate) -> Iterator[Candidate]:
    for trigger in (best.trigger - STEP, best.trigger, best.trigger + STEP):
        for target in (best.target - STEP, best.target, best.target + STEP):
            trigger, target = round(trigger, 2), round(target, 2)
            if 0.1 <= target < trigger <= 0.95:
                yield replace(best, trigger=trigger, target=target)
    for weights in WEIGHTS if best.policy == "hybrid" else ():
        yield replace(best, weights=weights)


def _best(known: dict[Candidate, Score], max_loss: float) -> Candidate | None:
    """The cheapest that keeps the bound; of equals the one that loses less, then the one that acts later."""
    fewest = min((s.overflows for s in known.values()), default=0)
    able = [(c, s) for c, s in known.items() if s.loss <= max_loss and s.overflows <= fewest]
    if not able:
        return None
    return min(able, key=lambda item: (round(item[1].ratio, 6), item[1].loss, -item[0].trigger, item[0].policy))[0]


def score(candidate: Candidate, subjects: Sequence[Subject], table: ModelTable, options: SweepOptions) -> Score:
    """What settings would have cost and lost over some sessions."""
    rows: list[tuple[Run, Run]] = [
        single(s.trace, table, options, s.window, candidate.spec, candidate.trigger, candidate.target) for s in subjects
    ]
    priced = all(run.cost.best() is not None and base.cost.best() is not None for run, base in rows)

    def total(runs: Sequence[Run]) -> float:
        return sum((r.cost.best() or 0.0) if priced else float(r.prompt_tokens or 0) for r in runs)

    weight = sum(run.weight for run, _ in rows)
    return Score(
        total([run for run, _ in rows]),
        total([base for _, base in rows]),
        sum(run.missed_weight for run, _ in rows) / weight if weight else 0.0,
        sum(run.overflow_turns for run, _ in rows),
        priced,
        len(rows),
    )


def settings_of(candidate: Candidate, eviction: EvictionOptions) -> dict[str, dict[str, object]]:
    """The settings as sections of the settings file, without what they leave as it is."""
    orange = candidate.trigger
    thresholds: dict[str, object] = {
        "yellow": round(min(0.5, orange * 2 / 3), 4),
        "orange": orange,
        "red": round(max(0.9, (1 + orange) / 2 if orange >= 0.9 else 0.9), 4),
    }
    section: dict[str, object] = {"policy": candidate.policy, "target": candidate.target}
    if candidate.weights is not None:
        names = ("freshness", "priority", "type_ttl", "reference")
        weights = EvictionWeights(*candidate.weights)
        section["weights"] = {name: getattr(weights, name) for name in names}
    return {"pressure_thresholds": thresholds, "eviction": section}
