"""How much of what a window could answer can still be answered after it was compacted (requirement H5).

The questions come from the facts that ctxctl finds in a session (`ctxctl.facts`). What these don't find is not asked;
and a summary that ctxctl wrote itself from the same facts answers almost all by its making. To compare strategies of
ctxctl with each other, look at the retention of atoms and at what later turns used, which know nothing of facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ctxctl.facts.session import SessionFacts
from ctxctl.guard.sanitize import sanitize
from ctxctl.health.answers import Asked, Probe, answered
from ctxctl.health.probes import KINDS, probes_of
from ctxctl.model.block import Block
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import shortened
from ctxctl.trace.retention import Retention, retained, said

if TYPE_CHECKING:
    from ctxctl.health.session import Session

NAMED = 20
"""Lost answers, and later misses, that are named; all are counted."""
LONGEST = 160
KEY = 40
"""Characters of an answer by which it is found again where it was said."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A question that can't be answered any more. turn: the first call after the compaction; line: of the file, where
    its answer was said last, None when it was not said in these words."""

    kind: str
    question: str
    answer: str
    turn: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Something that a later turn used, and that the window did not hold any more."""

    turn: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One compaction. score: answered / asked, None when nothing was asked. by_kind: (answered, asked) per kind of
    question. lost: at most 20. retention: of the atoms of the window before, those that are there after."""

    turn: int | None
    score: float | None
    asked: int
    answered: int
    by_kind: dict[str, tuple[int, int]]
    lost: tuple[Lost, ...]
    retention: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Over all full compactions of a session. score: answered / asked, None where nothing could be asked; `why` says
    so. future_kept: of what later turns used of what the window held before a compaction or a clearing of old results,
    the share that it still held after; future_used: how many such uses there were. Clearings ask no questions: what was
    said stays."""

    score: float | None
    asked: int = 0
    answered: int = 0
    by_kind: dict[str, tuple[int, int]] = field(default_factory=dict)
    compactions: tuple[Judged, ...] = ()
    lost: tuple[Lost, ...] = ()
    future_kept: float | None = None
    future_used: int = 0
    future_lost: tuple[Missed, ...] = ()
    why: str | None = None


def judge(before: Sequence[Block], after: Sequence[Block], turn: int | None = None) -> Judged:
    """Ask the window after a compaction what the one before could answer. turn: the first call after it."""
    earlier = facts_of([block for block in before if block.kind == "summary"])
    one, other = Asked(before, facts_of(before), earlier), Asked(after, facts_of(after))
    counts = {kind: [0, 0] for kind in KINDS}
    lost: list[Lost] = []
    for probe in probes_of(one):
        good = answered(probe, other)
        counts[probe.kind][0] += good
        counts[probe.kind][1] += 1
        if not good and len(lost) < NAMED:
            lost.append(Lost(probe.kind, _clean(probe.question), _clean(probe.answer), turn, _line(probe, before)))
    total, asked = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    by_kind = {kind: (good, of) for kind, (good, of) in counts.items() if of}
    return Judged(turn, total / asked if asked else None, asked, total, by_kind, tuple(lost), _shares(before, after))


def _line(probe: Probe, blocks: Sequence[Block]) -> int | None:
    """Where the answer stands last: of a call that changed a file its path is enough."""
    key = probe.answer.split("\n")[0][:KEY]
    for block in reversed(blocks):
        if block.kind not in ("tool_result", "thinking") and key in block.text:
            return block.source.line
    return None


@lru_cache(maxsize=256)
def _clean(text: str) -> str:
    """One line without credentials: it goes into reports and logs of CI."""
    return shortened(" ".join(sanitize(shortened(text, 4 * LONGEST)).text.split()), LONGEST)


def _shares(before: Sequence[Block], after: Sequence[Block]) -> dict[str, float | None]:
    kept: Retention = retained(map(said, before), map(said, after), named=False)
    return {name: share.share for name, share in kept.items()}


def facts_of(blocks: Sequence[Block]) -> SessionSummary:
    """The facts of a window alone."""
    facts = SessionFacts()
    for number, block in enumerate(blocks):
        facts.see(block, number)
    return facts.summary()


def fidelity_of(session: Session) -> Fidelity:
    """What the agent's own compactions kept: asked of the window right before each full compaction, answered from the
    window right after it (its summary and the blocks that stayed)."""
    trace, stays = session.trace, session.stays
    cuts = [turn for turn, cut in sorted(trace.recorded.items()) if cut.kept is not None]
    cleared = [turn for turn, cut in sorted(trace.recorded.items()) if cut.kept is None and cut.cleared]
    used, gone, missed = _future(session, sorted([*cuts, *cleared]))
    if not cuts:
        return Fidelity(
            None,
            future_kept=1 - gone / used if used else None,
            future_used=used,
            future_lost=tuple(missed),
            why="old results were cleared, and nothing was summarized"
            if cleared
            else "the session was never compacted",
        )
    judged: list[Judged] = []
    for turn in cuts:
        cut = trace.recorded[turn]
        new = set(cut.summary)
        before = [
            b
            for b, stay in enumerate(stays)
            if b not in new
            and stay.came <= turn
            and (stay.left is None or stay.left >= turn)
            # what came in with the same call behind the compaction is none of it
            and (stay.came < turn or stay.left == turn)
        ]
        after = [b for b in before if stays[b].holds(turn)] + sorted(new)
        old, kept = [trace.blocks[b] for b in before], [trace.blocks[b] for b in sorted(after)]
        judged.append(judge(old, kept, session.turn_number(turn)))
    asked, good = sum(j.asked for j in judged), sum(j.answered for j in judged)
    counts: Counter[tuple[str, int]] = Counter()
    for one in judged:
        for kind, pair in one.by_kind.items():
            counts[kind, 0] += pair[0]
            counts[kind, 1] += pair[1]
    return Fidelity(
        good / asked if asked else None,
        asked,
        good,
        {kind: (counts[kind, 0], counts[kind, 1]) for kind in KINDS if counts[kind, 1]},
        tuple(judged),
        tuple(lost for one in reversed(judged) for lost in one.lost)[:NAMED],
        1 - gone / used if used else None,
        used,
        tuple(missed),
        None if asked else "no probe could be asked",
    )


def _future(session: Session, cuts: Sequence[int]) -> tuple[int, int, list[Missed]]:
    """References of later turns to what a window held before a compaction, until the next one: how many there are, how
    many of them found it gone, and the first of these. References to what only came in after it are none."""
    trace, stays = session.trace, session.stays
    providers: dict[int, list[int]] = {}
    for b, atoms in enumerate(trace.atoms):
        for atom in atoms:
            providers.setdefault(atom, []).append(b)
    used, count = 0, 0
    missed: list[Missed] = []
    bounds = [*cuts, len(trace.turns) + 1]
    for cut, end in pairwise(bounds):
        asked: set[int] = set()
        for turn in trace.turns[cut - 1 : end - 1]:
            for reference in turn.references:
                if reference.atom in asked:
                    continue
                homes = [b for b in providers.get(reference.atom, ()) if stays[b].came < cut]
                homes = [b for b in homes if (left := stays[b].left) is None or left >= cut]
                if not homes:
                    continue
                asked.add(reference.atom)
                used += 1
                if not any(stays[b].holds(cut) for b in providers[reference.atom] if stays[b].came <= cut):
                    count += 1
                    if len(missed) < NAMED:
                        text = _clean(reference.evidence)
                        missed.append(Missed(session.turn_number(turn.index), reference.kind, text))
    return used, count, missed
