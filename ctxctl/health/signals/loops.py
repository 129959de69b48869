"""Calls that go round in circles: failures that are retried, outputs that grow, sequences that repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ctxctl.facts import tools
from ctxctl.facts.errors import told
from ctxctl.facts.results import output
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of, outcome, text_of

RETRIES = 3
"""Failures of one call, each the same, from which on it is a loop: a second try is common sense."""
VARIANTS = 4
"""Failures of a file tool at one file with one error, its arguments being different each time."""
EDGE = 3_900
"""Characters at both ends of an output in which its error is looked for; `told` reads 8,000 in all."""
GROWN, GROWTH, LARGE = 4, 2.0, 2_000
"""Results of one call that grow, how much in all, and the tokens of the last."""
CYCLES, LONGEST = 3, 3
"""How often a sequence of calls comes in a row, and how many calls it has at most."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Calls that belong to one loop, in order. error: the line that all of them failed with. period: calls of one round
    of a cycle."""

    kind: Literal["retry", "growing", "cycle"]
    calls: tuple[Call, ...]
    error: str = ""
    period: int = 1


def loops_of(session: Session) -> list[Loop]:
    """All loops of a session, by where they begin. Worked out once per session."""
    memo = session.trace.memo
    if "health.loops" not in memo:
        found: list[Loop] = []
        told: set[int] = set()
        for loop in (
            *_retries(session),
            *_cycles(session),
            *_growing(session),
        ):  # what is seen in two ways is told once
            mine = {call.block for call in loop.calls}
            if 2 * len(mine & told) <= len(mine):
                found.append(loop)
                told |= mine
        memo["health.loops"] = sorted(found, key=lambda loop: loop.calls[0].block)
    result: list[Loop] = memo["health.loops"]
    return result


def _retries(session: Session) -> Iterator[Loop]:
    """Calls that fail again with the same error while nothing was changed in between."""
    running: dict[str, tuple[str, list[Call]]] = {}
    exchange = -1
    for call in calls_of(session):
        if call.result is None or call.waits:
            continue
        if call.exchange != exchange:  # the user came in, and may have changed anything
            yield from _ripe(running.values())
            running.clear()
            exchange = call.exchange
        if not call.failed:
            if call.alters:
                yield from _ripe(running.values())
                running.clear()
            else:
                yield from _ripe([running.pop(key) for key in _names(call) if key in running])
            continue
        text = output(text_of(session, call))
        error = told(text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}")
        for key in _names(call):
            before = running.get(key)
            if before is not None and before[0] == error:
                before[1].append(call)
            else:
                if before is not None:
                    yield from _ripe([before])
                running[key] = error, [call]
    yield from _ripe(running.values())


def _names(call: Call) -> tuple[str, ...]:
    """What makes a call a try of the same: its key, and of a file tool its file."""
    if call.does in (tools.EDIT, tools.WRITE, tools.EDITOR, tools.PATCH) and call.changes:
        return call.key, f"{call.does} {' '.join(call.changes)}"
    return (call.key,)


def _ripe(runs: Iterable[tuple[str, list[Call]]]) -> Iterator[Loop]:
    """Those that are long enough. Variants of a call hold the calls that are equal: the longer run tells of both."""
    done: set[int] = set()
    for error, calls in sorted(runs, key=lambda run: -len(run[1])):
        same = len({call.key for call in calls}) == 1
        if len(calls) >= (RETRIES if same else VARIANTS) and calls[0].block not in done:
            done.update(call.block for call in calls)
            yield Loop("retry", tuple(calls), error)


def _growing(session: Session) -> Iterator[Loop]:
    running: dict[str, list[Call]] = {}
    exchange = -1
    for call in calls_of(session):
        if call.result is None:
            continue
        if call.exchange != exchange:
            yield from _grown(running)
            running.clear()
            exchange = call.exchange
        if call.alters and not call.failed:
            kept = running.pop(call.key, None)
            yield from _grown(running)
            running = {call.key: kept} if kept else {}
        before = running.setdefault(call.key, [])
        if before and call.tokens <= before[-1].tokens:
            yield from _grown({call.key: before})
            before = running[call.key] = []
        before.append(call)
    yield from _grown(running)


def _grown(running: dict[str, list[Call]]) -> Iterator[Loop]:
    for calls in running.values():
        first, last = calls[0].tokens, calls[-1].tokens
        if len(calls) >= GROWN and last >= LARGE and last >= GROWTH * max(first, 1):
            yield Loop("growing", tuple(calls))


def _cycles(session: Session) -> Iterator[Loop]:
    """A B A B A B: at least two different calls in a row, again and again with the same outcomes."""
    calls = [call for call in calls_of(session) if call.result is not None]
    keys = [call.key for call in calls]
    at = 0
    while at < len(calls):
        for period in range(2, LONGEST + 1):
            end = at + period
            while end < len(calls) and keys[end] == keys[end - period] and calls[end].exchange == calls[at].exchange:
                end += 1
            rounds = (end - at) // period
            run = calls[at : at + rounds * period]
            if rounds < CYCLES or len(set(keys[at : at + period])) == 1 or any(call.waits for call in run):
                continue
            if all(outcome(session, run[i]) == outcome(session, run[i - period]) for i in range(period, len(run))):
                yield Loop("cycle", tuple(run), period=period)
                at += len(run) - 1
                break
        at += 1
