"""What a session loads again: files and documents of which a call showed nothing that an earlier one had not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of, content_of, in_window

MOST = 20
"""Earlier readings of one target that are compared with, the newest."""
_MEMO = "health.again"


@dataclass(frozen=True, slots=True)
class Again:
    """A call that showed nothing new. target: the file, or the call where it reads no file. first: the earlier call
    whose result holds all of it: one that is still in the window, else the newest. there: whether it is. unsure: a
    command ran in between of which nobody can tell what it changed."""

    call: Call
    target: str
    first: Call
    there: bool
    unsure: bool


def read_again(session: Session) -> list[Again]:
    """Every such call, in order. A change of the file that the session itself made starts anew, and so does any call
    that shows something else: only a passage that stands in one earlier result as it is counts. Worked out once per
    session."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = list(_again(session))
    found: list[Again] = memo[_MEMO]
    return found


def _again(session: Session) -> Iterator[Again]:
    known: dict[str, list[tuple[Call, str]]] = {}
    unsure: set[str] = set()
    for call in calls_of(session):
        for path in call.changes:
            known.pop(path, None)
        if call.alters and not call.changes:
            unsure = set(known)
        target = target_of(call)
        if target is None:
            continue
        shown = content_of(session, call)
        if not shown:
            continue
        earlier = known.setdefault(target, [])
        holders = [before for before, text in earlier if shown in text]
        if holders:
            there = [before for before in holders if in_window(session, before, call.turn)]
            yield Again(call, target, (there or holders)[-1], bool(there), target in unsure)
        earlier.append((call, shown))
        del earlier[:-MOST]
        unsure.discard(target)


def target_of(call: Call) -> str | None:
    """The one thing that a call loads: a file, or for tools that look something up the call itself; None for others,
    and for what failed."""
    if call.failed or call.result is None or call.waits:
        return None
    if len(call.reads) == 1:
        return call.reads[0].path
    if call.kind == "read" and call.does is None and not call.reads:
        return call.key.removeprefix("call ")
    return None


def tokens_of(found: Iterable[Again]) -> int:
    """Tokens that loading again took."""
    return sum(reading.call.tokens for reading in found)
