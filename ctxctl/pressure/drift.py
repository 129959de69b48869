"""When the difference of counted and reported tokens is worth a word (requirements P5, H2)."""

from __future__ import annotations

DRIFT_ALARM = 0.10
"""Counted and reported tokens of a window that differ by more than this share: one of the two is wrong."""
DRIFT_TOKENS = 500
"""A difference below this is not worth a word: the frames of a few messages make it up."""


def drifts(drift: float | None, reported: int | None, alarm: float = DRIFT_ALARM) -> bool:
    """Whether a drift (counted / reported - 1) is an alarm. reported: tokens of the window; None leaves its size out of
    account."""
    if drift is None or abs(drift) <= alarm:
        return False
    return reported is None or abs(drift) * reported > DRIFT_TOKENS
