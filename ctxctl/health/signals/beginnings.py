"""Windows that began with a resume: a resume prompt of ctxctl, or the summary that an agent itself continues from,
after a compaction or at the beginning of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxctl.facts import foreign, resumed
from ctxctl.facts.prompts import is_go_on
from ctxctl.health.session import Session
from ctxctl.model.block import Block
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import RESUME

_MEMO = "health.by_call"
_GIVEN = ("summary", "user_message", "memory_injection", "system")


@dataclass(frozen=True, slots=True)
class Beginning:
    """turn: first call of the window, as the trace counts; end: first call of the next one. block: number of the resume
    in the trace. cut: it follows a compaction of this session."""

    turn: int
    end: int
    block: int
    cut: bool


def beginnings(session: Session) -> list[Beginning]:
    """All of the main thread, in order."""
    trace = session.trace
    cuts = {turn for turn, cut in trace.recorded.items() if cut.summary and cut.kept is not None}
    found: dict[int, int] = {}
    for number, block in enumerate(trace.blocks):
        if block.kind not in _GIVEN:
            continue
        came = session.stays[number].came
        if came in found or came > len(trace.turns):
            continue
        summary = block.kind == "summary" and came in cuts
        first = came == 1 and block.kind in ("summary", "user_message") and foreign.is_foreign(block.text)
        if summary or first or (RESUME in block.text and resumed.given(block) is not None):
            found[came] = number
    turns = sorted(found)
    ends = [*turns, len(trace.turns) + 1][1:]
    return [Beginning(turn, end, found[turn], turn in cuts) for turn, end in zip(turns, ends, strict=True)]


def facts_of(session: Session, beginning: Beginning) -> SessionSummary:
    """What the resume says."""
    block = session.trace.blocks[beginning.block]
    given = resumed.given(block)
    return resumed.parse(given) if given is not None else foreign.parse(block.text)


def by_call(session: Session) -> dict[int, list[int]]:
    """Blocks of the trace by the call that wrote them, or that read them first."""
    memo = session.trace.memo
    if _MEMO not in memo:
        made: dict[int, list[int]] = {}
        for number, block in enumerate(session.trace.blocks):
            at = block.turn if block.role == "assistant" else session.stays[number].came
            made.setdefault(at, []).append(number)
        memo[_MEMO] = made
    found: dict[int, list[int]] = memo[_MEMO]
    return found


def blocks_in(session: Session, first: int, end: int) -> Iterator[tuple[int, Block]]:
    """What a range of calls read first or wrote, `end` excluded."""
    made, blocks = by_call(session), session.trace.blocks
    for turn in range(first, end):
        for number in made.get(turn, ()):
            yield number, blocks[number]


def asked_in(session: Session, beginning: Beginning, end: int) -> list[tuple[int, int]]:
    """What the user asked from the beginning of a window on: the call that reads it, and the number of the block. Short
    words to go on are none, nor is the resume itself."""
    stays = session.stays
    return [
        (stays[number].came, number)
        for number, block in blocks_in(session, beginning.turn, end)
        if block.kind == "user_message"
        and number != beginning.block
        and not block.text.startswith(("[Request interrupted", "<local-command", "<bash-"))
        and not is_go_on(block.text)
        and not foreign.is_foreign(block.text)
    ]
