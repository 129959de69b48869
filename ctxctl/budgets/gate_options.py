"""Limits that a session is held against in CI (requirement B6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Annotated

from msgspec import Meta

from ctxctl.budgets.components import component_of
from ctxctl.errors import UsageError

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
    max_peak_utilization: Annotated[
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
        Mapping[str, int | float | str],
        Meta(description="tokens (20k) or share of the window (0.8, 80%) that a component of the budget may hold"),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, limit in self.components.items():
            component_limit(name, limit)


@dataclass(frozen=True, slots=True)
class ComponentLimit:
    """What a component may hold at most: tokens, or a share of the window."""

    component: str
    tokens: int | None
    share: float | None
    text: str

    def of(self, window: int | None) -> int | None:
        """In tokens; None where that takes a window that is unknown."""
        if self.share is None:
            return self.tokens
        return None if window is None else floor(Fraction(repr(self.share)) * window)


_LIMIT = re.compile(r"(?P<number>\d[\d_]*(?:\.\d+)?|\.\d+)\s*(?P<unit>[kKmM%]?)")


def component_limit(name: str, limit: int | float | str) -> ComponentLimit:
    """A limit as users write it: `20000`, `20_000`, `20k`; `0.8` or `80%` of the window. Raises ValueError otherwise,
    and for a component that there is not, with what is like it."""
    try:
        component = component_of(name)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    text = repr(limit) if isinstance(limit, float) else str(limit)
    match = _LIMIT.fullmatch(text.strip())
    wrong = f"{component}: {text!r} is no limit; write 20k or 20000 tokens, or 0.8 or 80% of the window"
    if match is None or isinstance(limit, bool):
        raise ValueError(wrong)
    number, unit = float(match["number"].replace("_", "")), match["unit"].lower()
    if unit == "%" or (not unit and "." in match["number"]):
        share = number / 100 if unit else number
        if not 0 < share <= 1:
            raise ValueError(f"{component}: {text!r} must be a share above 0 and at most 1 (100%)")
        return ComponentLimit(component, None, share, text.strip())
    tokens = number * {"": 1, "k": 1000, "m": 1_000_000}[unit]
    if tokens != int(tokens) or tokens > 10**12:
        raise ValueError(wrong)
    return ComponentLimit(component, int(tokens), None, text.strip())
