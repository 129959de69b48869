"""largest-first: a control; frees most with the fewest edits and asks nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.window import Window


@POLICIES.register("largest-first")
class LargestFirst(Policy):
    """The largest unit goes first.

    Complexity: O(n log n) per eviction.
    Strength: fewest evictions for the tokens that they free.
    Weakness: large outputs are often what the agent asked for.
    Fit: a control.
    """

    name = "largest-first"
    group = "control"

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        sizes = window.resident
        return [-float(sizes[u]) for u in units]
