"""A full window in which early instructions are missed (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.overruled import overruled
from ctxctl.health.signals.repeated import repeated
from ctxctl.model.finding import Finding
from ctxctl.model.text import shortened

FULL = 0.70
"""Utilization above which a window is bloated (requirement H8)."""
APART = 10
"""Calls between what was said early and where it was missed."""


@DETECTORS.register("context_bloat")
class ContextBloat(Detector):
    """Signal: while the window is more than 70 % full, the user has to say again what stands at least 10 calls earlier
    ("as I said", or a constraint in nearly the same words), or the agent uses what the user had told it not to use."""

    code = "context_bloat"
    signal = "above 70 % of the window the user repeated an instruction of at least 10 calls before, or it was broken"
    fix = "compact earlier and more lightly: lower pressure_thresholds.orange, and pin instructions that hold on"

    def find(self, session: Session) -> Iterator[Finding]:
        if not session.window:
            return
        found = [*self._repeated(session), *self._broken(session)]
        yield from sorted(found, key=lambda finding: finding.turn or 0)

    def _repeated(self, session: Session) -> Iterator[Finding]:
        for one in repeated(session, APART):
            stays = session.stays
            yield from self._told(
                session,
                (one.early, stays[one.early].came, one.said),
                (one.late, stays[one.late].came, one.again),
                "the user had to repeat an instruction of turn {early}",
            )

    def _broken(self, session: Session) -> Iterator[Finding]:
        blocks = session.trace.blocks
        for one in overruled(session):
            came, turn = session.stays[one.ban].came, blocks[one.again].turn
            if turn - came >= APART:
                said = f"the agent used {one.name!r} against an instruction of turn {{early}}"
                yield from self._told(session, (one.ban, came, one.said), (one.again, turn, one.text), said)

    def _told(
        self, session: Session, early: tuple[int, int, str], late: tuple[int, int, str], said: str
    ) -> Iterator[Finding]:
        number = session.turn_number(late[1])
        level = session.analysis.pressure[number - 1] if 0 < number <= len(session.analysis.pressure) else None
        if level is None or level.utilization is None or level.utilization <= FULL:
            return
        blocks = session.trace.blocks
        first = session.turn_number(early[1])
        there = session.stays[early[0]].holds(late[1])
        where = "" if there else ", which a compaction had taken out of the window"
        message = f"with the window {level.utilization:.0%} full {said.format(early=f'{first:,}')}{where}"
        hint = (
            f"pin `{shortened(early[2], 80)}` (`ctxctl compact --pin`), lower pressure_thresholds.orange so that "
            f"compaction starts before {FULL:.0%}, and compact less at a time late in the session"
        )
        quotes = [quote(blocks[early[0]], first, early[2]), quote(blocks[late[0]], number, late[2])]
        counts = {"utilization": level.utilization, "calls_apart": late[1] - early[1]}
        line = blocks[late[0]].source.line
        yield self.finding(
            message, turn=number, line=line, turns=(first, number), quotes=quotes, counts=counts, hint=hint
        )
