"""Settings of the eviction room."""

from __future__ import annotations

import re
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
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
Weight = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[float, Meta(gt=0, le=1)]
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
class Rule:
    """Which blocks a rule is about: all of its conditions hold. Text conditions are regular expressions that are
    searched for (`path`: in what a call acts on; `regex`: in the text)."""

    kind: str | None = None
    role: str | None = None
    tool: str | None = None
    path: str | None = None
    regex: str | None = None
    block: Annotated[
        str | None, Meta(description="id of a block, as `analyze --blocks` lists it, or of a tool call and its result")
    ] = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in self.__slots__):
            raise ValueError("a rule needs a condition: kind, role, tool, path, regex or block")
        if self.kind is not None and self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of block; known: {', '.join(KINDS)}")
        if self.role is not None and self.role not in ROLES:
            raise ValueError(f"{self.role!r} is no role; known: {', '.join(ROLES)}")
        for pattern in (self.path, self.regex):
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Importance:
    """A rule with the importance of the blocks that it is about."""

    value: Annotated[float, Meta(ge=0, le=1)]
    match: Rule


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """What is evicted first, and what never."""

    policy: Annotated[Policy, Meta(description="how units are scored")] = "hybrid"
    target: Annotated[Share, Meta(description="utilization that an eviction goes down to")] = 0.60
    weights: EvictionWeights = field(default_factory=EvictionWeights)
    type_ttl: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=1_000_000)]],
        Meta(description="turns after which a kind of block has lived its time"),
    ] = field(default_factory=lambda: {"tool_result": 10, "thinking": 3, "memory_injection": 5})
    protected_types: Annotated[
        tuple[str, ...], Meta(description="kinds that never leave, beside pins and pending calls")
    ] = ("system", CURRENT_EXCHANGE)
    pin_task: Annotated[bool, Meta(description="whether the message that states the task is pinned")] = True
    pin: Annotated[tuple[Rule, ...], Meta(description="rules for what never leaves nor is altered")] = ()
    importance: Annotated[
        tuple[Importance, ...], Meta(description="importance by rule; the first that fits holds")
    ] = ()
    default_importance: Annotated[float, Meta(ge=0, le=1, description="of what no rule is about")] = 0.5
    reference_turns: Annotated[int, Meta(ge=1, description="turns for which a reference counts")] = 10
    similarity: Annotated[Share, Meta(description="containment from which on two blocks are near duplicates")] = 0.85
    reserve: Annotated[
        float, Meta(ge=0, lt=1, description="share of the window that the simple strategies leave free")
    ] = 0.2
    last_resort: Annotated[
        bool, Meta(description="whether priority-tiers may drop tier 0 when nothing else is left")
    ] = False

    def __post_init__(self) -> None:
        for name in self.type_ttl:
            if name not in KINDS:
                raise ValueError(f"type_ttl: {name!r} is no kind of block; known: {', '.join(KINDS)}")
        for name in self.protected_types:
            if name not in (*KINDS, CURRENT_EXCHANGE):
                raise ValueError(
                    f"protected_types: {name!r} is no kind of block; known: {', '.join((*KINDS, CURRENT_EXCHANGE))}"
                )
