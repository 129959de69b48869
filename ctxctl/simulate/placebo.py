"""Placebo: how often text would be taken for a use of what the agent never saw.

What an agent wrote is held against another run, whose results it can't have read. What is found there by chance (names
that every run of a repository meets, habits of the agent) would be found in its own run by chance as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ctxctl.model.unit import Trace
from ctxctl.simulate.intervals import foreign_blocks
from ctxctl.trace.atoms import call_text, kind_of, lines, words


def placebo(written: Mapping[int, Set[str]], own: Trace, other: Trace) -> float | None:
    """References that an agent's text would have to another run, per reference to its own; None when it has none there.

    written: atoms of each call's answer, by turn (`Traced.written`). A pair of call and atom counts for a run when an
    earlier block of it that may leave holds the atom, no pinned one does, and at most half of all its blocks do; for
    the other run "earlier" is by the number of the call. Left out: repeated calls, which are references by definition,
    error names, which the headline leaves out too, and what the agent's own pinned blocks told it.
    """
    wanted = {a for atoms in written.values() for a in atoms if not a.startswith("call ") and kind_of(a) != "error"}
    mine, told = _first_read(own, wanted)
    theirs, _ = _first_read(other, wanted - told)
    pairs = [(call, a) for call, atoms in written.items() for a in atoms]
    real = sum(mine[a] <= call for call, a in pairs if a in mine)
    chance = sum(theirs[a] <= call for call, a in pairs if a in theirs)
    return chance / real if real else None


def _first_read(trace: Trace, wanted: Set[str]) -> tuple[dict[str, int], set[str]]:
    """The first call that read each atom in a block that may leave, of atoms that can be references; and what pinned
    blocks hold."""
    foreign = foreign_blocks(trace)
    first: dict[str, int] = {}
    count: dict[str, int] = {}
    pinned: set[str] = set()
    read = {b: turn.index for turn in trace.turns for b in turn.arrivals}
    for number, block in enumerate(trace.blocks):
        text = call_text(block.text) if block.kind == "tool_call" else block.text
        found = (words(text) | lines(text)) & wanted
        for a in found:
            count[a] = count.get(a, 0) + 1
        if trace.units[trace.unit_of[number]].pinned is not None:
            pinned |= found
        elif number in read and number not in foreign:
            for a in found:
                first[a] = min(read[number], first.get(a, read[number]))
    most = max(len(trace.blocks), 2)
    return {a: call for a, call in first.items() if a not in pinned and count[a] * 2 <= most}, pinned
