"""The pressure monitor: levels, velocity, forecast and spikes, turn by turn (requirements P1 to P4).

The same object serves an agent loop live and the analysis of a recorded transcript.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import floor

from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.pressure.options import LEVELS, PressureOptions, PressureThresholds


@dataclass(slots=True)
class Reading:  # not frozen: a long session makes 100,000, and frozen ones take three times as long to make
    """One turn. source: `reported` or `counted` tokens. utilization, level and turns_until_overflow are None while no
    window is known; velocity: mean tokens added per turn; added: by this turn, None where the window was cut down;
    turns_until_overflow is -1 from full on. compaction: what the agent did before it (`full`, `micro`, `rollback`)."""

    turn: int
    tokens: int
    source: str
    utilization: float | None
    level: str | None
    velocity: float
    turns_until_overflow: int | None
    added: int | None
    compaction: str | None
    _window: int | None = None

    @property
    def remaining(self) -> int | None:
        """Tokens left in the window: 0 from full on, None while no window is known."""
        return None if self._window is None else max(0, self._window - self.tokens)


@dataclass(frozen=True, slots=True)
class LevelChange:
    """The level changed. direction: `up` or `down`."""

    turn: int
    before: str
    after: str
    direction: str
    utilization: float


@dataclass(frozen=True, slots=True)
class Spike:
    """A turn that added far more than the turns before it. mean: of those; ratio: tokens / mean."""

    turn: int
    tokens: int
    mean: float
    ratio: float


LevelCallback = Callable[[LevelChange], None]
SpikeCallback = Callable[[Spike], None]


def until_overflow(tokens: int, window: int | None, velocity: float) -> int | None:
    """Turns until a window is full at so many tokens per turn: -1 from full on, None while the window is unknown or
    nothing is added."""
    if window is None:
        return None
    if tokens >= window:
        return -1
    return floor((window - tokens) / velocity) if velocity > 0 else None


class ContextPressureMonitor:
    """Follows the tokens of a window.

    window: its size in tokens; None leaves it unknown, and with it utilization, level and forecast. Feed it with
    `update` after each turn.
    """

    def __init__(
        self,
        window: int | None = DEFAULT_WINDOW,
        *,
        thresholds: PressureThresholds | None = None,
        options: PressureOptions | None = None,
    ) -> None:
        if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window <= 0):
            raise ValueError(f"the window must be a whole number of tokens above 0, not {window!r}")
        self.window = window
        self.thresholds = thresholds or PressureThresholds()
        self.options = options or PressureOptions()
        self.level: str | None = None if window is None else LEVELS[0]
        self.turn = 0
        self.tokens = 0
        self.events: list[LevelChange] = []
        self.spikes: list[Spike] = []
        self._added: deque[int] = deque(maxlen=self.options.velocity_window)
        self._on_level: list[tuple[str, LevelCallback, bool]] = []
        self._on_spike: list[SpikeCallback] = []

    def on_level(self, level: str, callback: LevelCallback, *, downwards: bool = False) -> None:
        """Call back when this level is reached; only upwards unless `downwards`. A jump fires the level it reaches."""
        if level not in LEVELS:
            raise ValueError(f"unknown level {level!r}; known: {', '.join(LEVELS)}")
        self._on_level.append((level, callback, downwards))

    def on_spike(self, callback: SpikeCallback) -> None:
        """Call back at each spike."""
        self._on_spike.append(callback)

    def update(
        self,
        tokens: int,
        *,
        added: int | None = None,
        turn: int | None = None,
        source: str = "reported",
        compaction: str | None = None,
    ) -> Reading:
        """The window holds `tokens` after one more turn.

        added: tokens that the turn added; by default the growth. A turn in which the window shrank (eviction,
        compaction) without telling what it added does not count for the velocity. turn: its number, by default the
        next. source, compaction: taken over into the reading.
        """
        if not tokens >= 0:  # so that NaN is refused too
            raise ValueError(f"tokens must be 0 or more, not {tokens}")
        self.turn = self.turn + 1 if turn is None else turn
        if added is None and tokens >= self.tokens:
            added = tokens - self.tokens
        self.tokens = tokens
        recent = self._added
        if added is not None:
            recent.append(added)
        velocity = sum(recent) / len(recent) if recent else 0.0
        utilization = level = None
        if self.window is not None:
            utilization = tokens / self.window
            level = self.thresholds.level(utilization)
            if level != self.level:
                self._change(level, utilization)
        reading = Reading(
            self.turn,
            tokens,
            source,
            utilization,
            level,
            velocity,
            until_overflow(tokens, self.window, velocity),
            added,
            compaction,
            self.window,
        )
        if added is not None:
            self._spike(added)
        return reading

    def _change(self, level: str, utilization: float) -> None:
        before, self.level = self.level or LEVELS[0], level
        direction = "up" if LEVELS.index(level) > LEVELS.index(before) else "down"
        change = LevelChange(self.turn, before, level, direction, utilization)
        self.events.append(change)
        for wanted, callback, downwards in self._on_level:
            if wanted == level and (direction == "up" or downwards):
                callback(change)

    def _spike(self, added: int) -> None:
        """With a full window of turns, the newest against the mean of the others; none when that mean is 0."""
        if len(self._added) < self.options.velocity_window:
            return
        mean = (sum(self._added) - added) / (len(self._added) - 1)
        if mean > 0 and added > self.options.spike_ratio * mean:
            spike = Spike(self.turn, added, mean, added / mean)
            self.spikes.append(spike)
            for callback in self._on_spike:
                callback(spike)
