"""Settings of the budgets room."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from math import fsum
from typing import Annotated

from msgspec import Meta

Part = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Allocations:
    """Shares of the window per component; together at most 1."""

    system_prompt: Part = 0.06
    tool_definitions: Part = 0.04
    message_history: Part = 0.65
    tool_results: Part = 0.12
    memory_injection: Part = 0.08
    output_reserved: Part = 0.05

    def __post_init__(self) -> None:
        total = fsum(astuple(self))
        if total > 1 + 1e-9:
            raise ValueError(f"the allocations must add up to at most 1, not {total:g}")


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """How the window is shared out."""

    allocations: Allocations = field(default_factory=Allocations)
    soft_limit_pct: Annotated[
        float, Meta(gt=0, le=1, description="share of a component from which on it is warned")
    ] = 0.80
    burn_window: Annotated[int, Meta(ge=1, le=10_000, description="turns over which the burn rate is taken")] = 10
