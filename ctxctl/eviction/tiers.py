"""Tiers of content: what the simple strategies go by (requirement E12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxctl.model.window import Window

SYSTEM, TASK, RESULT, TEMPORARY = range(4)
TIERS: Mapping[str, int] = {
    "system": SYSTEM,
    "tool_definitions": SYSTEM,
    "user_message": TASK,
    "tool_call": RESULT,
    "tool_result": RESULT,
    "assistant": RESULT,
    "summary": RESULT,
    "document": RESULT,
    "image": RESULT,
}
"""Tier by kind: the system prompt, what people asked for, what came of it; the rest (reasoning, injected memory) is
temporary."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How full a window is by one of the simple strategies. limit: effective, tokens. usage_ratio: tokens / limit.
    chunk_count: blocks. priority_distribution: blocks by tier."""

    total_tokens: int
    limit: int
    usage_ratio: float
    chunk_count: int
    priority_distribution: dict[int, int]


def tier_of(kind: str) -> int:
    """0 system, 1 task, 2 result, 3 temporary, by the kind of a block or unit."""
    return TIERS.get(kind, TEMPORARY)


def lower(tier: int) -> int:
    """One tier less important, at most temporary."""
    return min(TEMPORARY, tier + 1)


def stats_of(window: Window, limit: float, lowered: Mapping[int, int]) -> Stats:
    """The figures of a window. lowered: tier by unit, where it is not that of the kind."""
    tiers = {tier: 0 for tier in range(TEMPORARY + 1)}
    for number in window.entries:
        own = lowered.get(window.unit_of[number]) if number >= 0 else None
        tiers[tier_of(window.block(number).kind) if own is None else own] += 1
    return Stats(window.tokens, int(limit), round(window.tokens / limit, 3), len(window.entries), tiers)
