"""The shape of a pressure curve (requirement O1)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

Shape = Literal["flat", "rising", "sawtooth"]

DROP = 0.25
"""A fall by a quarter from one turn to the next is a tooth."""
RISE = 0.25
"""A curve whose last third lies a quarter of its peak above its first third rises."""


def shape_of(tokens: Sequence[int]) -> Shape | None:
    """flat, rising or sawtooth; None with fewer than 3 turns."""
    if len(tokens) < 3:
        return None
    if any(after < before * (1 - DROP) for before, after in itertools.pairwise(tokens)):
        return "sawtooth"
    third = max(1, len(tokens) // 3)
    first, last = sum(tokens[:third]) / third, sum(tokens[-third:]) / third
    return "rising" if last - first > RISE * max(tokens) else "flat"
