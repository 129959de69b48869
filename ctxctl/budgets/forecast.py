"""How many turns are left, and whether the plan still fits (requirement B4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from statistics import fmean, median

FORECAST = "forecast"
"""The reason of a decision to act because the plan does not fit any more."""
MOST_TURNS = 10**9
"""Where a forecast stops counting: a burn rate near nothing lasts for ever."""


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """Whether the rest of a plan fits into the window.

    remaining_steps, done_steps: of the plan. turns_per_step: measured, 1 while no step is done. turns_needed: for the
    steps that remain. turns_remaining: of the window, None when nothing is being added. act: whether fewer turns remain
    than are needed; None while the window is unknown. reason: `forecast` when it says to act.
    """

    remaining_steps: int
    done_steps: int | None
    turns_per_step: float
    turns_needed: int
    turns_remaining: int | None
    act: bool | None
    reason: str | None = None


def burn_rate_of(added: Sequence[int]) -> float | None:
    """Mean tokens per turn, None without a turn."""
    return fmean(added) if added else None


def pace_of(seconds: Sequence[float]) -> float | None:
    """Seconds per turn: the median, so that one wait (a permission, a laptop that slept) does not count for many
    turns; None where nothing was measured."""
    return median(seconds) if seconds else None


def turns_remaining_of(window: int | None, reserve: int, used: int | None, burn_rate: float | None) -> int | None:
    """(window - reserve - used) / burn rate, rounded down. 0 when the room is used up; None while the window or what it
    holds is unknown, and when nothing is being added."""
    if window is None or used is None:
        return None
    room = window - reserve - used
    if room <= 0:
        return 0
    if burn_rate is None or burn_rate <= 0:
        return None
    return floor(min(room / burn_rate, MOST_TURNS))


def minutes_of(turns: int | None, pace: float | None) -> float | None:
    """Minutes that so many turns take at so many seconds each, None where either is unknown."""
    if turns == 0:
        return 0.0
    return turns * pace / 60 if turns is not None and pace is not None else None


def turns_needed_of(steps: int, turns_per_step: float) -> int:
    """Turns that so many steps take, rounded up."""
    return ceil(min(steps * turns_per_step, MOST_TURNS))


def plan_forecast(
    remaining: int, turns_per_step: float, turns_remaining: int | None, *, known: bool = True, done: int | None = None
) -> PlanForecast:
    """The forecast of a plan. known: whether the window's size and content are."""
    needed = turns_needed_of(remaining, turns_per_step)
    act = (turns_remaining is not None and turns_remaining < needed) if known else None
    return PlanForecast(remaining, done, turns_per_step, needed, turns_remaining, act, FORECAST if act else None)
