"""The cheapest settings that keep the loss under a bound, searched over a user's own sessions.

A grid over policy, trigger and target, then the weights of hybrid and the neighbourhood of the best. Half of the
sessions are held out, when there are enough, and the choice is judged on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, cast

from ctxctl.eviction.options import EvictionWeights
from ctxctl.eviction.specs import Spec
from ctxctl.model.limits import ModelTable
from ctxctl.model.result import Floor
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
    """What settings did on some sessions. cost: USD of the calibrated (else ideal) bill of the sessions that have one,
    tokens sent where none has; base: the same of what was recorded; priced: whether it is USD. loss: weighted misses /
    weighted references; recorded_loss: of what was recorded. overflows: refused calls; acted: evictions and
    compactions. sessions, billed: how many, and how many of them have a bill."""

    cost: float
    base: float
    loss: float
    recorded_loss: float
    overflows: int
    acted: int
    priced: bool
    sessions: int
    billed: int
    floor: Floor | None = None

    @property
    def ratio(self) -> float:
        """Of the recorded bill."""
        return self.cost / self.base if self.base else 1.0


@dataclass(frozen=True, slots=True)
class Tuned:
    """The choice, what it did where it was found and where it was not, and how many settings were tried. why: where
    nothing is chosen, `loss` (all lose more; best_loss is the least that any lost), `window` (all that keep the bound
    leave calls above the window; floor: what may not leave) or `nothing` (none is cheaper than what was done; idle:
    none had anything to do)."""

    choice: Candidate | None
    trained: Score | None
    held_out: Score | None
    tried: int
    best_loss: float
    training: tuple[str, ...]
    testing: tuple[str, ...]
    why: Literal["loss", "window", "nothing"] | None = None
    floor: Floor | None = None
    idle: bool = False


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
    if best is None or known[best].overflows:
        low = [s for s in known.values() if s.loss <= max_loss] or list(known.values())
        floor = next((s.floor for s in low if s.floor is not None), None)
        why: Literal["window", "loss"] = "window" if all(s.overflows for s in low) else "loss"
        return Tuned(None, None, None, len(known), least, *names, why=why, floor=floor)
    if not known[best].acted or known[best].ratio >= 1:
        idle = not any(s.acted for s in known.values())
        return Tuned(None, known[best], None, len(known), least, *names, why="nothing", idle=idle)
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
    """Of those that keep the bound and leave the fewest calls above the window the cheapest; of equals the one that
    loses less, then the one that acts later."""
    able = [(c, s) for c, s in known.items() if s.loss <= max_loss]
    if not able:
        return None
    return min(
        able,
        key=lambda item: (
            item[1].overflows,
            round(item[1].ratio, 6),
            item[1].loss,
            -item[0].trigger,
            -item[0].target,
            item[0].policy,
        ),
    )[0]


def score(candidate: Candidate, subjects: Sequence[Subject], table: ModelTable, options: SweepOptions) -> Score:
    """What settings would have cost and lost over some sessions."""
    rows: list[tuple[Run, Run]] = [
        single(s.trace, table, options, s.window, candidate.spec, candidate.trigger, candidate.target) for s in subjects
    ]
    billed = [(run, base) for run, base in rows if run.cost.best() is not None and base.cost.best() is not None]
    counted = billed or rows

    def total(runs: Iterable[Run]) -> float:
        return sum((r.cost.best() or 0.0) if billed else float(r.prompt_tokens or 0) for r in runs)

    def loss(runs: Sequence[Run]) -> float:
        weight = sum(r.weight for r in runs)
        return sum(r.missed_weight for r in runs) / weight if weight else 0.0

    runs = [run for run, _ in rows]
    return Score(
        total(run for run, _ in counted),
        total(base for _, base in counted),
        loss(runs),
        loss([base for _, base in rows]),
        sum(run.overflow_turns for run in runs),
        sum(run.evictions + run.compactions for run in runs),
        bool(billed),
        len(rows),
        len(billed),
        max((r.floor for r in runs if r.floor is not None), key=lambda f: f.tokens, default=None),
    )


def settings_of(candidate: Candidate, options: SweepOptions) -> dict[str, Any]:
    """The settings that replay a candidate again: all that it was tuned under, as sections of the settings file,
    without what has its default."""
    orange = candidate.trigger
    eviction = replace(options.eviction, policy=cast(Any, candidate.policy), target=candidate.target)
    if candidate.weights is not None:
        eviction = replace(eviction, weights=EvictionWeights(*candidate.weights))
    found: dict[str, Any] = {}
    if options.windows:
        found["max_context_tokens"] = options.windows[0]
    found["pressure_thresholds"] = {
        "yellow": round(min(options.thresholds.yellow, orange * 2 / 3), 4),
        "orange": orange,
        "red": round(max(options.thresholds.red, (1 + orange) / 2), 4),
    }
    found["pressure"] = {**_changed(options.pressure), "act_at": "orange"}
    found["manager"] = _changed(options.manager)
    found["eviction"] = {"policy": eviction.policy, "target": eviction.target, **_changed(eviction)}
    return {name: section for name, section in found.items() if section != {}}


def _changed(section: Any) -> dict[str, Any]:
    """What a section has that is not its default, as plain values."""
    own, default = _plain(section), _plain(type(section)())
    return {name: value for name, value in own.items() if value != default[name]}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
