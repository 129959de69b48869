"""lru: what later turns never used goes first (requirement E3)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.window import Window

COLD = 0.1
FULL = 5


def used(references: int) -> float:
    """0.1 for a unit that was never referenced, else a fifth per reference, at most 1."""
    return min(1.0, references / FULL) if references else COLD


@POLICIES.register("lru")
class Lru(Policy):
    """What no later turn referenced goes first; among equals, what was used longest ago.

    Complexity: O(n log n) per eviction, a counter and a turn per unit.
    Strength: keeps what the agent comes back to.
    Weakness: cold start: what just came in has had no time to be used.
    Fit: exploration.
    """

    name = "lru"

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        references = window.references
        return [used(references.get(u, 0)) for u in units]

    def ties(self, window: Window, units: Sequence[int]) -> list[int]:
        last, entered = window.used, window.entered
        return [max(last.get(u, 0), entered[u]) for u in units]
