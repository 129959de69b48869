"""Whether the rest of a plan fits into the window, while a loop runs (requirement B4)."""

from __future__ import annotations

from collections import deque
from math import isfinite

from ctxctl.budgets.forecast import PlanForecast, burn_rate_of, plan_forecast, turns_remaining_of


class Outlasting:
    """What a loop told of its plan, and what each turn added.

    size: tokens of the window; reserve: of them, kept free for the answer. burn_window: turns over which the burn rate
    is taken. The first request brings what is always there, so it is no turn's growth.
    """

    def __init__(self, size: int, reserve: int, burn_window: int) -> None:
        self._size, self._reserve = size, reserve
        self._added: deque[int] = deque(maxlen=burn_window)
        self._calls = 0
        self._steps: int | None = None
        self._per_step: float | None = None
        self._since: tuple[int, int] = (0, 0)
        self._done = 0

    def plan(self, steps: int | None, per_step: float | None) -> None:
        """So many steps of the plan remain; None withdraws it. per_step: turns that each takes, None to measure it."""
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 0):
            raise ValueError(f"the remaining steps must be a whole number, 0 or more, or None, not {steps!r}")
        if per_step is not None and (
            isinstance(per_step, bool)
            or not isinstance(per_step, int | float)
            or not isfinite(per_step)
            or per_step <= 0
        ):
            raise ValueError(f"turns_per_step must be a number above 0, or None, not {per_step!r}")
        if steps is None:
            self._steps = self._per_step = None
            return
        if self._steps is None or steps > self._steps:  # a new plan, or one that grew
            self._since, self._done = (steps, self._calls), 0
        self._done = self._since[0] - steps
        self._steps, self._per_step = steps, per_step

    def arrived(self, tokens: int) -> None:
        """So many tokens came in for a call."""
        self._calls += 1
        if self._calls > 1:
            self._added.append(tokens)

    def forecast(self, used: int) -> PlanForecast | None:
        """The forecast with so many tokens in the window; None without a plan."""
        if self._steps is None:
            return None
        spent = self._calls - self._since[1]
        measured = spent / self._done if self._done and spent else 1.0
        pace = self._per_step if self._per_step is not None else measured
        left = turns_remaining_of(self._size, self._reserve, used, burn_rate_of(self._added))
        return plan_forecast(self._steps, pace, left, done=self._done)
