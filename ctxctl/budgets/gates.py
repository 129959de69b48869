"""Gates for CI over budgets: what a session, or all of a run, must not exceed (requirement B6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from ctxctl.budgets.components import STATUSES
from ctxctl.budgets.gate_options import GateOptions, component_limit
from ctxctl.budgets.result import Budget
from ctxctl.model.finding import Gate

FORECAST = "forecast"
FAIL_ON = ("soft", "hard", FORECAST)
"""What --fail-on looks for: a component at its soft limit or above, at its hard limit, a plan that does not fit."""
WINDOW_UNKNOWN = "the window is unknown (--window sets it)"
PRICE = "no call reports its usage, or a model has no price (`ctxctl list models`)"


@dataclass(frozen=True, slots=True)
class _Limit:
    """value: what is held against it; shown: for people; why: why it can be missing."""

    value: Callable[[Budget], float | None]
    shown: Callable[[float], str]
    why: str


def usd(value: float) -> str:
    """Dollars for people: with the digits that a small sum needs."""
    return f"${value:,.2f}" if value == 0 or abs(value) >= 0.1 else f"${value:,.4f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


_LIMITS: dict[str, _Limit] = {
    "max_cost": _Limit(lambda b: b.money.total, usd, PRICE),
    "max_cost_per_turn": _Limit(lambda b: b.money.per_turn, usd, PRICE),
    "max_peak": _Limit(lambda b: b.totals.peak, _whole, "there was no model call"),
    "max_tokens": _Limit(lambda b: b.total_used, _whole, "nothing is known of the window now"),
    "max_total": _Limit(lambda b: b.totals.total, _whole, "no usage is reported"),
    "max_turns": _Limit(lambda b: b.totals.turns, _whole, ""),
    "max_peak_utilization": _Limit(
        lambda b: b.totals.peak / b.window if b.totals.peak is not None and b.window else None, _percent, WINDOW_UNKNOWN
    ),
    "max_compactions": _Limit(lambda b: b.totals.compactions, _whole, ""),
    "max_overflow_turns": _Limit(lambda b: b.totals.overflow_turns, _whole, ""),
    "max_burn_rate": _Limit(lambda b: b.burn_rate, _whole, "no turn added to the window"),
}
"""Limits of one session that a budget measures, in the order of GateOptions."""


def gates_of(budget: Budget, options: GateOptions, fail_on: Set[str] = frozenset()) -> tuple[Gate, ...]:
    """A session against the limits that are set. A value at its limit passes; one that could not be measured does not,
    and the text says why. Without a plan, none can lack turns."""
    return (*_found(budget, fail_on), *_limits(budget, options), *_components(budget, options))


def _found(budget: Budget, fail_on: Set[str]) -> Iterator[Gate]:
    for level in ("soft", "hard"):
        if level not in fail_on:
            continue
        known = [(c, c.status) for c in budget.components if c.status is not None]
        if not known:
            yield Gate("fail-on", level, None, False, f"fail-on {level} could not be checked: {WINDOW_UNKNOWN}")
            continue
        worst = max((status for _, status in known), key=STATUSES.index)
        over = [c for c, status in known if STATUSES.index(status) >= STATUSES.index(level)]
        said = ", ".join(f"{c.component} at {c.utilization:.0%}" for c in over if c.utilization is not None)
        said = said or ", ".join(c.component for c in over)
        yield Gate("fail-on", level, worst, not over, f"fail-on {level}: {said or 'every component is below'}")
    if FORECAST in fail_on:
        plan = budget.forecast
        name = f"fail-on {FORECAST}"
        if plan is None:
            yield Gate(name, 0, None, True, f"{name}: the session has no plan")
        elif plan.act is None:
            why = WINDOW_UNKNOWN if budget.window is None else "no turn added to the window"
            yield Gate(name, plan.turns_needed, None, False, f"{name} could not be checked: {why}")
        else:
            left = "no end in sight" if plan.turns_remaining is None else f"{plan.turns_remaining:,} remain"
            said = f"{name}: the plan needs {plan.turns_needed:,} turns, {left}"
            yield Gate(name, plan.turns_needed, plan.turns_remaining, not plan.act, said)


def _limits(budget: Budget, options: GateOptions) -> Iterator[Gate]:
    for field, of in _LIMITS.items():
        limit = getattr(options, field)
        if limit is None:
            continue
        value, name = of.value(budget), field.replace("_", "-")
        asked = f"{name} {of.shown(limit)}"
        if value is None:
            yield Gate(name, limit, None, False, f"{asked} could not be checked: {of.why}")
        else:
            yield Gate(name, limit, value, value <= limit, f"{asked}: it is {_apart(value, limit, of.shown)}")


def _apart(value: float, limit: float, shown: Callable[[float], str]) -> str:
    """A value for people, with all its digits where it would look like the limit that it fails."""
    return shown(value) if value <= limit or shown(value) != shown(limit) else f"{value:.10g}"


def _components(budget: Budget, options: GateOptions) -> Iterator[Gate]:
    for name, given in options.components.items():
        limit = component_limit(name, given)
        title = f"max {limit.component}"
        tokens, used = limit.of(budget.window), budget.component(limit.component).used
        if tokens is None:
            yield Gate(title, limit.text, used, False, f"{title}={limit.text} could not be checked: {WINDOW_UNKNOWN}")
        elif used is None:
            why = "it is not in the file, and no usage is reported that shows it"
            yield Gate(title, tokens, None, False, f"{title}={limit.text} could not be checked: {why}")
        else:
            yield Gate(title, tokens, used, used <= tokens, f"{title}={limit.text}: it holds {used:,} tokens")


def total_gates(budgets: Sequence[Budget], options: GateOptions, cost: float | None) -> tuple[Gate, ...]:
    """All sessions of one run together. cost: USD of all their calls with a price, each call once."""
    limit = options.max_total_cost
    if limit is None:
        return ()
    unpriced = sum(b.money.total is None and b.totals.turns > 0 for b in budgets)
    total, asked = cost or 0.0, f"max-total-cost {usd(limit)}"
    if unpriced and total <= limit:
        why = f"no price is known of {unpriced:,} of {len(budgets):,} sessions; the others cost {usd(total)}"
        return (Gate("max-total-cost", limit, None, False, f"{asked} could not be checked: {why}"),)
    least = "at least " if unpriced else ""
    said = f"{asked}: it is {least}{_apart(total, limit, usd)}"
    return (Gate("max-total-cost", limit, total, total <= limit, said),)
