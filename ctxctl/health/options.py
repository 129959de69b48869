"""Settings of the health room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

Metric = Literal["utilization", "eviction_frequency", "compression_ratio", "burn_rate", "fidelity_score"]
Share = Annotated[float, Meta(gt=0, le=1)]


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Limits beyond which an alert is raised."""

    utilization_critical: Annotated[Share, Meta(description="utilization above this for 3 turns is critical")] = 0.90
    eviction_warning: Annotated[float, Meta(gt=0, description="evictions per turn above this are a warning")] = 5
    fidelity_warning: Annotated[Share, Meta(description="fidelity below this is a warning")] = 0.75
    burn_rate_spike_ratio: Annotated[float, Meta(gt=1, description="a turn above this times the mean is a spike")] = 2.0


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """What is measured and when it is reported."""

    metrics: Annotated[tuple[Metric, ...], Meta(description="measures that are computed")] = (
        "utilization",
        "eviction_frequency",
        "compression_ratio",
        "burn_rate",
        "fidelity_score",
    )
    alerts: AlertOptions = field(default_factory=AlertOptions)
