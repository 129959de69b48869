"""What is loaded again and again over a session (requirement O6)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import costliest, listed, times
from ctxctl.health.signals.readings import Again, read_again, tokens_of
from ctxctl.model.finding import Finding
from ctxctl.model.text import shortened

LOADS = 3
"""Exchanges that load the same."""
LEAST = 500
"""Tokens of all loadings after the first; below them the cure costs more."""
WHOLE = 0.5
"""Share of the earlier result that a loading must repeat: to look up a few lines of it again is no loading."""


@DETECTORS.register("reload")
class Reload(Detector):
    """Signal: at least 3 exchanges load the same file or document although it did not change: what they read stands, as
    it is, in an earlier result. Within one exchange the same is `jit_thrash`. What had left the window by a compaction
    had to be loaded again; the finding says so, since the cure differs."""

    code = "reload"
    signal = "at least 3 exchanges loaded the same file or document, which had not changed"
    fix = "keep what several exchanges need where it stays: in a pinned message, the notes, or the project instructions"

    def find(self, session: Session) -> Iterator[Finding]:
        again: dict[str, dict[int, Again]] = {}
        for reading in read_again(session):
            now, before = reading.call, reading.first
            if now.exchange != before.exchange and now.tokens >= WHOLE * before.tokens:
                again.setdefault(reading.target, {}).setdefault(now.exchange, reading)
        found = [list(readings.values()) for readings in again.values() if len(readings) >= LOADS - 1]
        dear = [(tokens, readings) for readings in found if (tokens := tokens_of(readings)) >= LEAST]
        yield from costliest((tokens, partial(self._told, session, readings)) for tokens, readings in dear)

    def _told(self, session: Session, found: list[Again]) -> Finding:
        turns = [session.turn_number(t) for t in dict.fromkeys((found[0].first.turn, *(a.call.turn for a in found)))]
        tokens = tokens_of(found)
        target = shortened(found[0].target, 100)
        gone = sum(not a.there for a in found)
        there = len(found) - gone
        told = [
            *([f"{times(there)} while it was still in the window"] if there else []),
            *([f"{times(gone)} after a compaction had removed it"] if gone else []),
        ]
        message = (
            f"{target} was loaded in {len(found) + 1:,} exchanges ({listed(turns)}) without having changed: "
            f"again {' and '.join(told)}, for {tokens:,} tokens"
        )
        if gone > there:
            hint = f"pin {target}, or write what is needed of it into the notes before the next compaction"
        else:
            hint = f"point the agent to the result of turn {turns[0]:,} when it asks for {target} unchanged"
        blocks = session.trace.blocks
        quotes = [quote(blocks[a.call.block], session.turn_number(a.call.turn), a.call.shown) for a in found[:3]]
        counts = {"loads": len(found) + 1, "in_window": there, "after_compaction": gone, "tokens": tokens}
        at, line = session.turn_number(found[-1].call.turn), blocks[found[-1].call.block].source.line
        return self.finding(message, turns=turns, turn=at, line=line, quotes=quotes, counts=counts, hint=hint)
