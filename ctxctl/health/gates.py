"""Gates for CI: what a session, or a run over several, must not exceed (requirement B6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from ctxctl.budgets.gate_options import GateOptions
from ctxctl.errors import UsageError
from ctxctl.health.codes import rules
from ctxctl.health.monitor import WHY
from ctxctl.health.result import METRICS, Health
from ctxctl.model.finding import FINDING_LEVELS, Finding, Gate
from ctxctl.registry import closest

if TYPE_CHECKING:
    from ctxctl.health.compare import Comparison

REGRESSION, DAMAGE = "regression", "damage"
"""Words of --fail-on besides levels and codes: something got worse than what it is compared with; parts of a file could
not be read as they should."""
NOTHING_COMPACTED = "nothing was compacted"


def known_codes(words: Sequence[str], option: str) -> tuple[str, ...]:
    """Codes of alerts and detectors as they were given: in lists with commas, dashes for underscores. Raises UsageError
    with a did-you-mean for one that there is not."""
    return _known(words, option, [rule.code for rule in rules()])


def words_of(words: Sequence[str], option: str = "--fail-on") -> frozenset[str]:
    """What --fail-on asks for: levels, codes of alerts and detectors, `regression`, `damage`. Raises UsageError as
    `known_codes` does."""
    known = [*FINDING_LEVELS, REGRESSION, DAMAGE, *(rule.code for rule in rules())]
    return frozenset(_known(words, option, known))


def _known(words: Sequence[str], option: str, known: list[str]) -> tuple[str, ...]:
    found = [part.strip() for word in words for part in word.split(",") if part.strip()]
    if words and not found:
        raise UsageError(f"{option} names nothing", hint=f"known: {', '.join(known)}")
    codes = []
    for word in found:
        code = word.lower().replace("-", "_")
        if code not in known:
            near = closest(code, known)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
            raise UsageError(f"{option}: unknown {word!r}", hint=hint)
        codes.append(code)
    return tuple(dict.fromkeys(codes))


def fails(item: Finding, words: Set[str]) -> bool:
    """Whether --fail-on asks for such an alert or finding: by its code, or by its level or a milder one."""
    rank = FINDING_LEVELS.index(item.level)
    return item.code in words or any(level in words for level in FINDING_LEVELS[: rank + 1])


@dataclass(frozen=True, slots=True)
class _Limit:
    """One limit. value: what is held against it; shown: for people; why: where a missing value is explained (a metric's
    name, or the words); least: it is a minimum; absent: when there is nothing to hold against it, why."""

    value: Callable[[Health], float | None]
    shown: Callable[[float], str]
    why: str
    least: bool = False
    absent: Callable[[Health], str | None] = lambda _: None


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value == 0 or abs(value) >= 0.1 else f"${value:,.4f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _plain(value: float) -> str:
    return f"{value:,.1f}"


def _whole_window(health: Health) -> str | None:
    return NOTHING_COMPACTED if not health.compactions else None


def _uncompacted(health: Health) -> str | None:
    kinds = {kind for turn in health.series for kind in turn.compactions}
    return NOTHING_COMPACTED if not health.compactions and not kinds & {"full", "micro"} else None


def _unresumed(health: Health) -> str | None:
    why = WHY["resume_success_rate"]
    return why if health.metrics.why.get("resume_success_rate") == why else None


def _drift(health: Health) -> float | None:
    value = health.metrics.token_drift
    return None if value is None else abs(value)


PRICE = "no model call reports its usage, or a model has no price (`ctxctl list models`)"
_LIMITS: dict[str, _Limit] = {
    "max_cost": _Limit(lambda h: h.cost, _usd, PRICE),
    "max_cost_per_turn": _Limit(
        lambda h: h.cost / h.requests if h.cost is not None and h.requests else None, _usd, PRICE
    ),
    "max_peak": _Limit(lambda h: h.peak, _whole, "there was no model call"),
    "max_tokens": _Limit(lambda h: h.tokens, _whole, "nothing is known of the window now"),
    "max_total": _Limit(
        lambda h: h.usage.total if h.usage and h.usage.requests else None, _whole, "no usage is reported"
    ),
    "max_turns": _Limit(lambda h: h.turns, _whole, ""),
    "max_peak_utilization": _Limit(lambda h: h.peak_utilization, _percent, "utilization"),
    "max_compactions": _Limit(lambda h: h.compactions, _whole, ""),
    "max_evictions": _Limit(lambda h: h.metrics.eviction_frequency, _plain, "eviction_frequency"),
    "max_overflow_turns": _Limit(lambda h: h.metrics.overflow_turns, _whole, "overflow_turns"),
    "min_hit_rate": _Limit(lambda h: h.metrics.cache_hit_rate, _percent, "cache_hit_rate", least=True),
    "min_fidelity": _Limit(lambda h: h.metrics.fidelity, _percent, "fidelity", least=True, absent=_whole_window),
    "min_compression": _Limit(
        lambda h: h.metrics.compression_ratio, _plain, "compression_ratio", least=True, absent=_uncompacted
    ),
    "min_resume_success": _Limit(
        lambda h: h.metrics.resume_success_rate, _percent, "resume_success_rate", least=True, absent=_unresumed
    ),
    "max_drift": _Limit(_drift, _percent, "token_drift"),
    "max_bloat": _Limit(lambda h: h.metrics.tool_result_bloat, _percent, "tool_result_bloat"),
    "max_burn_rate": _Limit(lambda h: h.metrics.burn_rate, _whole, "burn_rate"),
}
"""Limits of one session, in the order of GateOptions. Those that are not here are of several sessions, or of `budget`
alone."""


def gates_of(health: Health, options: GateOptions, fail_on: Set[str] = frozenset()) -> tuple[Gate, ...]:
    """A session against the limits that are set, and against what must not be found in it.

    A value at its limit passes. One that could not be measured does not, and the text says why; except where there was
    nothing to measure: without a compaction nothing can have been lost by one, without a resume none can have failed.
    """
    return (*_found(health, fail_on), *_limits(health, options))


def _found(health: Health, fail_on: Set[str]) -> Iterator[Gate]:
    items = (*health.alerts, *health.findings)
    for level in FINDING_LEVELS:
        if level in fail_on:
            ranks = [FINDING_LEVELS.index(item.level) for item in items]
            worst = FINDING_LEVELS[max(ranks)] if ranks else "none"
            count = sum(rank >= FINDING_LEVELS.index(level) for rank in ranks)
            said = f"{count:,} of that level or above, the worst is {worst}" if count else "none of that level or above"
            yield Gate("fail-on", level, worst, not count, f"fail-on {level}: {said}")
    for code in sorted(fail_on - {*FINDING_LEVELS, REGRESSION, DAMAGE}):
        hits = [item for item in items if item.code == code]
        at = ", ".join(f"turn {item.turn}" for item in hits[:3] if item.turn is not None)
        more = f" ({at}{', ...' if len(hits) > 3 else ''})" if at else ""
        name = f"fail-on {code}"
        yield Gate(name, 0, len(hits), not hits, f"{name}: {len(hits):,} found{more}")
    if DAMAGE in fail_on:
        name = f"fail-on {DAMAGE}"
        said = f"{health.damage:,} found" if health.damage is not None else "could not be checked"
        yield Gate(name, 0, health.damage, health.damage == 0, f"{name}: {said}")


def _limits(health: Health, options: GateOptions) -> Iterator[Gate]:
    for field, of in _LIMITS.items():
        limit = getattr(options, field)
        if limit is None:
            continue
        value = of.value(health)
        name = field.replace("_", "-")
        asked = f"{name} {of.shown(limit)}"
        if value is not None:
            ok = value >= limit if of.least else value <= limit
            yield Gate(name, limit, value, ok, f"{asked}: it is {_apart(value, limit, ok, of.shown)}")
        elif (absent := of.absent(health)) is not None:
            yield Gate(name, limit, None, True, f"{asked}: {absent}")
        else:
            why = health.metrics.why.get(of.why, "not measured") if of.why in METRICS else of.why
            yield Gate(name, limit, None, False, f"{asked} could not be checked: {why}")


def _apart(value: float, limit: float, ok: bool, shown: Callable[[float], str]) -> str:
    """A value for people; with all its digits where it would look like the limit that it fails."""
    if ok or shown(value) != shown(limit):
        return shown(value)
    return f"{100 * value:.10g}%" if shown is _percent else f"{value:.10g}"


def total_gates(
    healths: Sequence[Health],
    options: GateOptions,
    fail_on: Set[str] = frozenset(),
    comparison: Comparison | None = None,
) -> tuple[Gate, ...]:
    """All sessions of one run together against the limits of a run, and against what they are compared with."""
    return tuple(_totals(healths, options, fail_on, comparison))


def _totals(
    healths: Sequence[Health], options: GateOptions, fail_on: Set[str], comparison: Comparison | None
) -> Iterator[Gate]:
    if REGRESSION in fail_on:
        name = f"fail-on {REGRESSION}"
        if comparison is None:
            yield Gate(
                name, 0, None, False, f"{name} could not be checked: there is nothing to compare with (--compare-to)"
            )
        else:
            worse = comparison.worse
            said = f"{len(worse):,} got worse" + (f": {', '.join(worse[:5])}" if worse else "")
            yield Gate(name, 0, len(worse), not worse, f"{name}: {said}")
    if options.max_total_cost is not None:
        limit = options.max_total_cost
        asked = f"max-total-cost {_usd(limit)}"
        unpriced = sum(1 for health in healths if health.cost is None and health.turns)
        total = fsum(health.cost for health in healths if health.cost is not None)
        if unpriced and total <= limit:
            why = f"no price is known of {unpriced:,} of {len(healths):,} sessions; the others cost {_usd(total)}"
            yield Gate("max-total-cost", limit, None, False, f"{asked} could not be checked: {why}")
        else:
            least = " at least" if unpriced else ""
            shown = _apart(total, limit, total <= limit, _usd)
            yield Gate("max-total-cost", limit, total, total <= limit, f"{asked}: it is{least} {shown}")
