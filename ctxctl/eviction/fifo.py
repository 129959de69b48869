"""fifo: the oldest goes first (requirement E2)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.window import Window


def freshness(age: int) -> float:
    """1 / (1 + age in turns): 1.0 for what came in now."""
    return 1.0 / (1 + max(0, age))


@POLICIES.register("fifo")
class Fifo(Policy):
    """The oldest unit goes first, whatever it holds.

    Complexity: O(n log n) per eviction, nothing to keep.
    Strength: predictable, and the most recent context always stays.
    Weakness: blind to use: an early file that is read all the time goes first.
    Fit: chat.
    """

    name = "fifo"

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        now, entered = window.turn, window.entered
        return [1.0 / (1 + max(0, now - entered[u])) for u in units]
