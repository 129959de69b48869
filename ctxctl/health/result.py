"""What health says of a session: metrics per turn and of the whole, alerts, findings, trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxctl.model.finding import Finding, Gate
from ctxctl.model.usage import UsageTotals

if TYPE_CHECKING:
    from ctxctl.health.fidelity import Fidelity


@dataclass(frozen=True, slots=True)
class TurnMetrics:
    """One model call of the main thread (requirement H1). Shares are 0..1 (utilization may be above 1), tokens whole
    numbers, cost USD at list prices, seconds since the call before; None where it can't be told.

    added: tokens that the turn added, None where the window was cut down. evictions: units that left before it, one
    by one or in batches, without a summary in their place; evicted_tokens: theirs. compactions: kinds of the
    compactions before it (`full`, `micro`, `rollback`). hit_rate: cached share of its prompt. drift: counted / reported
    - 1. overflow: the provider refused it as too long. fidelity: of the compaction before it, where it was measured.
    """

    turn: int
    tokens: int
    utilization: float | None = None
    level: str | None = None
    added: int | None = None
    burn_rate: float | None = None
    evictions: int = 0
    evicted_tokens: int = 0
    compactions: tuple[str, ...] = ()
    hit_rate: float | None = None
    drift: float | None = None
    cost: float | None = None
    seconds: float | None = None
    overflow: bool = False
    fidelity: float | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """A session as a whole (requirement H1). Each is None where it was not measured, and `why` says why by its name.

    utilization: of the window now. eviction_frequency: units per turn, mean of the last 5. compaction_frequency: per
    layer (`full`, `micro`, `rollback`) per 100 turns. compression_ratio: before / after of what compactions replaced.
    burn_rate: tokens per turn, mean of the last 10. fidelity: share of probes that the newest compactions can still
    answer. tool_result_bloat: share of tool results in the window now. cache_hit_rate: cached / prompt tokens over all
    calls of the main thread. resume_success_rate: of the windows that began with a resume. token_drift: counted /
    reported - 1 on the live context. overflow_turns: requests that the provider refused as too long.
    """

    utilization: float | None = None
    eviction_frequency: float | None = None
    compaction_frequency: Mapping[str, float] | None = None
    compression_ratio: float | None = None
    burn_rate: float | None = None
    fidelity: float | None = None
    tool_result_bloat: float | None = None
    cache_hit_rate: float | None = None
    resume_success_rate: float | None = None
    token_drift: float | None = None
    overflow_turns: int | None = None
    why: Mapping[str, str] = field(default_factory=dict)


METRICS = tuple(name for name in Metrics.__dataclass_fields__ if name != "why")
"""Names of the metrics, in the order in which reports list them."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Over the last snapshots, at most 10 (requirement H3). Changes are last - first; avg_fidelity is over the points
    where it was measured. Below two points only `insufficient_data` is set."""

    data_points: int
    utilization_change: float | None = None
    burn_rate_change: float | None = None
    avg_fidelity: float | None = None
    insufficient_data: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """One session. model: that answered last; window, tokens: of the context now; peak: tokens of the fullest turn;
    cost: USD at list prices, None when a call has no price. high_turns: how many of the newest turns in a row are above
    the critical utilization. requests: model calls of every thread; usage: their tokens. stable: whether most prompts
    should come from the provider's cache. damage: parts of the file that could not be read as they should."""

    path: str
    session: str | None
    model: str | None
    format: str
    window: int | None
    tokens: int | None
    peak: int | None
    peak_utilization: float | None
    turns: int
    requests: int
    cost: float | None
    high_turns: int
    compactions: int
    curve: str | None
    metrics: Metrics
    series: Sequence[TurnMetrics]
    alerts: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    trend: Trend
    fidelity: Fidelity | None = None
    gates: tuple[Gate, ...] = ()
    window_source: str = "unknown"
    started: str | None = None
    ended: str | None = None
    usage: UsageTotals | None = None
    stable: bool | None = None
    damage: int | None = None
