"""Limits that a session is held against in CI (requirement B6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

Usd = Annotated[float, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=1, le=10**12)]
Number = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Fullness = Annotated[float, Meta(gt=0, le=10)]


@dataclass(frozen=True, slots=True)
class GateOptions:
    """Limits per session; None is not checked. A value at its limit passes. What could not be measured does not pass.

    Each is checked by the commands that measure it: `components` by `budget` alone, fidelity, drift, evictions and the
    like by `health` alone. `max_total_cost` is over all sessions of one run.
    """

    max_cost: Annotated[Usd | None, Meta(description="USD of a session at list prices")] = None
    max_cost_per_turn: Annotated[Usd | None, Meta(description="USD per model call, mean of a session")] = None
    max_total_cost: Annotated[Usd | None, Meta(description="USD of all sessions of one run together")] = None
    max_peak: Annotated[Tokens | None, Meta(description="tokens of the fullest turn")] = None
    max_tokens: Annotated[Tokens | None, Meta(description="tokens of the window now")] = None
    max_total: Annotated[Tokens | None, Meta(description="tokens of all calls of a session, prompts and answers")] = (
        None
    )
    max_turns: Annotated[Number | None, Meta(description="model calls of the main thread")] = None
    max_utilization: Annotated[
        Fullness | None, Meta(description="share of the window that the fullest turn may take")
    ] = None
    max_compactions: Annotated[Number | None, Meta(description="full compactions of a session")] = None
    max_evictions: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="evicted units per turn, mean of the last 5")
    ] = None
    max_overflow_turns: Annotated[Number | None, Meta(description="requests that were refused as too long")] = None
    min_hit_rate: Annotated[Share | None, Meta(description="share of the prompts that the cache served")] = None
    min_fidelity: Annotated[
        Share | None, Meta(description="share of what could be answered before that a compaction must keep")
    ] = None
    min_compression: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="before / after of what compactions replaced")
    ] = None
    min_resume_success: Annotated[Share | None, Meta(description="share of resumes that went well")] = None
    max_drift: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="|counted / reported - 1| of the window now")
    ] = None
    max_bloat: Annotated[Share | None, Meta(description="share of tool results in the window now")] = None
    max_burn_rate: Annotated[Tokens | None, Meta(description="tokens per turn, mean of the last 10")] = None
    components: Annotated[
        Mapping[str, Fullness], Meta(description="share of its own limit that a component of the budget may take")
    ] = field(default_factory=dict)
