"""The provider's cache could not serve what it had served the call before (requirement O3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ctxctl.budgets.cost import prices_of, session_cost
from ctxctl.health.alerts import CACHE_LIFE, CACHE_LIFE_1H
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding, Quote
from ctxctl.model.usage import Usage

Cause = Literal["clearing", "model", "pause", "rewind", "edit", "unknown"]

SHARE = 0.5
"""Share of what stood in the call before that must be read anew: below it, it is the newest messages, which an entry
may not hold yet."""
LEAST = 5_000
"""Tokens read anew by one call below which it is not worth a word."""
TOGETHER = 20_000
"""The same for all calls of a cause."""
UNASKED = 200_000
"""The same for breaks that nothing explains where the provider caches without being asked: such caches promise nothing,
and miss a few calls in a hundred."""
MATERIAL = 0.10
"""Share of the session's cost from which on a break is a warning."""
SHRANK = 0.05
"""Share by which a prompt must be smaller than the one before for its beginning to have been changed."""


@dataclass(frozen=True, slots=True)
class Break:
    """One call. kept: tokens that its cache served; anew: tokens that stood in the call before and were read anew;
    pause: seconds since the call before; freed: tokens by which the prompt shrank; cost: USD beyond cache reads."""

    call: Usage
    cause: Cause
    kept: int
    anew: int
    pause: float | None
    freed: int
    cost: float | None


@DETECTORS.register("prefix_break")
class PrefixBreak(Detector):
    """Signal: a call whose cache served less than half of what had stood in the call before (both calls large enough
    to be cached), told by its cause: a clearing that did not pay, a change of model, a pause longer than the entry
    lives, a rewind, a beginning that was changed, or nothing that the transcript tells. One finding per cause; a
    warning when it made up a tenth of the session's cost or more.

    Left out are full compactions, which are done for another end, and reasoning that the provider itself leaves out
    when the next prompt comes.
    """

    code = "prefix_break"
    level = "warning"
    signal = (
        "calls whose cache served less than half of what the call before had sent, 20,000 tokens or more together: "
        "after a pause, a change of model, a clearing that did not pay, an edit, or for no reason that is told"
    )
    fix = "keep the beginning of the prompt as it is from call to call, and append"

    def find(self, session: Session) -> Iterator[Finding]:
        groups: dict[Cause, list[Break]] = {}
        for found in breaks_of(session):
            groups.setdefault(found.cause, []).append(found)
        for cause, found_here in groups.items():
            anew = sum(b.anew for b in found_here)
            unasked = cause == "unknown" and not any(u.cache_write for u in session.transcript.usage)
            if anew >= (UNASKED if unasked else TOGETHER):
                yield self._finding(session, cause, found_here, anew)

    def _finding(self, session: Session, cause: Cause, breaks: list[Break], anew: int) -> Finding:
        costs = [b.cost for b in breaks if b.cost is not None]
        cost = sum(costs) if len(costs) == len(breaks) else None
        worst = max(breaks, key=lambda b: b.anew)
        times = "once" if len(breaks) == 1 else f"{len(breaks)} times"
        price = f" (${cost:,.2f} more than from the cache)" if cost else ""
        at = f"turn {worst.call.turn}: {worst.anew:,}"
        most = f", most at {at}" if len(breaks) > 1 else f" at {at.split(':')[0]}"
        said = f"the cached prefix broke {times} {_told(cause, breaks)}: {anew:,} tokens were read anew{price}{most}"
        counts: dict[str, float] = {"breaks": len(breaks), "tokens": anew}
        if cost is not None:
            counts["usd"] = round(cost, 4)
        quotes = _where(session, worst) if cause in ("edit", "unknown") and worst.kept else ()
        return self.finding(
            said,
            turn=worst.call.turn,
            turns=[b.call.turn for b in breaks],
            line=worst.call.line or None,
            quotes=quotes,
            counts=counts,
            level="warning" if cost and cost >= MATERIAL * (_total(session) or cost) else "info",
            hint=_fix(cause),
        )


def _told(cause: Cause, breaks: list[Break]) -> str:
    pauses = [b.pause for b in breaks if b.pause is not None]
    if cause == "pause":
        longest = f", up to {_minutes(max(pauses))}" if len(breaks) > 1 else f" of {_minutes(pauses[0])}"
        return f"after a pause longer than an entry of the cache lives{longest}"
    if cause == "clearing":
        freed = sum(b.freed for b in breaks)
        return f"by a clearing of old results, which freed {freed:,} tokens and had not paid by the end"
    if cause == "edit":
        return f"since {sum(b.freed for b in breaks):,} tokens of earlier content were left out without a compaction"
    return {
        "model": "since another model was asked",
        "rewind": "since the session went back to an earlier state",
        "unknown": "for no reason that the transcript tells",
    }[cause]


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{seconds / 60:.0f} min"


