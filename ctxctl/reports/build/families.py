"""Health of sessions as metrics for monitoring (requirement H4).

A gauge with the label `session` is about one session. Sessions are without bound over time, so that only the newest
ones have such series. Counters, and gauges without that label, are about all sessions together. What was not measured
has no sample: a zero would be taken for a measurement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from statistics import fmean

from ctxctl.health.alerts import BURN_BEFORE, BURN_LEAST
from ctxctl.health.result import Health
from ctxctl.model.text import clean
from ctxctl.reports.family import Family, Labels

SERIES = 50
"""Sessions that have series of their own unless told otherwise."""
LONGEST = 128
"""Characters of a label's value; of a longer one the end is kept, which is what tells paths apart."""

Counts = Mapping[tuple[str, Labels], float]
"""What one session adds to the counters."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """How a gauge of one session is read. value: None for what was not measured."""

    name: str
    help: str
    unit: str
    value: Callable[[Health], float | None]


def _burn_spike(health: Health) -> float | None:
    """Tokens that the newest turn added / the mean of the turns before, as the alert on it has it."""
    turns = health.series
    if not turns or turns[-1].added is None:
        return None
    before = [turn.added for turn in turns[-BURN_BEFORE - 1 : -1] if turn.added is not None]
    mean = fmean(before) if len(before) >= BURN_LEAST else 0.0
    return turns[-1].added / mean if mean > 0 else None


def _time(stamp: str | None) -> float | None:
    return datetime.fromisoformat(stamp).timestamp() if stamp is not None else None


def _stable(health: Health) -> float | None:
    return None if health.stable is None else float(health.stable)


GAUGES = (
    Gauge("ctxctl_context_tokens", "Tokens in the context window now.", "{token}", lambda h: h.tokens),
    Gauge("ctxctl_context_window_tokens", "Size of the model's context window.", "{token}", lambda h: h.window),
    Gauge("ctxctl_context_peak_tokens", "Tokens in the window at the fullest turn.", "{token}", lambda h: h.peak),
    Gauge(
        "ctxctl_context_utilization_ratio",
        "Tokens in the window now / size of the window; may exceed 1.",
        "1",
        lambda h: h.metrics.utilization,
    ),
    Gauge(
        "ctxctl_context_peak_utilization_ratio",
        "Utilization of the window at the fullest turn.",
        "1",
        lambda h: h.peak_utilization,
    ),
    Gauge(
        "ctxctl_turns_above_critical",
        "How many of the newest turns in a row are above the critical utilization (by default 0.9).",
        "{turn}",
        lambda h: h.high_turns if h.metrics.utilization is not None else None,
    ),
    Gauge(
        "ctxctl_burn_rate_tokens_per_turn",
        "Tokens that a turn adds to the window, mean of the last 10.",
        "{token}",
        lambda h: h.metrics.burn_rate,
    ),
    Gauge(
        "ctxctl_burn_spike_ratio",
        "Tokens that the newest turn added / the mean of the up to 10 turns before.",
        "1",
        _burn_spike,
    ),
    Gauge(
        "ctxctl_evictions_per_turn",
        "Units that left the window without a summary, per turn, mean of the last 5.",
        "{unit}",
        lambda h: h.metrics.eviction_frequency,
    ),
    Gauge(
        "ctxctl_cache_hit_ratio",
        "Prompt tokens of the main thread served from the provider's cache / all of them.",
        "1",
        lambda h: h.metrics.cache_hit_rate,
    ),
    Gauge(
        "ctxctl_cache_stable",
        "1 when most prompts should come from the cache: many calls, and little that breaks the prefix by itself.",
        "1",
        _stable,
    ),
    Gauge(
        "ctxctl_fidelity_ratio",
        "Share of what the context could answer that it still can after compaction.",
        "1",
        lambda h: h.metrics.fidelity,
    ),
    Gauge(
        "ctxctl_compression_ratio",
        "Tokens before / after of what compactions replaced.",
        "1",
        lambda h: h.metrics.compression_ratio,
    ),
    Gauge(
        "ctxctl_token_drift_ratio",
        "Counted / reported tokens of the window, minus 1.",
        "1",
        lambda h: h.metrics.token_drift,
    ),
    Gauge(
        "ctxctl_tool_result_ratio",
        "Share of tool results in the window now.",
        "1",
        lambda h: h.metrics.tool_result_bloat,
    ),
    Gauge(
        "ctxctl_resume_success_ratio",
        "Share of the windows that began with a resume and went on where the last one had stopped.",
        "1",
        lambda h: h.metrics.resume_success_rate,
    ),
    Gauge("ctxctl_session_turns", "Model calls of the main thread.", "{turn}", lambda h: h.turns),
    Gauge("ctxctl_session_requests", "Model calls with those of sub-agents.", "{request}", lambda h: h.requests),
    Gauge("ctxctl_session_cost_usd", "Cost at list prices in US dollars.", "{USD}", lambda h: h.cost),
    Gauge(
        "ctxctl_session_compactions",
        "How often the whole window was replaced by a summary.",
        "{compaction}",
        lambda h: h.compactions,
    ),
    Gauge(
        "ctxctl_session_last_activity_timestamp_seconds",
        "When the session's newest model call was, in seconds since 1970.",
        "s",
        lambda h: _time(h.ended),
    ),
)
"""Gauges of a session; each has the label `session`."""

INFO = Family(
    "ctxctl_session_info", "gauge", "What a session is: its model, format and file; the value is always 1.", "1"
)
FINDINGS = Family(
    "ctxctl_session_findings", "gauge", "Alerts and findings of a session by code and level.", "{finding}"
)
TOTALS = (
    Family("ctxctl_sessions", "gauge", "Sessions that were measured.", "{session}"),
    Family("ctxctl_session_read_errors", "gauge", "Files that could not be read as a session.", "{file}"),
    Family(
        "ctxctl_unpriced_sessions",
        "gauge",
        "Sessions of unknown cost: a model without a price, or no usage.",
        "{session}",
    ),
    Family("ctxctl_alerts", "gauge", "Alerts over all sessions by code and level.", "{alert}"),
    Family("ctxctl_findings", "gauge", "Findings of detectors over all sessions by code and level.", "{finding}"),
)
COUNTERS = (
    Family("ctxctl_turns_total", "counter", "Model calls of main threads.", "{turn}"),
    Family("ctxctl_requests_total", "counter", "Model calls with those of sub-agents.", "{request}"),
    Family("ctxctl_tokens_total", "counter", "Tokens billed by type.", "{token}"),
    Family("ctxctl_cost_usd_total", "counter", "Cost at list prices in US dollars, where a price is known.", "{USD}"),
    Family("ctxctl_compactions_total", "counter", "Compactions by kind.", "{compaction}"),
    Family("ctxctl_evicted_units_total", "counter", "Units that left windows without a summary.", "{unit}"),
    Family("ctxctl_evicted_tokens_total", "counter", "Tokens that left windows without a summary.", "{token}"),
    Family("ctxctl_overflow_turns_total", "counter", "Requests that providers refused as too long.", "{turn}"),
)
NAMES = (
    *(gauge.name for gauge in GAUGES),
    *(family.name for family in (INFO, FINDINGS, *TOTALS, *COUNTERS)),
)
"""Names of all metrics, in the order in which they are exported."""


def families(
    healths: Sequence[Health], *, failed: int = 0, series: int = SERIES, counts: Iterable[Counts] | None = None
) -> list[Family]:
    """All metrics, also those that have no sample.

    failed: files that could not be read. series: how many of the newest sessions have series of their own. counts: what
    each session adds to the counters; by default `counts_of` each of them.
    """
    chosen = labelled(healths)[: max(0, series)]
    found = [_gauge(gauge, chosen) for gauge in GAUGES]
    found.append(_with(INFO, [(_info(session, health), 1) for session, health in chosen]))
    found.append(_with(FINDINGS, _findings(chosen)))
    found += [_with(family, samples) for family, samples in zip(TOTALS, _totals(healths, failed), strict=True)]
    sums: Counter[tuple[str, Labels]] = Counter()
    for own in map(counts_of, healths) if counts is None else counts:
        for key, value in own.items():
            sums[key] += value  # type: ignore[assignment]  # Counter takes any number
    times = [time for health in healths if (time := _time(health.started)) is not None]
    since = min(times, default=None)
    for family in COUNTERS:
        samples = [(labels, value) for (name, labels), value in sorted(sums.items()) if name == family.name]
        found.append(_with(family, samples, since))
    return found


def labelled(healths: Sequence[Health]) -> list[tuple[str, Health]]:
    """Sessions with the value of their label, the newest first: the recorded id, else the file's name; copies of a
    session are told apart by a number, in the order of their paths."""
    taken: set[str] = set()
    found = []
    for health in sorted(healths, key=lambda h: h.path):
        name = own = _text(health.session or PurePath(health.path).name.split(".")[0] or "-")
        number = 1
        while name in taken:
            number += 1
            name = f"{own}#{number}"
        taken.add(name)
        found.append((name, health))
    return sorted(found, key=lambda pair: -(_time(pair[1].ended) or 0.0))


def counts_of(health: Health) -> dict[tuple[str, Labels], float]:
    """What a session adds to the counters, by name and labels. An unknown cost adds nothing."""
    kinds = Counter({"full": 0, "micro": 0, "rollback": 0})
    kinds.update(kind for turn in health.series for kind in turn.compactions)
    kinds["full"] = health.compactions  # with one after the last turn
    found: dict[tuple[str, Labels], float] = {
        ("ctxctl_turns_total", ()): health.turns,
        ("ctxctl_requests_total", ()): health.requests,
        ("ctxctl_evicted_units_total", ()): sum(turn.evictions for turn in health.series),
        ("ctxctl_evicted_tokens_total", ()): sum(turn.evicted_tokens for turn in health.series),
        **{("ctxctl_compactions_total", (("kind", kind),)): count for kind, count in kinds.items()},
    }
    if health.usage is not None:
        for type_ in ("input", "output", "cache_read", "cache_write"):
            found["ctxctl_tokens_total", (("type", type_),)] = getattr(health.usage, type_)
    if health.cost is not None and math.isfinite(health.cost):
        found["ctxctl_cost_usd_total", ()] = health.cost
    if health.metrics.overflow_turns is not None:
        found["ctxctl_overflow_turns_total", ()] = health.metrics.overflow_turns
    return found


def _with(family: Family, samples: Iterable[tuple[Labels, float]], since: float | None = None) -> Family:
    return Family(family.name, family.kind, family.help, family.unit, tuple(samples), since)


def _gauge(gauge: Gauge, chosen: Sequence[tuple[str, Health]]) -> Family:
    samples = []
    for session, health in chosen:
        value = gauge.value(health)
        if value is not None and math.isfinite(value):
            samples.append(((("session", session),), value))
    return Family(gauge.name, "gauge", gauge.help, gauge.unit, tuple(samples))


def _info(session: str, health: Health) -> Labels:
    return (
        ("session", session),
        ("model", _text(health.model or "")),
        ("format", health.format),
        ("file", _text(health.path)),
    )


def _findings(chosen: Sequence[tuple[str, Health]]) -> Iterator[tuple[Labels, float]]:
    for session, health in chosen:
        counts = Counter((item.code, item.level) for item in (*health.alerts, *health.findings))
        for (code, level), count in sorted(counts.items()):
            yield (("session", session), ("code", code), ("level", level)), count


def _totals(healths: Sequence[Health], failed: int) -> Iterator[list[tuple[Labels, float]]]:
    yield [((), len(healths))]
    yield [((), failed)]
    yield [((), sum(1 for h in healths if h.cost is None and h.turns))]
    for kind in ("alerts", "findings"):
        counts = Counter((item.code, item.level) for h in healths for item in getattr(h, kind))
        yield [((("code", code), ("level", level)), count) for (code, level), count in sorted(counts.items())]


def _text(text: str) -> str:
    """A label's value: valid UTF-8, not too long."""
    return clean(text)[-LONGEST:]
