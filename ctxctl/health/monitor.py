"""The health monitor: metrics turn by turn, alerts and trend (requirements H1 to H3).

The same object serves an agent loop live and the measures of a recorded session.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from statistics import fmean

from ctxctl.health.alerts import alerts_of
from ctxctl.health.options import HealthOptions
from ctxctl.health.result import METRICS, Metrics, Trend, TurnMetrics
from ctxctl.health.trend import trend_of
from ctxctl.model.finding import Finding
from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.pressure.monitor import ContextPressureMonitor
from ctxctl.pressure.options import PressureOptions, PressureThresholds

SNAPSHOTS = 100
"""Turns that are kept in memory."""
BURN_TURNS = 10
EVICTION_TURNS = 5
LAYERS = ("full", "micro", "rollback")
"""What an agent does to its window, by the names that transcripts' compactions have."""
OPTION_OF = {"fidelity": "fidelity_score"}
"""Metrics that the settings call by another name."""
WHY = {
    "utilization": "the window is unknown; --window sets it",
    "eviction_frequency": "there was no turn",
    "compaction_frequency": "there was no turn",
    "compression_ratio": "nothing was compacted",
    "burn_rate": "no turn added to the window",
    "fidelity": "no compaction was measured",
    "tool_result_bloat": "the kinds of content are not known",
    "cache_hit_rate": "no use of a cache is reported",
    "resume_success_rate": "no window began with a resume",
    "token_drift": "tokens were not both counted and reported",
    "overflow_turns": "there was no turn",
}


