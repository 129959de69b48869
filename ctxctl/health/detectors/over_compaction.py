"""A compaction that took away what was needed right after it (requirement H8)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ctxctl.facts import tools
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.resumes import ASKED, Resumed, resumes_of
from ctxctl.health.session import Session
from ctxctl.health.signals.beginnings import Beginning, beginnings
from ctxctl.health.signals.calls import Call, calls_of
from ctxctl.health.signals.readings import Again, read_again
from ctxctl.model.finding import Finding
from ctxctl.model.text import shortened

CALLS = 10
"""Calls after a compaction that are looked at."""
TARGETS = 3
"""Files or documents that must be read again."""
TOKENS = 1_000
"""And so many tokens; fetching less again costs less than it would have cost to keep it."""
NAMED = 4
_EDITS = (tools.EDIT, tools.WRITE, tools.EDITOR, tools.PATCH)


@DETECTORS.register("over_compaction")
class OverCompaction(Detector):
    """Signal: within 10 calls of a full compaction the agent asks what it was doing, or reads at least 3 files or
    documents again that the window had held until then and that had not changed: each shows what the earlier result
    showed. A file that it goes on to edit does not count, since clients demand that it is read first; nor does what the
    client puts back by itself."""

    code = "over_compaction"
    signal = "within 10 calls of a compaction the agent asked what it was doing, or read 3 unchanged files again"
    fix = "keep more of the newest turns, and the files being worked on word for word (`ctxctl compact --keep-turns N`)"

    def find(self, session: Session) -> Iterator[Finding]:
        starts = [start for start in beginnings(session) if start.cut]
        if not starts:
            return
        lost = {one.turn: one for one in resumes_of(session) if one.why == ASKED}
        again = self._read_again(session, starts)
        for start in starts:
            found = list(again.get(start.turn, {}).values())
            tokens = sum(one.call.tokens for one in found)
            if len(found) < TARGETS or tokens < TOKENS:
                found = []
            if found or start.turn in lost:
                yield self._told(session, start, found, lost.get(start.turn))

    def _read_again(self, session: Session, starts: Sequence[Beginning]) -> dict[int, dict[str, Again]]:
        """By the window, the first reading of each target that its compaction made necessary."""
        turns = [start.turn for start in starts]
        found: dict[int, dict[str, Again]] = {}
        for one in read_again(session):
            at = bisect_right(turns, one.call.turn) - 1
            result = one.first.result
            if one.there or at < 0 or result is None:
                continue
            start, stay = starts[at], session.stays[result]
            near = one.call.turn < min(start.turn + CALLS, start.end)
            mine = found.setdefault(start.turn, {})
            if near and one.target not in mine and stay.cause == "compacted" and stay.left == start.turn:
                if _for_edit(session, one.call):
                    continue
                mine[one.target] = one
        return found

    def _told(self, session: Session, start: Beginning, found: list[Again], lost: Resumed | None) -> Finding:
        blocks = session.trace.blocks
        at = session.turn_number(start.turn)
        tokens = sum(one.call.tokens for one in found)
        said, hints, quotes = [], [], []
        turns = [at]
        if lost is not None:
            number = lost.signs[0]
            said.append(ASKED)
            hints.append("let the summary state goal, current step and next step")
            turns.append(session.turn_number(blocks[number].turn))
            quotes.append(quote(blocks[number], turns[-1]))
        if found:
            names = [shortened(one.target, 80) for one in found]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            said.append(f"read {len(found)} things again that had not changed, for {tokens:,} tokens")
            hints.append(f"keep {', '.join(names[:NAMED])}{more} word for word (`ctxctl compact --pin path=...`)")
            turns += [session.turn_number(one.call.turn) for one in found]
            for one in found[:NAMED]:
                turn = session.turn_number(one.call.turn)
                quotes.append(quote(blocks[one.call.block], turn, one.call.shown))
        message = f"right after the compaction before turn {at:,} the agent {' and '.join(said)}"
        hint = f"keep more of the newest turns (`--keep-turns`), and {' and '.join(hints)}"
        counts = {"targets": len(found), "tokens": tokens}
        line = blocks[start.block].source.line
        return self.finding(
            message, turn=at, line=line, turns=tuple(dict.fromkeys(turns)), quotes=quotes, counts=counts, hint=hint
        )


def _for_edit(session: Session, call: Call) -> bool:
    """Whether a file tool reads what the agent edits soon after."""
    if call.does not in (tools.READ, tools.EDITOR) or not call.reads:
        return False
    path = call.reads[0].path
    return any(
        path in other.changes and other.does in _EDITS
        for other in calls_of(session)
        if call.turn <= other.turn < call.turn + CALLS
    )
