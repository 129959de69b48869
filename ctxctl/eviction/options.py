"""Settings of the eviction room."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import Annotated, Literal

from msgspec import Meta

from ctxctl.model.block import KINDS

Policy = Literal[
    "fifo",
    "lru",
    "priority",
    "semantic",
    "type-ttl",
    "hybrid",
    "sliding-window",
    "summarize",
    "priority-tiers",
]
Weight = Annotated[float, Meta(ge=0, le=1)]
CURRENT_EXCHANGE = "user_message_current_turn"
"""Protects the user message of the current exchange; the name is kept from the settings that users have."""


@dataclass(frozen=True, slots=True)
class EvictionWeights:
    """Parts of the hybrid score; they add up to 1."""

    freshness: Annotated[Weight, Meta(description="how recent")] = 0.3
    priority: Annotated[Weight, Meta(description="importance and source")] = 0.3
    type_ttl: Annotated[Weight, Meta(description="time to live of its kind")] = 0.2
    reference: Annotated[Weight, Meta(description="how often later turns used it")] = 0.2

    def __post_init__(self) -> None:
        total = fsum((self.freshness, self.priority, self.type_ttl, self.reference))
        if abs(total - 1) > 1e-6:
            raise ValueError(f"the weights must add up to 1, not {total:g}")


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """What is evicted first, and what never."""

    policy: Annotated[Policy, Meta(description="how units are scored")] = "hybrid"
    weights: EvictionWeights = field(default_factory=EvictionWeights)
    type_ttl: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=1_000_000)]],
        Meta(description="turns after which a kind of block has lived its time"),
    ] = field(default_factory=lambda: {"tool_result": 10, "thinking": 3, "memory_injection": 5})
    protected_types: Annotated[
        tuple[str, ...], Meta(description="kinds that never leave, beside pins and pending calls")
    ] = ("system", CURRENT_EXCHANGE)

    def __post_init__(self) -> None:
        for name in self.type_ttl:
            if name not in KINDS:
                raise ValueError(f"type_ttl: {name!r} is no kind of block; known: {', '.join(KINDS)}")
        for name in self.protected_types:
            if name not in (*KINDS, CURRENT_EXCHANGE):
                raise ValueError(
                    f"protected_types: {name!r} is no kind of block; known: {', '.join((*KINDS, CURRENT_EXCHANGE))}"
                )
