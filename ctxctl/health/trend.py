"""Which way the last turns went (requirement H3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from statistics import fmean

from ctxctl.health.result import Trend, TurnMetrics

POINTS = 10
"""Snapshots that a trend is over."""


def trend_of(series: Sequence[TurnMetrics], points: int = POINTS) -> Trend:
    """The trend of the newest snapshots. What was not measured at the first or the last of them has no change."""
    last = list(islice(series, max(0, len(series) - points), None))
    if len(last) < 2:
        return Trend(len(last), insufficient_data=True)
    measured = [turn.fidelity for turn in last if turn.fidelity is not None]
    return Trend(
        len(last),
        _change(last[0].utilization, last[-1].utilization),
        _change(last[0].burn_rate, last[-1].burn_rate),
        fmean(measured) if measured else None,
    )


def _change(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else last - first