class ContextHealthMonitor:
    """Follows the health of one window.

    window: its size in tokens; None leaves it unknown, and with it utilization and level. Feed it with `record_turn`
    after each model call, and with `record_compaction` and `record_resume` when there was one. Raises ValueError for
    numbers that make no sense.
    """

    def __init__(
        self,
        window: int | None = DEFAULT_WINDOW,
        *,
        thresholds: PressureThresholds | None = None,
        pressure: PressureOptions | None = None,
        options: HealthOptions | None = None,
        keep: int | None = SNAPSHOTS,
    ) -> None:
        self.pressure = ContextPressureMonitor(window, thresholds=thresholds, options=pressure)
        self.options = options or HealthOptions()
        self._series: deque[TurnMetrics] = deque(maxlen=keep)
        self._turns = 0
        self._added: deque[int] = deque(maxlen=BURN_TURNS)
        self._layers: Counter[str] = Counter()
        self._replaced = [0, 0]
        self._cache = [0, 0]
        self._overflows = 0
        self._resumes = [0, 0]
        self._fidelity: float | None = None
        self._tool_results: float | None = None

    @property
    def turns(self) -> Sequence[TurnMetrics]:
        """The newest turns, at most 100, the oldest first."""
        return tuple(self._series)

    def record_turn(
        self,
        tokens: int,
        *,
        added: int | None = None,
        turn: int | None = None,
        counted: float | None = None,
        prompt: int | None = None,
        cache_read: int | None = None,
        evictions: int = 0,
        evicted_tokens: int = 0,
        compactions: Sequence[str] = (),
        tool_results: int | None = None,
        cost: float | None = None,
        seconds: float | None = None,
        overflow: bool = False,
        fidelity: float | None = None,
    ) -> TurnMetrics:
        """A model call was made with so many tokens in its window.

        added: tokens that came in since the call before; by default the growth, None where the window was cut down.
        turn: its number, by default the next. counted: tokens as counted, where `tokens` are those that the provider
        reported. prompt, cache_read: tokens that were sent and, of these, that its cache served; None where the
        provider does not tell. evictions, evicted_tokens: units that left before the call without a summary in their
        place. compactions: layers that fired before it (`full`, `micro`, `rollback`). tool_results: tokens of tool
        results in the window. cost: USD. seconds: since the call before. overflow: it was refused as too long.
        fidelity: of the compaction before it, 0..1.
        """
        if evictions < 0 or evicted_tokens < 0:
            raise ValueError(f"evictions must be 0 or more, not {evictions} of {evicted_tokens} tokens")
        if unknown := set(compactions) - set(LAYERS):
            raise ValueError(f"{min(unknown)!r} is no kind of compaction; known: {', '.join(LAYERS)}")
        if fidelity is not None and not 0 <= fidelity <= 1:
            raise ValueError(f"fidelity must be 0 to 1, not {fidelity}")
        if cache_read is not None and not 0 <= cache_read <= (tokens if prompt is None else prompt):
            raise ValueError(f"cache_read must be a part of the prompt, not {cache_read}")
        reading = self.pressure.update(tokens, added=added, turn=turn)
        if reading.added is not None and (self._turns or added is not None):  # the first request is no growth
            self._added.append(reading.added)
        sent = tokens if prompt is None else prompt
        hit_rate = None
        if cache_read is not None and sent:
            hit_rate = cache_read / sent
            self._cache[0] += cache_read
            self._cache[1] += sent
        self._turns += 1
        self._layers.update(compactions)
        self._overflows += overflow
        if tool_results is not None and tokens:
            self._tool_results = tool_results / tokens
        metrics = TurnMetrics(
            reading.turn,
            tokens,
            reading.utilization,
            reading.level,
            reading.added,
            fmean(self._added) if self._added else None,
            evictions,
            evicted_tokens,
            tuple(compactions),
            hit_rate,
            counted / tokens - 1 if counted is not None and tokens else None,
            cost,
            seconds,
            overflow,
            fidelity,
        )
        if fidelity is not None:
            self._fidelity = fidelity
        self._series.append(metrics)
        return metrics

    def record_compaction(self, before: int, after: int) -> None:
        """Content of so many tokens was replaced by less (a summary, placeholders)."""
        if before < 0 or after < 0:
            raise ValueError(f"tokens must be 0 or more, not {before} and {after}")
        self._replaced[0] += before
        self._replaced[1] += after

    def record_resume(self, good: bool) -> None:
        """A window began with a resume prompt or a summary; good: it went on where the one before had stopped."""
        self._resumes[0] += good
        self._resumes[1] += 1

    def snapshot(self) -> Metrics:
        """The session as it is now; what was not measured is None, and `why` says why."""
        newest = self._series[-1] if self._series else None
        recent = list(self._series)[-EVICTION_TURNS:]
        any_turn = self._turns > 0
        per_hundred = {layer: 100 * self._layers[layer] / self._turns for layer in LAYERS} if any_turn else None
        return chosen(
            Metrics(
                newest.utilization if newest else None,
                fmean(turn.evictions for turn in recent) if recent else None,
                per_hundred,
                self._replaced[0] / self._replaced[1] if all(self._replaced) else None,
                newest.burn_rate if newest else None,
                self._fidelity,
                self._tool_results,
                self._cache[0] / self._cache[1] if self._cache[1] else None,
                self._resumes[0] / self._resumes[1] if self._resumes[1] else None,
                newest.drift if newest else None,
                self._overflows if any_turn else None,
            ),
            self.options,
        )

    def alerts(self, *, stable: bool = False) -> tuple[Finding, ...]:
        """What is wrong now. stable: the task is one whose prompts should mostly come from the cache."""
        return alerts_of(self.turns, self.snapshot(), self.options.alerts, stable)

    def trend(self) -> Trend:
        """Which way the last 10 turns went."""
        return trend_of(self._series)


def chosen(metrics: Metrics, options: HealthOptions, why: dict[str, str] | None = None) -> Metrics:
    """The metrics that the settings choose, with a reason for each that is None. why: reasons that are known better."""
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    for name in METRICS:
        value = getattr(metrics, name)
        if OPTION_OF.get(name, name) not in options.metrics:
            value, reasons[name] = None, "not chosen"
        elif value is None:
            reasons[name] = {**WHY, **metrics.why, **(why or {})}[name]
        values[name] = value
    return Metrics(**values, why=reasons)  # type: ignore[arg-type]
