"""Large results of tools, and what later turns used of them, told by atoms (`ctxctl.trace.references`).

That no atom of a result was written again does not prove that nobody looked at it: an agent that reads a file and says
"fine" used it. So whatever hints at a use counts as one: its file named or touched again, several of its words in the
answers right after it, a repeated call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ctxctl.facts import tools
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of, content_of
from ctxctl.model.unit import ANSWER_KINDS

LARGE = 2_000
"""Tokens of a result from which on it counts as large."""
FOLLOWED = 5
"""Requests that must have held it: what was loaded a moment ago may be used yet."""
SAID, SOON = 5, 3
"""Words of a result, new to the session, that so many answers right after it must say to have used it."""
LATER = 10
"""Answers after a result whose words show which lines of it were of use."""
_MEMO, _WORDS = "health.loads", "health.new_words"
SHORTEST = 6
"""Letters of such a word."""
_LETTERS = bytes(c if c >= 128 or chr(c).isalpha() else 32 for c in range(256))


@dataclass(frozen=True, slots=True)
class Load:
    """A large result. held: requests that held it, first and last; atoms: of it, beyond what the call itself named,
    those that a later turn used; touched: its file was read, changed or named again, or words of it were said."""

    call: Call
    tokens: int
    held: tuple[int, int]
    atoms: tuple[str, ...] = ()
    touched: bool = False

    @property
    def used(self) -> bool:
        """Whether anything hints at a use."""
        return bool(self.atoms) or self.touched


def loads_of(session: Session) -> list[Load]:
    """All large results that were held long enough, in order. Worked out once per session."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = _loads(session)
    found: list[Load] = memo[_MEMO]
    return found


def _loads(session: Session) -> list[Load]:
    trace = session.trace
    calls = calls_of(session)
    last = len(trace.turns)
    newest: dict[int, int] = {}
    for turn in trace.turns:
        for reference in turn.references:
            newest[reference.atom] = turn.index
    found = []
    for at, call in enumerate(calls):
        if call.result is None or call.tokens < LARGE or call.failed or call.does in (tools.TODO, tools.ASK):
            continue
        stay = session.stays[call.result]
        until = last if stay.left is None else stay.left - 1
        if until - stay.came + 1 < FOLLOWED:
            continue
        asked = trace.blocks[call.block].text
        used = (trace.names[atom] for atom in trace.atoms[call.result] if newest.get(atom, 0) >= stay.came)
        atoms = tuple(atom for atom in used if atom not in asked and not atom.startswith("call "))
        touched = not atoms and (_touched(session, call, calls[at + 1 :]) or len(_said(session, call, SOON)) >= SAID)
        found.append(Load(call, call.tokens, (stay.came, until), atoms, touched))
    return found


def _touched(session: Session, call: Call, later: Iterable[Call]) -> bool:
    """Whether a file that a call loaded comes up again, in a call or in words."""
    paths = {reading.path for reading in call.reads}
    if not paths:
        return any(other.key == call.key for other in later)
    if any(not paths.isdisjoint((*(r.path for r in other.reads), *other.changes)) for other in later):
        return True
    names = [path.rsplit("/", 1)[-1] for path in paths]
    return any(
        name in block.text
        for block in session.trace.blocks[call.result or 0 :]
        if block.kind in ANSWER_KINDS
        for name in names
    )


def _said(session: Session, call: Call, turns: int) -> set[str]:
    """Words of a result that the answers right after it say, and that nobody but tools had said before. turns: how many
    answers."""
    if call.result is None:
        return set()
    memo, came = session.trace.memo, session.stays[call.result].came
    if _WORDS not in memo:
        memo[_WORDS] = _new_words(session)
    new: dict[int, set[str]] = memo[_WORDS]
    after = set().union(*(new.get(turn, ()) for turn in range(came, came + turns)))
    return after & _words(content_of(session, call)) if after else after


def _new_words(session: Session) -> dict[int, set[str]]:
    """Of each turn the words of its answer that stood in no message before it."""
    known: set[str] = set()
    new: dict[int, set[str]] = {}
    for block in session.trace.blocks:
        if block.kind == "tool_result":
            continue
        fresh = _words(block.text) - known
        known |= fresh
        if block.kind in ANSWER_KINDS:
            new.setdefault(block.turn, set()).update(fresh)
    return new


def _words(text: str) -> set[str]:
    """Words of 6 letters or more, in lower case. By a table over bytes, which takes a tenth of the time of an
    expression."""
    spaced = text.lower().encode("utf-8", "replace").translate(_LETTERS).decode("utf-8", "replace")
    return {word for word in set(spaced.split()) if len(word) >= SHORTEST}


def used_lines(session: Session, load: Load, most: int) -> list[int]:
    """Lines of a result (from 0) that hold an atom which a later turn used, or a word that the answers after it
    said. most: above so many it does not matter which they are."""
    text = content_of(session, load.call)
    ends = [match.start() for match in re.finditer("\n", text)]
    lines: set[int] = set()
    _find(text, load.atoms, ends, lines)
    if len(lines) <= most:
        _find(text.lower(), sorted(_said(session, load.call, LATER)), ends, lines)
    return sorted(lines)


def _find(text: str, wanted: Iterable[str], ends: list[int], lines: set[int]) -> None:
    for piece in wanted:
        at = text.find(piece)
        while at >= 0:
            lines.add(bisect_right(ends, at))
            at = text.find(piece, at + len(piece))
