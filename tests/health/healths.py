"""Sessions' health made by hand for gates, history and comparison."""

from __future__ import annotations

from typing import Any

from ctxctl.health.result import Health, Metrics, Trend, TurnMetrics
from ctxctl.model.finding import Finding
from ctxctl.model.usage import UsageTotals


def measure(**changes: Any) -> Metrics:
    """Metrics of which everything was measured."""
    fields = {
        "utilization": 0.5,
        "eviction_frequency": 1.0,
        "compaction_frequency": {"full": 2.0, "micro": 0.0, "rollback": 0.0},
        "compression_ratio": 8.0,
        "burn_rate": 2000.0,
        "fidelity": 0.9,
        "tool_result_bloat": 0.4,
        "cache_hit_rate": 0.9,
        "resume_success_rate": 1.0,
        "token_drift": 0.01,
        "overflow_turns": 0,
    }
    return Metrics(**{**fields, **changes})  # type: ignore[arg-type]


def a_session(name: str = "a", *, metrics: Metrics | None = None, **changes: Any) -> Health:
    """A session that is well."""
    fields: dict[str, Any] = {
        "path": f"runs/{name}.jsonl",
        "session": name,
        "model": "claude-sonnet-4-5",
        "format": "claude-code",
        "window": 200_000,
        "tokens": 100_000,
        "peak": 120_000,
        "peak_utilization": 0.6,
        "turns": 50,
        "requests": 50,
        "cost": 5.0,
        "high_turns": 0,
        "compactions": 1,
        "curve": "rising",
        "metrics": metrics or measure(),
        "series": [TurnMetrics(1, 100_000, compactions=("full",))],
        "alerts": (),
        "findings": (),
        "trend": Trend(10),
        "usage": UsageTotals(1_000, 200, 3_000, 400, 50, 4_600, 50),
        "damage": 0,
        "started": "2026-05-01T10:00:00Z",
    }
    return Health(**{**fields, **changes})


def said(code: str, level: str = "warning", turn: int | None = 7) -> Finding:
    return Finding(code, level, "said", "do this", turn)  # type: ignore[arg-type]
