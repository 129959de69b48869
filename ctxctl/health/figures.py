"""What a session is compared by with another one, and the same from a report or a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from ctxctl.health.result import METRICS, Health
from ctxctl.model.finding import FINDING_LEVELS

Better = Literal["lower", "higher", "neither"]
Unit = Literal["share", "tokens", "usd", "number"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. better: which way is an improvement; floor: a change up to this is none, in the figure's own unit."""

    name: str
    better: Better
    floor: float
    unit: Unit = "number"


FIGURES = (
    Figure("cost", "lower", 0.01, "usd"),
    Figure("cost_per_turn", "lower", 0.001, "usd"),
    Figure("peak", "lower", 1_000, "tokens"),
    Figure("peak_utilization", "lower", 0.02, "share"),
    Figure("utilization", "lower", 0.02, "share"),
    Figure("burn_rate", "lower", 200, "tokens"),
    Figure("cache_hit_rate", "higher", 0.02, "share"),
    Figure("fidelity", "higher", 0.02, "share"),
    Figure("tool_result_bloat", "lower", 0.03, "share"),
    Figure("eviction_frequency", "lower", 0.5),
    Figure("compaction_frequency", "lower", 0.5),
    Figure("compression_ratio", "higher", 0.25),
    Figure("resume_success_rate", "higher", 0.02, "share"),
    Figure("token_drift", "lower", 0.02, "share"),
    Figure("overflow_turns", "lower", 0.0),
    Figure("turns", "neither", 0.0),
)
"""In the order of reports. Drift is compared by its size, compactions by the full ones per 100 turns. The floors keep
what is small in itself from counting: 5 % of nearly nothing is nothing."""

Codes = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Measured:
    """One session. session: its id. values: by the name of the figure, None where it was not measured. codes: how many
    alerts and findings there are by level and code."""

    path: str
    session: str | None
    values: Mapping[str, float | None]
    codes: Codes = field(default_factory=dict)


def measured(health: Health) -> Measured:
    """The figures of a session."""
    metrics = {name: getattr(health.metrics, name) for name in METRICS}
    codes: dict[tuple[str, str], int] = {}
    for item in (*health.alerts, *health.findings):
        codes[item.level, item.code] = codes.get((item.level, item.code), 0) + 1
    of = {"cost": health.cost, "peak": health.peak, "peak_utilization": health.peak_utilization, "turns": health.turns}
    return Measured(health.path, health.session, values_of(metrics, of, health.requests), codes)


def values_of(metrics: Mapping[str, Any], session: Mapping[str, Any], requests: Any) -> dict[str, float | None]:
    """Figures out of the metrics and the facts of a session, as JSON has them; what is no number was not measured."""
    values = {figure.name: number(metrics.get(figure.name, session.get(figure.name))) for figure in FIGURES}
    layers = metrics.get("compaction_frequency")
    values["compaction_frequency"] = number(layers.get("full", 0.0)) if isinstance(layers, Mapping) else None
    drift, calls = values["token_drift"], number(requests)
    values["token_drift"] = abs(drift) if drift is not None else None
    cost = values["cost"]
    values["cost_per_turn"] = cost / calls if cost is not None and calls else None
    return values


def number(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if isfinite(value) else None


def counted(items: Any) -> dict[tuple[str, str], int]:
    """How many alerts and findings of a JSON report there are by level and code."""
    codes: dict[tuple[str, str], int] = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and item.get("level") in FINDING_LEVELS and isinstance(item.get("code"), str):
            key = (item["level"], item["code"])
            codes[key] = codes.get(key, 0) + 1
    return codes
