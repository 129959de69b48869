"""What health can say: the codes of its alerts and detectors, what each means and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.health.detectors.base import DETECTORS
from ctxctl.model.finding import FindingLevel


@dataclass(frozen=True, slots=True)
class Rule:
    """A code. kind: `alert` or `detector`, `alert and detector` where both use it. level: that it has mostly; signal:
    what is looked for, in one sentence; fix: what to do."""

    code: str
    kind: str
    level: FindingLevel
    signal: str
    fix: str


ALERTS = (
    Rule(
        "utilization_critical",
        "alert",
        "critical",
        "the window is above 90 % of its size for 3 model calls in a row",
        "split the task, or keep what is not needed now outside the window (files, notes, sub-agents)",
    ),
    Rule(
        "utilization_prepare",
        "alert",
        "info",
        "the window is at 75 % of its size or above",
        "save a checkpoint, and clear or compact what is not needed any more",
    ),
    Rule(
        "eviction_frequency",
        "alert",
        "warning",
        "more than 5 units are evicted per turn, in the mean of the last 5 turns",
        "evict in batches, down to a lower target, or let less in",
    ),
    Rule(
        "low_fidelity",
        "alert",
        "warning",
        "compactions keep less than 75 % of what could be answered before",
        "keep more recent turns, and the state that the task needs word for word",
    ),
    Rule(
        "burn_rate_spike",
        "alert",
        "warning",
        "the newest turn adds more than twice the mean of the turns before it",
        "keep tool output small with a limit, a range or a filter",
    ),
    Rule(
        "weak_compression",
        "alert",
        "warning",
        "compactions make what they replace less than 2 times smaller",
        "ask for a shorter, structured summary, or clear old tool results instead",
    ),
    Rule(
        "token_drift",
        "alert",
        "warning",
        "counted and reported tokens of the window differ by more than 10 %",
        "trust what the provider reports, and look for what the transcript does not show",
    ),
    Rule(
        "low_cache_hit_rate",
        "alert",
        "warning",
        "the cache serves less than 80 % of the prompts of a stable task",
        "keep the beginning of the prompt the same from call to call, and append instead of editing",
    ),
    Rule(
        "resume_success",
        "alert",
        "warning",
        "less than 95 % of the windows that begin with a resume go on where the last one stopped",
        "write goal, step, decisions and open issues into the checkpoint before a window closes",
    ),
)
"""Alerts (requirement H2), with their default limits."""


def rules() -> tuple[Rule, ...]:
    """Every alert and detector, sorted by code."""
    found = {rule.code: rule for rule in ALERTS}
    for code, detector in DETECTORS:
        both = "alert and detector" if code in found else "detector"
        found[code] = Rule(
            code, both, detector.level, " ".join(detector.signal.split()), " ".join(detector.fix.split())
        )
    return tuple(found[code] for code in sorted(found))
