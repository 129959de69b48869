"""Budgets that fit a trace: what can't leave, and a share of what can."""

from __future__ import annotations

from ctxctl.model.unit import Trace


def fixed_tokens(trace: Trace) -> int:
    """Tokens that no policy can free: the overhead, growth that no block explains, and pinned units."""
    unseen = sum(turn.unseen for turn in trace.turns if turn.unseen > 0)
    return trace.overhead + unseen + sum(u.tokens for u in trace.units if u.pinned is not None)


def evictable_budget(trace: Trace, share: float = 0.5) -> int:
    """Tokens of a window that holds all that can't leave and a share (0..1) of all that may, rounded down, and at
    least 1; so that policies are pressed equally hard on long and short transcripts."""
    return max(1, fixed_tokens(trace) + int(trace.evictable * share))
