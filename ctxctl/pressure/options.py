"""Settings of the pressure room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

LEVELS = ("green", "yellow", "orange", "red")
"""Pressure levels, lowest first."""

Share = Annotated[float, Meta(gt=0, le=1)]


@dataclass(frozen=True, slots=True)
class PressureThresholds:
    """Utilization from which on a level holds (reached at >=). 0 < yellow < orange < red <= 1."""

    yellow: Annotated[Share, Meta(description="utilization from which on the level is yellow: plan")] = 0.50
    orange: Annotated[Share, Meta(description="utilization from which on the level is orange: act")] = 0.75
    red: Annotated[Share, Meta(description="utilization from which on the level is red: forced")] = 0.90

    def __post_init__(self) -> None:
        if not self.yellow < self.orange < self.red:
            raise ValueError(
                f"the order must be yellow < orange < red, not {self.yellow:g}, {self.orange:g}, {self.red:g}"
            )

    def level(self, utilization: float) -> str:
        """The level of a utilization, which may be above 1."""
        if utilization >= self.red:
            return "red"
        if utilization >= self.orange:
            return "orange"
        return "yellow" if utilization >= self.yellow else "green"


@dataclass(frozen=True, slots=True)
class PressureOptions:
    """How pressure is measured."""

    velocity_window: Annotated[
        int, Meta(ge=2, le=1000, description="turns over which the mean of added tokens is taken")
    ] = 5
    spike_ratio: Annotated[
        float,
        Meta(gt=1, le=1000, description="a turn that adds more than this times the mean of those before is a spike"),
    ] = 3.0
    watermark: Annotated[
        Share, Meta(description="utilization beyond which quality is expected to fall (sensible: 0.4 to 0.6)")
    ] = 0.50
    act_at: Annotated[
        Literal["orange", "watermark"],
        Meta(description="where action starts: at the orange threshold or the watermark"),
    ] = "orange"
