"""The same call with the same outcome, again and again (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from ctxctl.facts import tools
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.detectors.jit_thrash import TIMES as THRASH
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import costliest, listed
from ctxctl.health.signals.calls import Call, calls_of, in_window, outcome
from ctxctl.health.signals.loops import loops_of
from ctxctl.model.finding import Finding

TIMES = 3


@DETECTORS.register("repeated_calls")
class RepeatedCalls(Detector):
    """Signal: within one exchange a call with equal arguments gives an equal result at least 3 times, nothing that it
    could have seen was changed in between, and each time the result before was still in the window.

    A test run again after an edit is none, nor is waiting for something (`sleep`, a status call). Failures are
    `runaway_loop`, and so are calls that alternate; a file that is read 5 times or more is `jit_thrash`.
    """

    code = "repeated_calls"
    signal = "the same call gave the same result at least 3 times while the one before was still in the window"
    fix = "tell the agent that the result has not changed: it is above; or answer repeats from a cache"

    def find(self, session: Session) -> Iterator[Finding]:
        cycling = {call.block for loop in loops_of(session) if loop.kind == "cycle" for call in loop.calls}
        chains = (chain for chain in _chains(session) if not any(call.block in cycling for call in chain))
        yield from costliest((_tokens(chain), partial(self._told, session, chain)) for chain in chains)

    def _told(self, session: Session, chain: list[Call]) -> Finding:
        turns = [session.turn_number(call.turn) for call in chain]
        tokens = _tokens(chain)
        blocks = session.trace.blocks
        first, last = chain[0], chain[-1]
        message = (
            f"`{first.shown}` was called {len(chain):,} times ({listed(turns)}) with the same result, with nothing "
            f"changed in between; the repeats took {tokens:,} tokens"
        )
        quotes = [quote(blocks[first.block], turns[0], first.shown)]
        if first.result is not None:
            quotes.append(quote(blocks[first.result], turns[0]))
        counts = {"calls": len(chain), "tokens": tokens}
        line = blocks[last.block].source.line
        return self.finding(message, turns=turns, turn=turns[-1], line=line, quotes=quotes, counts=counts)


def _tokens(chain: list[Call]) -> int:
    """Tokens of the repeats."""
    return sum(call.tokens for call in chain[1:])


def _chains(session: Session) -> Iterator[list[Call]]:
    """Calls in a row that are equal and gave the same."""
    running: dict[str, list[Call]] = {}
    exchange = -1
    for call in calls_of(session):
        if call.exchange != exchange:  # whoever came in may have changed anything
            yield from _long(running.values())
            running, exchange = {}, call.exchange
        if call.result is None or call.waits or call.failed or call.does == tools.ASK:
            continue
        if call.alters:
            kept = {key: chain for key, chain in running.items() if key == call.key or _unseen(chain[0], call)}
            yield from _long(chain for key, chain in running.items() if key not in kept)
            running = kept
        chain = running.get(call.key)
        if chain and in_window(session, chain[-1], call.turn) and _same(session, chain[-1], call):
            chain.append(call)
        else:
            yield from _long([chain or []])
            running[call.key] = [call]
    yield from _long(running.values())


def _unseen(call: Call, change: Call) -> bool:
    """Whether a call reads nothing but files that a change does not touch."""
    return bool(change.changes and call.reads) and not any(r.path in change.changes for r in call.reads)


def _same(session: Session, one: Call, other: Call) -> bool:
    return outcome(session, one) == outcome(session, other)


def _long(chains: Iterable[list[Call]]) -> Iterator[list[Call]]:
    for chain in chains:
        thrash = len(chain) >= THRASH and len(chain[0].reads) == 1
        if len(chain) >= TIMES and not thrash:
            yield chain
