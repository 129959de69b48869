"""Settings of the health room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from msgspec import Meta

Metric = Literal[
    "utilization",
    "eviction_frequency",
    "compaction_frequency",
    "compression_ratio",
    "burn_rate",
    "fidelity_score",
    "tool_result_bloat",
    "cache_hit_rate",
    "resume_success_rate",
    "token_drift",
    "overflow_turns",
]
Share = Annotated[float, Meta(gt=0, le=1)]


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Limits beyond which an alert is raised (requirement H2)."""

    utilization_critical: Annotated[
        Share, Meta(description="utilization above this for `critical_turns` turns in a row is critical")
    ] = 0.90
    critical_turns: Annotated[int, Meta(ge=1, le=1000, description="turns in a row that make it critical")] = 3
    utilization_info: Annotated[Share, Meta(description="utilization from which on it is said to prepare")] = 0.75
    eviction_warning: Annotated[float, Meta(gt=0, description="evictions per turn above this are a warning")] = 5
    fidelity_warning: Annotated[Share, Meta(description="fidelity below this is a warning")] = 0.75
    fidelity_target: Annotated[Share, Meta(description="fidelity that a compaction should exceed")] = 0.85
    burn_rate_spike_ratio: Annotated[float, Meta(gt=1, description="a turn above this times the mean is a spike")] = 2.0
    compression_ratio_warning: Annotated[
        float, Meta(gt=1, description="a compaction that shrinks by less than this is a warning")
    ] = 2.0
    token_drift_warning: Annotated[
        Share, Meta(description="difference of counted and reported tokens above this is a warning")
    ] = 0.10
    cache_hit_rate_warning: Annotated[
        Share, Meta(description="cache hit rate below this is a warning on a stable task")
    ] = 0.80
    resume_success_warning: Annotated[Share, Meta(description="share of good resumes below this is a warning")] = 0.95


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """What is measured and when it is reported."""

    metrics: Annotated[tuple[Metric, ...], Meta(description="measures that are computed")] = get_args(Metric)
    alerts: AlertOptions = field(default_factory=AlertOptions)
    ignore: Annotated[tuple[str, ...], Meta(description="codes of alerts and detectors that are not reported")] = ()
    skeleton_tokens: Annotated[
        int, Meta(ge=1, description="tokens of system prompt and tools above which they are too large")
    ] = 15_000
