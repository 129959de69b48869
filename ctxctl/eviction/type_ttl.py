"""type-ttl: each kind of block has a time to live (requirement E6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.window import Window

WITHOUT = 0.5


def life(kind: str, age: int, ttl: Mapping[str, int]) -> float:
    """1 for what came in now, 0 from its time to live on; 0.5 for a kind that has none."""
    limit = ttl.get(kind)
    return WITHOUT if limit is None else max(0.0, 1.0 - max(0, age) / limit)


@POLICIES.register("type-ttl")
class TypeTtl(Policy):
    """What has outlived the time of its kind goes first; a call lives as long as its result.

    Complexity: O(n log n) per eviction, nothing to keep.
    Strength: clears old tool output and reasoning, which are most of an agent's window, and leaves what was said.
    Weakness: the times are guesses; a file that is needed for long goes all the same.
    Fit: tool-heavy sessions with pins.
    """

    name = "type-ttl"

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        now, entered, known, ttl = window.turn, window.entered, window.units, self.setting.options.type_ttl
        return [life(known[u].kind, now - entered[u], ttl) for u in units]
