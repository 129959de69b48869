"""Settings of the manager room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """When the manager acts beyond the pressure levels."""

    emergency: Annotated[
        float, Meta(gt=0, le=1, description="utilization from which on everything is tried; red where that is higher")
    ] = 0.95
    forecast_trigger: Annotated[
        bool, Meta(description="whether it acts at once when fewer turns remain than the plan needs")
    ] = True
