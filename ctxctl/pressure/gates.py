"""Gates for CI: what must not be exceeded (requirement P4)."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ctxctl.model.finding import Gate
from ctxctl.pressure.analysis import Analysis
from ctxctl.pressure.options import LEVELS, PressureThresholds

DAMAGE = frozenset(
    (
        "damaged_line",
        "torn_tail",
        "torn_compression",
        "nul_block",
        "nul_bytes",
        "invalid_utf8",
        "glued_records",
        "not_an_object",
        "companion_unreadable",
    )
)
"""Codes that say that a part of the file could not be read as it should."""


NOT_READ = "--tokens reported does not read every line"


def check(
    analysis: Analysis,
    thresholds: PressureThresholds,
    fail_on: Set[str],
    max_utilization: float | None,
    max_tokens: int | None,
    max_peak: int | None,
) -> tuple[Gate, ...]:
    """The gates that were asked for. Levels, utilization and tokens are those of the window now; peak: of any turn."""
    return tuple(_gates(analysis, thresholds, fail_on, max_utilization, max_tokens, max_peak))


def _gates(
    analysis: Analysis,
    thresholds: PressureThresholds,
    fail_on: Set[str],
    max_utilization: float | None,
    max_tokens: int | None,
    max_peak: int | None,
) -> Iterator[Gate]:
    tokens, window = analysis.context.tokens, analysis.window.tokens
    utilization = tokens / window if tokens is not None and window else None
    for level in LEVELS:
        if level in fail_on:
            now = thresholds.level(utilization) if utilization is not None else None
            yield _gate("fail-on", level, now, now is not None and LEVELS.index(now) < LEVELS.index(level))
    if "spike" in fail_on:
        spikes = len(analysis.spikes) if analysis.pressure else None
        yield _gate("fail-on spike", 0, spikes, spikes == 0)
    if "damage" in fail_on:
        damaged = sum(d.count for d in analysis.diagnostics if d.code in DAMAGE)
        # with usage alone most lines were not looked at
        known = analysis.counter is not None or damaged > 0
        yield _gate("fail-on damage", 0, damaged if known else None, known and not damaged)
    if max_utilization is not None:
        yield _gate(
            "max-utilization", max_utilization, utilization, utilization is not None and utilization <= max_utilization
        )
    if max_tokens is not None:
        yield _gate("max-tokens", max_tokens, tokens, tokens is not None and tokens <= max_tokens)
    if max_peak is not None:
        peak = analysis.peak.tokens if analysis.peak is not None else None
        yield _gate("max-peak", max_peak, peak, peak is not None and peak <= max_peak)


def _gate(name: str, limit: float | str, value: float | str | None, ok: bool) -> Gate:
    return Gate(name, limit, value, ok, _text(name, limit, value))


def _text(name: str, limit: float | str, value: float | str | None) -> str:
    if name in ("fail-on spike", "fail-on damage"):
        if value is None:
            why = "no turn was measured" if name == "fail-on spike" else NOT_READ
            return f"{name} could not be checked: {why}"
        return f"{name}: {_shown(value)} found"
    if value is None:
        why = "no model call" if name == "max-peak" else "nothing is known of the window now"
        if name in ("fail-on", "max-utilization"):
            why = "the window is unknown, or nothing is in it yet (--window sets it)"
        return f"{name} {_shown(limit)} could not be checked: {why}"
    return f"{name} {_shown(limit)}: it is {_shown(value)}"


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.1%}" if isinstance(value, float) else f"{value:,}"
