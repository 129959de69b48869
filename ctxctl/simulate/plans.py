"""From what is asked for to single replays: the cross product of policies and capacities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, cast

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.mask import MaskParameters
from ctxctl.eviction.specs import Spec, policy_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace
from ctxctl.simulate.baseline import Baseline
from ctxctl.simulate.bill import Tariff, best_interval
from ctxctl.simulate.budget import evictable_budget, fixed_tokens
from ctxctl.simulate.options import SweepOptions
from ctxctl.simulate.replay import ReplayOptions, replay
from ctxctl.simulate.rows import Run, row_of
from ctxctl.tokens.estimate import counter_for

if TYPE_CHECKING:
    from ctxctl.simulate.presets.schema import Preset

ANSWER = 8192
"""Tokens reserved for an answer at a window that is not the model's own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One replay that is asked for."""

    subject: Spec | Preset
    capacity: int
    trigger: float | None
    target: float | None


def capacities_of(trace: Trace, options: SweepOptions, window: int | None) -> list[int]:
    """Windows to replay at: those that are asked for, else the model's."""
    if options.share is not None:
        return [evictable_budget(trace, options.share)]
    return list(dict.fromkeys(options.windows)) or [window or DEFAULT_WINDOW]


def plans_of(options: SweepOptions, capacities: Sequence[int]) -> Iterator[Plan]:
    """The cross product; a policy that does not rank has no use for several triggers and targets."""
    exactly = options.share is not None
    triggers: Sequence[float | None] = (1.0,) if exactly else options.triggers or (None,)
    targets: Sequence[float | None] = (1.0,) if exactly else options.targets or (None,)
    for spec in options.policies:
        many = POLICIES.get(spec.name).ranks
        for capacity, trigger, target in product(
            capacities, triggers if many else triggers[:1], targets if many else targets[:1]
        ):
            yield Plan(spec, capacity, trigger, target)
    for preset in options.presets:
        for capacity in capacities:
            yield Plan(preset, capacity, None, None)


def run_plan(
    trace: Trace,
    plan: Plan,
    tariff: Tariff,
    options: SweepOptions,
    baseline: Baseline,
    best: int | None,
    window: int | None,
) -> Run:
    """Replay one plan. best: tokens that the optimum fetches again at its capacity; window: of the model, None when
    unknown."""
    if isinstance(plan.subject, Spec):
        cls = POLICIES.get(plan.subject.name)
        played = play(trace, plan.subject, plan.capacity, plan.trigger, plan.target, tariff, options)
        row = row_of(played, cls.group, tariff, baseline, name=plan.subject.text, best=best)
        if not cls.ranks:
            row = replace(row, trigger=None, target=None)
        if cls.name != "mask":
            return row
        keep = dict(plan.subject.parameters).get("keep", MaskParameters().keep)
        return replace(row, best_interval=best_interval(int(keep), tariff.multipliers()))
    preset = plan.subject
    if preset.unsupported is not None:
        return Run(preset.id, "preset", plan.capacity, None, None, preset.unsupported, "unsupported")
    from ctxctl.simulate.presets import preset_policy

    answer = tariff.row.output if tariff.row is not None and plan.capacity == window else None
    setting = replace(_setting(trace, plan.capacity, options), output=answer or ANSWER, model=trace.model)
    policy = preset_policy(preset, setting, options.summary)
    warning = policy.warning(fixed_tokens(trace))
    played = play(trace, policy, plan.capacity, None, None, tariff, options)
    row = row_of(played, "preset", tariff, baseline, name=preset.id, best=best)
    return replace(row, trigger=None, target=None, replay=preset.replay, warning=warning)


def _counter(trace: Trace) -> Callable[[str, str], int]:
    """Tokens of a text that replaces another, counted as the trace's own blocks were."""
    if "counter" not in trace.memo:
        trace.memo["counter"] = lru_cache(1 << 16)(counter_for(trace.model, trace.counter, trace.ratio))
    return cast(Callable[[str, str], int], trace.memo["counter"])


def _setting(trace: Trace, capacity: int, options: SweepOptions) -> Setting:
    compaction = options.compaction
    return Setting(capacity, _counter(trace), options.eviction, mark=compaction.mark, compaction=compaction)


def play(
    trace: Trace,
    policy: str | Spec | Policy,
    capacity: int,
    trigger: float | None,
    target: float | None,
    tariff: Tariff,
    options: SweepOptions,
) -> Replay:
    """Replay a policy at a capacity. trigger, target: utilizations, None as the settings have them."""
    if not isinstance(policy, Policy):
        policy = policy_of(policy, _setting(trace, capacity, options))
    manager = ContextWindowManager(
        capacity,
        policy=policy,
        trigger=trigger,
        target=target,
        thresholds=options.thresholds,
        pressure=options.pressure,
        eviction=options.eviction,
        options=options.manager,
        compaction=options.compaction,
        trace=trace,
        explain=options.steps,
    )
    return replay(
        trace,
        manager,
        ReplayOptions(tariff.life, options.terms.minimum, options.refetch, options.steps),
    )
