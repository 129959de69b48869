"""A window that began with a resume and did not go on well (requirement O4)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.resumes import Resumed, resumes_of
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding


@DETECTORS.register("resume_failure")
class ResumeFailure(Detector):
    """Signal: within 10 calls of a resume (ctxctl's prompt, or the summary that an agent continues from) the agent asks
    what it was doing, makes a change again that it had made before, takes up what was done, or goes on with another
    goal, without the user having asked for that."""

    code = "resume_failure"
    signal = "within 10 calls of a resume the agent asked what it was doing, repeated finished work, or left the goal"
    fix = (
        "write goal, finished steps, current step and open issues into the checkpoint before a window closes "
        "(`ctxctl checkpoint`), and start the next one from `ctxctl resume`"
    )

    def find(self, session: Session) -> Iterator[Finding]:
        every = resumes_of(session)
        for resumed in every:
            if not resumed.ok:
                yield self._told(session, resumed, len(every))

    def _told(self, session: Session, resumed: Resumed, count: int) -> Finding:
        blocks = session.trace.blocks
        start = session.turn_number(resumed.turn)
        shown = blocks[resumed.signs[-1]]
        at = session.turn_number(max(resumed.turn, shown.turn))
        what = "a resume prompt" if resumed.own else "a summary"
        message = f"the window that began with {what} in turn {start:,} did not go on well: the agent {resumed.why}"
        numbers = (resumed.block, *resumed.signs)
        quotes = [quote(blocks[n], session.turn_number(max(1, blocks[n].turn))) for n in numbers]
        turns = tuple(dict.fromkeys((start, at)))
        counts = {"resumes": count, "tokens": session.trace.tokens[resumed.block]}
        return self.finding(message, turn=at, line=shown.source.line, turns=turns, quotes=quotes, counts=counts)
