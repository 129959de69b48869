"""The same file, read over and over within one exchange (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import costliest, listed
from ctxctl.health.signals.readings import Again, read_again, tokens_of
from ctxctl.model.finding import Finding

TIMES = 5
"""Readings of one file in one exchange (requirement H8)."""


@DETECTORS.register("jit_thrash")
class JitThrash(Detector):
    """Signal: within one exchange a file is read at least 5 times where once would have done: all but the first of the
    readings counted show a passage that stands, as it is, in an earlier result still in the window. Other parts of a
    large file are paging; a reading after the file was changed, or after a command that may have done so, is a check.
    """

    code = "jit_thrash"
    signal = "a file was read at least 5 times in one exchange, and all but the first reading showed nothing new"
    fix = "keep a cache of what this exchange fetched, and answer a repeated read with a pointer to the earlier result"

    def find(self, session: Session) -> Iterator[Finding]:
        again: dict[tuple[int, str], list[Again]] = {}
        for reading in read_again(session):
            same = reading.first.exchange == reading.call.exchange
            if reading.call.reads and reading.there and same and not reading.unsure:
                again.setdefault((reading.call.exchange, reading.target), []).append(reading)
        thrashed = [found for found in again.values() if len(found) >= TIMES - 1]
        yield from costliest((tokens_of(found), partial(self._told, session, found)) for found in thrashed)

    def _told(self, session: Session, found: list[Again]) -> Finding:
        turns = [session.turn_number(t) for t in dict.fromkeys((found[0].first.turn, *(a.call.turn for a in found)))]
        tokens = tokens_of(found)
        path, first = found[0].target, session.turn_number(found[0].first.turn)
        message = (
            f"{path} was read {len(found) + 1:,} times in one exchange ({listed(turns)}); "
            f"{len(found):,} of the readings showed nothing new and took {tokens:,} tokens"
        )
        hint = f"keep a cache of what this exchange fetched: answer a repeated read of {path} with `see turn {first}`"
        blocks = session.trace.blocks
        quotes = [quote(blocks[a.call.block], session.turn_number(a.call.turn), a.call.shown) for a in found[:3]]
        counts = {"reads": len(found) + 1, "repeats": len(found), "tokens": tokens}
        return self.finding(
            message,
            turns=turns,
            turn=session.turn_number(found[-1].call.turn),
            line=blocks[found[-1].call.block].source.line,
            quotes=quotes,
            counts=counts,
            hint=hint,
        )
