"""Sessions' health made by hand, so that each value is known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.health.result import Health, Metrics, Trend, TurnMetrics
from ctxctl.model.finding import Finding
from ctxctl.model.usage import UsageTotals

sys.path.insert(0, str(Path(__file__).parent))  # helpers beside the tests are found by name


def a_health(path: str = "runs/a.jsonl", **changes: Any) -> Health:
    """A session of which everything was measured."""
    fields: dict[str, Any] = {
        "path": path,
        "session": path.rpartition("/")[2].partition(".")[0],
        "model": "claude-sonnet-4-5",
        "format": "claude-code",
        "window": 200_000,
        "tokens": 190_000,
        "peak": 196_000,
        "peak_utilization": 0.98,
        "turns": 5,
        "requests": 7,
        "cost": 1.25,
        "high_turns": 3,
        "compactions": 2,
        "curve": "sawtooth",
        "metrics": Metrics(0.95, 1.2, {"full": 40.0}, 12.5, 2500.0, 0.8, 0.4, 0.9, 0.5, -0.02, 1),
        "series": [
            TurnMetrics(1, 100_000, added=100, compactions=("full",)),
            TurnMetrics(2, 100_300, added=300, evictions=6, evicted_tokens=600, compactions=("micro",)),
            TurnMetrics(3, 100_500, added=200),
            TurnMetrics(4, 100_500, added=None),
            TurnMetrics(5, 190_000, added=500),
        ],
        "alerts": (Finding("utilization_critical", "critical", "m", "h", 5),),
        "findings": (
            Finding("repeated_calls", "warning", "m", "h", 2),
            Finding("repeated_calls", "warning", "m", "h", 3),
            Finding("prefix_break", "info", "m", "h", 4),
        ),
        "trend": Trend(5),
        "started": "2026-05-01T10:00:00Z",
        "ended": "2026-05-01T11:00:00Z",
        "usage": UsageTotals(1000, 200, 3000, 400, 50, 4600, 7),
        "stable": True,
    }
    return Health(**{**fields, **changes})


@pytest.fixture
def health() -> Callable[..., Health]:
    return a_health


@pytest.fixture
def unmeasured() -> Health:
    """A session of which next to nothing is known."""
    return Health(
        "b.json", None, None, "openai-chat", None, None, None, None, 2, 0, None, 0, 0, None, Metrics(), (), (), (),
        Trend(0, insufficient_data=True),
    )  # fmt: skip