def _fix(cause: Cause) -> str:
    if cause == "pause":
        return (
            "where pauses are usual, keep entries for an hour (Anthropic: cache_control ttl 1h), or compact before a "
            "pause, so that less is read anew after it"
        )
    if cause == "clearing":
        return "clear larger batches, less often, and not shortly before the end (compaction.minimum_saving)"
    if cause == "model":
        return "each model has a cache of its own: change models at a compaction, or for a sub-agent's own window"
    if cause == "rewind":
        return "going back costs the prefix behind that point: correct early, or start a new session from a summary"
    if cause == "edit":
        return "leave earlier messages as they are and append; what must go should go in batches, at a compaction"
    return (
        "look for what changes in front (a clock, the order of tools, a list of files) and for a router that spreads "
        "calls over hosts; a cache that works without being asked promises nothing: an explicit one does"
    )


def breaks_of(session: Session) -> Iterator[Break]:
    """The calls of the main thread whose prefix broke, with the cause."""
    transcript = session.transcript
    if transcript.conversations:
        return
    numbered = [(i, u) for i, u in enumerate(transcript.usage) if u.thread == transcript.main and u.prompt]
    if not any(u.cache_read for _, u in numbered):
        return
    kinds: dict[int, set[str]] = {}
    for cut in transcript.compactions:
        kinds.setdefault(cut.turn, set()).add(cut.kind)
    last = max((u.turn for _, u in numbered), default=0)
    ends = sorted({turn for turn, found in kinds.items() if "full" in found} | {last + 1})
    for (i, before), (j, after) in pairwise(numbered):
        kept, stood = after.cache_read, min(before.prompt, after.prompt)
        anew = stood - kept
        had = before.cache_read + before.cache_write > 0  # else there was nothing that could break
        done = kinds.get(after.turn, set())
        if anew < LEAST or anew < SHARE * stood or not had or "full" in done:
            continue
        pause = after.time - before.time if before.time is not None and after.time is not None else None
        freed = max(0, before.prompt - after.prompt)
        if (i in transcript.abandoned) != (j in transcript.abandoned):
            done = done | {"rollback"}
        cause = _cause(before, after, pause, freed, done)
        if cause in ("edit", "unknown") and _drops_reasoning(session, after):
            continue
        if cause == "clearing" and _paid(session, after, anew, freed, next(e for e in ends if e > after.turn)):
            continue
        yield Break(after, cause, kept, anew, pause, freed, _cost(session, after, anew))


def _drops_reasoning(session: Session, call: Usage) -> bool:
    """Whether the provider left out reasoning before this call."""
    trace, at = session.trace, call.turn - session.first
    leaving = trace.turns[at].leaving if 0 <= at < len(trace.turns) else ()
    return any(trace.blocks[b].kind == "thinking" for b in leaving)


def _cause(before: Usage, after: Usage, pause: float | None, freed: int, done: set[str]) -> Cause:
    life = CACHE_LIFE_1H if before.cache_write_1h else CACHE_LIFE
    if pause is not None and pause > life:  # whatever else was done, it was gone by then
        return "pause"
    if before.model != after.model:
        return "model"
    if "micro" in done:
        return "clearing"
    if "rollback" in done:
        return "rewind"
    return "edit" if freed > SHRANK * before.prompt else "unknown"


def _prices(session: Session, call: Usage) -> tuple[float, float] | None:
    """USD per token read anew and from the cache, as this call paid them."""
    row = session.table.find(call.model or session.transcript.model)
    prices = prices_of(row, call.prompt) if row is not None else None
    if prices is None:
        return None
    written = prices.write_1h if call.cache_write_1h else prices.write
    return (written if call.cache_write > call.input else prices.input) / 1e6, prices.read / 1e6


def _total(session: Session) -> float | None:
    """USD of the main thread's calls."""
    calls = (u for u in session.transcript.usage if u.thread == session.transcript.main)
    return session_cost(calls, session.table, session.transcript.model)


def _cost(session: Session, call: Usage, anew: int) -> float | None:
    prices = _prices(session, call)
    return None if prices is None else anew * (prices[0] - prices[1])


def _paid(session: Session, call: Usage, anew: int, freed: int, end: int) -> bool:
    """Whether a clearing paid: what its calls up to `end` did not read again costs more than what was read anew."""
    prices = _prices(session, call)
    if prices is None:
        return True
    return freed * (end - call.turn) * prices[1] >= anew * (prices[0] - prices[1])


def _where(session: Session, found: Break) -> tuple[Quote, ...]:
    """The block at which the served prefix ends; () where it ends within what the file does not hold."""
    trace = session.trace
    turn = found.call.turn - session.first + 1
    position = trace.overhead
    for number, stay in enumerate(session.stays):
        if stay.holds(turn):
            position += trace.tokens[number]
            if position > found.kept:
                block = trace.blocks[number]
                return (quote(block, session.turn_number(stay.came)),)
    return ()
