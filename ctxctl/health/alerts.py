"""Alerts: a measure is beyond its limit (requirement H2).

An alert speaks of the window as it is now. Where a limit over several turns was passed earlier and is not any more, it
says so one level milder: who looks at a finished session wants to know that it ran critical, and that it recovered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from ctxctl.health.options import AlertOptions
from ctxctl.health.result import Metrics, TurnMetrics
from ctxctl.model.finding import Finding, FindingLevel
from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.pressure.drift import drifts

if TYPE_CHECKING:
    from ctxctl.model.transcript import Transcript

BURN_BEFORE = 10
"""Turns before the newest whose mean a spike of the burn rate is held against."""
BURN_LEAST = 3
SMALL = 0.01
"""Share of the window below which a spike is for information only: it takes a hundred of these to fill it."""
EVICTION_TURNS = 5
STABLE_CALLS = 20
"""Calls below which a cache hit rate says little: the first one reads everything anew."""
CACHED_LEAST = 4096
"""Providers cache no prompt below a size; the largest of these minima (Claude Opus 4.5, Haiku 4.5, Gemini 3; others
1,024 and 2,048: platform.claude.com/docs/en/build-with-claude/prompt-caching,
ai.google.dev/gemini-api/docs/caching)."""
STABLE_SHARE = 0.90
"""Share of the prompts of a stable task that their cache could have served."""
CACHE_LIFE, CACHE_LIFE_1H = 300, 3600
"""Seconds that an entry of the cache lives without being read (same source)."""


class HasTranscript(Protocol):
    """What holds the calls of a session."""

    @property
    def transcript(self) -> Transcript:
        """Without its blocks."""


def alerts_of(
    series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions, stable: bool
) -> tuple[Finding, ...]:
    """The alerts of a session, in the order of requirement H2. stable: its prompts should mostly come from the cache
    (`is_stable`). What was not measured raises none."""
    turn = series[-1].turn if series else None
    found = (
        *_utilization(series, metrics, options, turn),
        *_evictions(series, options),
        *_fidelity(series, metrics, options, turn),
        *_burn(series, metrics, options),
        *_compression(series, metrics, options, turn),
        *_drift(series, metrics, options, turn),
        *_hits(metrics, options, stable, turn),
        *_resumes(metrics, options, turn),
    )
    return tuple(found)


def _utilization(
    series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions, turn: int | None
) -> Iterator[Finding]:
    if metrics.utilization is None:
        return
    limit, least = options.utilization_critical, options.critical_turns
    runs = [run for run in _runs(series, limit) if run[1] - run[0] >= least]
    if runs:
        holds = runs[-1][1] == len(series) and metrics.utilization > limit
        first, last = runs[-1] if holds else max(runs, key=lambda run: run[1] - run[0])
        top = max(t.utilization or 0.0 for t in series[first:last])
        a, b = series[first].turn, series[last - 1].turn
        more = f", and {len(runs) - 1} more times" if len(runs) > 2 else ", and once more" if len(runs) == 2 else ""
        if holds:
            said = f"the window has been above {limit:.0%} for {last - first} turns in a row (since turn {a}), now at "
            said += f"{metrics.utilization:.0%}{more}"
        else:
            said = f"the window was above {limit:.0%} for {last - first} turns in a row (turns {a} to {b}, {top:.0%} "
            said += f"at most){more}; it is at {metrics.utilization:.0%} now"
        level: FindingLevel = "critical" if holds else "warning"
        hint = "split the task, or keep what is not needed now outside the window (files, notes, sub-agents)"
        yield Finding("utilization_critical", level, said, hint, b)
    if metrics.utilization >= options.utilization_info:
        said = f"the window is {metrics.utilization:.0%} full"
        hint = "prepare: save a checkpoint, and clear or compact what is not needed any more"
        yield Finding("utilization_prepare", "info", said, hint, turn)


def _runs(series: Sequence[TurnMetrics], limit: float) -> Iterator[tuple[int, int]]:
    """Turns in a row above a utilization: positions, the last exclusive."""
    start: int | None = None
    for at, turn in enumerate(series):
        high = turn.utilization is not None and turn.utilization > limit
        if high and start is None:
            start = at
        elif not high and start is not None:
            yield start, at
            start = None
    if start is not None:
        yield start, len(series)


def high_turns(series: Sequence[TurnMetrics], options: AlertOptions, now: float | None = None) -> int:
    """How many of the newest turns in a row are above the critical utilization. now: utilization after the last of
    them; 0 turns where that is not above it any more."""
    if now is not None and now <= options.utilization_critical:
        return 0
    count = 0
    for turn in reversed(series):
        if turn.utilization is None or turn.utilization <= options.utilization_critical:
            break
        count += 1
    return count


def _evictions(series: Sequence[TurnMetrics], options: AlertOptions) -> Iterator[Finding]:
    if len(series) < EVICTION_TURNS:
        return
    counts = [turn.evictions for turn in series]
    hint = "evict in batches, down to a lower target; or let less in (limits on tool output)"
    limit = options.eviction_warning
    mean = fmean(counts[-EVICTION_TURNS:])
    if mean > limit:
        said = f"{mean:.1f} units per turn were evicted over the last {EVICTION_TURNS} turns, more than {limit:g}"
        yield Finding("eviction_frequency", "warning", said, hint, series[-1].turn)
        return
    running = sum(counts[:EVICTION_TURNS])
    worst, at = running, EVICTION_TURNS - 1
    for end in range(EVICTION_TURNS, len(counts)):
        running += counts[end] - counts[end - EVICTION_TURNS]
        if running > worst:
            worst, at = running, end
    if worst / EVICTION_TURNS > limit:
        first = series[at - EVICTION_TURNS + 1].turn
        said = f"{worst / EVICTION_TURNS:.1f} units per turn were evicted in turns {first} to {series[at].turn}, more "
        said += f"than {limit:g}; none as often since"
        yield Finding("eviction_frequency", "info", said, hint, series[at].turn)


def _fidelity(
    series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions, turn: int | None
) -> Iterator[Finding]:
    value = metrics.fidelity
    if value is None or value >= options.fidelity_warning:
        return
    said = f"compactions kept {value:.1%} of what could be answered before, less than {options.fidelity_warning:.0%} "
    said += f"(target: above {options.fidelity_target:.0%})"
    hint = "keep more recent turns, and the state that the task needs word for word; `ctxctl health -v` names what was "
    hint += "lost"
    yield Finding("low_fidelity", "warning", said, hint, _last_compaction(series, turn))


def _burn(series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions) -> Iterator[Finding]:
    if metrics.burn_rate is None or not series or series[-1].added is None:
        return
    before = [turn.added for turn in series[-BURN_BEFORE - 1 : -1] if turn.added is not None]
    if len(before) < BURN_LEAST:
        return
    newest, mean = series[-1].added, fmean(before)
    if mean > 0 and newest > options.burn_rate_spike_ratio * mean:
        said = f"the newest turn added {newest:,} tokens, {newest / mean:.1f} times the mean of the {len(before)} "
        said += f"turns before ({mean:,.0f})"
        hint = "look at what came in: a limit, a range or a filter on that tool's output keeps it small"
        last = series[-1]
        window = last.tokens / last.utilization if last.utilization else DEFAULT_WINDOW
        small = newest < SMALL * window
        yield Finding("burn_rate_spike", "info" if small else "warning", said, hint, series[-1].turn)


def _compression(
    series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions, turn: int | None
) -> Iterator[Finding]:
    value = metrics.compression_ratio
    if value is None or not 1.0 < value < options.compression_ratio_warning:
        return
    said = f"compactions made what they replaced only {value:.2f} times smaller, less than "
    said += f"{options.compression_ratio_warning:g} times"
    hint = "ask for a shorter, structured summary, or clear old tool results instead, which costs no model call"
    yield Finding("weak_compression", "warning", said, hint, _last_compaction(series, turn))


def _drift(
    series: Sequence[TurnMetrics], metrics: Metrics, options: AlertOptions, turn: int | None
) -> Iterator[Finding]:
    value = metrics.token_drift
    if value is None or not drifts(value, series[-1].tokens if series else None, options.token_drift_warning):
        return
    said = f"{'more' if value > 0 else 'fewer'} tokens were counted than the provider reports: {value:+.1%}"
    hint = "trust what the provider reports; something enters or leaves the window that the transcript does not show, "
    hint += "or the model's tokenizer is another one"
    yield Finding("token_drift", "warning", said, hint, turn)


def _hits(metrics: Metrics, options: AlertOptions, stable: bool, turn: int | None) -> Iterator[Finding]:
    value = metrics.cache_hit_rate
    if value is None or not stable or value >= options.cache_hit_rate_warning:
        return
    said = f"the cache served {value:.1%} of the prompts, less than {options.cache_hit_rate_warning:.0%}, although "
    said += "nothing cut the window down and no long pause let it expire"
    hint = "keep the beginning of the prompt the same from call to call: no clock, counter or changing list in front; "
    hint += "append, don't edit; set the cache's marks at the end of the prompt"
    yield Finding("low_cache_hit_rate", "warning", said, hint, turn)


def _resumes(metrics: Metrics, options: AlertOptions, turn: int | None) -> Iterator[Finding]:
    value = metrics.resume_success_rate
    if value is None or value >= options.resume_success_warning:
        return
    said = f"{value:.1%} of the windows that began with a resume went on where the last one had stopped, less than "
    said += f"{options.resume_success_warning:.0%}"
    hint = "write goal, current step, decisions and open issues into the checkpoint before a window closes (`ctxctl "
    hint += "checkpoint`), and start from `ctxctl resume`"
    yield Finding("resume_success", "warning", said, hint, turn)


def _last_compaction(series: Sequence[TurnMetrics], turn: int | None) -> int | None:
    """The turn of the newest compaction, the newest of all where none is known."""
    return next((t.turn for t in reversed(series) if {"full", "micro"}.intersection(t.compactions)), turn)


def is_stable(session: HasTranscript) -> bool:
    """Whether most of a session's prompts could have come from the cache: there were enough calls, and nearly all of
    what they sent stood in the call before too, which was large enough to be cached. What follows a compaction, a
    change of model or a pause longer than an entry lives does not count as such."""
    transcript = session.transcript
    calls = [u for u in transcript.usage if u.thread == transcript.main and u.reported and u.prompt]
    if len(calls) < STABLE_CALLS or not any(u.cache_read or u.cache_write for u in calls):
        return False
    cuts = {c.turn for c in transcript.compactions}
    life = CACHE_LIFE_1H if any(u.cache_write_1h for u in calls) else CACHE_LIFE
    possible = sum(
        min(before.prompt, after.prompt)
        for before, after in pairwise(calls)
        if before.prompt >= CACHED_LEAST
        and after.turn not in cuts
        and before.model == after.model
        and (before.time is None or after.time is None or after.time - before.time <= life)
    )
    return possible >= STABLE_SHARE * sum(u.prompt for u in calls)
