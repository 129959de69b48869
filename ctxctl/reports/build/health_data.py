"""The JSON and the flat rows of `health`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from ctxctl.health.result import METRICS, Health, TurnMetrics
from ctxctl.model.finding import FINDING_LEVELS, Finding

COLUMNS = ("path", *TurnMetrics.__dataclass_fields__)


def health_data(health: Health, *, turns: bool = False) -> dict[str, Any]:
    """`result` of one session (the JSON contract's names first). turns: with a row per turn."""
    metrics = health.metrics
    data: dict[str, Any] = {
        "metrics": {name: getattr(metrics, name) for name in METRICS},
        "not_measured": dict(metrics.why),
        "alerts": [alert_data(alert) for alert in health.alerts],
        "findings": [finding_data(finding) for finding in health.findings],
        "trend": asdict(health.trend),
        "session": {
            "path": health.path,
            "id": health.session,
            "format": health.format,
            "model": health.model,
            "window": health.window,
            "window_source": health.window_source,
            "tokens": health.tokens,
            "peak": health.peak,
            "peak_utilization": health.peak_utilization,
            "turns": health.turns,
            "requests": health.requests,
            "cost": health.cost,
            "turns_above_critical": health.high_turns,
            "compactions": health.compactions,
            "curve": health.curve,
            "damaged": health.damage,
            "started": health.started,
            "ended": health.ended,
        },
        "fidelity": None if health.fidelity is None else asdict(health.fidelity),
        "gates": [asdict(gate) for gate in health.gates],
    }
    if turns:
        data["turns"] = health.series
    return data


def alert_data(alert: Finding) -> dict[str, Any]:
    """One alert."""
    return {
        "code": alert.code,
        "level": alert.level,
        "turn": alert.turn,
        "message": alert.message,
        "hint": alert.hint,
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """One finding of a detector, with what it rests on."""
    return {
        **alert_data(finding),
        "line": finding.line,
        "evidence": None if finding.evidence is None else asdict(finding.evidence),
    }


def total_data(healths: Sequence[Health], failed: int, skipped: int) -> dict[str, Any]:
    """Sums over several sessions; metrics are means over the sessions that measured them."""
    counts: dict[str, int] = {}
    levels = dict.fromkeys(FINDING_LEVELS, 0)
    for health in healths:
        for item in (*health.alerts, *health.findings):
            counts[item.code] = counts.get(item.code, 0) + 1
            levels[item.level] += 1
    costs = [h.cost for h in healths if h.cost is not None]
    return {
        "files": len(healths) + failed,
        "failed": failed,
        "skipped": skipped,
        "turns": sum(h.turns for h in healths),
        "cost": sum(costs) if costs else None,
        "cost_complete": all(h.cost is not None for h in healths if h.requests),
        "compactions": sum(h.compactions for h in healths),
        "damaged": sum(1 for h in healths if h.damage),
        "peak": max((h.peak for h in healths if h.peak is not None), default=None),
        "metrics": {name: mean_of(healths, name) for name in METRICS if name != "compaction_frequency"},
        "levels": levels,
        "codes": dict(sorted(counts.items())),
    }


def mean_of(healths: Sequence[Health], name: str) -> float | None:
    """The mean of a metric over the sessions that measured it, None when none did."""
    values = [v for h in healths if (v := getattr(h.metrics, name)) is not None]
    return fmean(values) if values else None


def turn_records(health: Health) -> Iterator[tuple[Any, ...]]:
    """The rows of the CSV, in the order of COLUMNS: one per turn."""
    for turn in health.series:
        row = [getattr(turn, name) for name in COLUMNS[1:]]
        yield health.path, *("+".join(v) if isinstance(v, tuple) else v for v in row)
