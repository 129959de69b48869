"""What the exact optimum has to know of a trace: what can't leave at each call, and what could be kept from when to
when.

Taken from the window itself, run through the trace without evicting anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxctl.model.unit import Trace
from ctxctl.model.window import Window


@dataclass(slots=True)
class Item:
    """Blocks of a unit that come and go together; nearly always the whole unit.

    start: the call that reads them first. held: the last call up to which they are protected without a break, start - 1
    when never. end: the call before which the client takes them back. events: calls at which having it matters, or at
    which it may come back, in order.
    """

    unit: int
    start: int
    held: int
    end: int
    tokens: int = 0
    events: list[int] = field(default_factory=list)

    def free(self, call: int) -> bool:
        """Whether it may be away at a call."""
        return self.held < call < self.end and call >= self.start


@dataclass(slots=True)
class Calls:
    """Per call (by its number; 0 is none): tokens of what no policy can evict, units that are protected whatever was
    evicted before, tokens of those items, and the most that all that is protected could hold."""

    fixed: list[int]
    sure: list[set[int]]
    protected: list[int]
    most: list[int]


Holders = dict[int, list[tuple[int, int, int]]]
"""Who holds an atom: (from this call on, until before this one, item)."""


def foreign_blocks(trace: Trace) -> frozenset[int]:
    """What came in only for the agent's own compactions: no other policy would have seen it."""
    return frozenset(b for cut in trace.recorded.values() for b in cut.summary)


def protected_calls(trace: Trace) -> Calls:
    """What can't leave at each call.

    A unit is protected for sure when that does not hang on others which may have left: by itself since it came, or
    bound to such a one by reasoning that is so too.
    """
    window = Window(trace.blocks, trace.unit_of, trace.units, trace.overhead)
    foreign = foreign_blocks(trace)
    found = Calls([0], [set()], [0] * (len(trace.turns) + 1), [0])
    sure: set[int] = set()
    for turn in trace.turns:
        window.turn = turn.index
        for b in turn.leaving:
            if b in window.entries:
                window.drop(b)
        window.grow(turn.unseen)
        came: set[int] = set()
        for b in turn.arrivals:
            if b not in foreign:
                window.enter(b, trace.tokens[b])
                came.add(trace.unit_of[b])
        there = (sure | came) & window.resident.keys()
        held = (window.pending | window.fresh | window.asked) & there
        sure = set(held)
        for unit in window.thinking & there:
            group = there.intersection(window.together(unit))
            if window.anchored(unit) or not held.isdisjoint(group):
                sure |= group
        found.fixed.append(window.overhead + window.hidden + sum(window.fixed.values()))
        found.sure.append(sure)
        found.most.append(sum(window.resident.get(u, 0) for u in window.protected()))
        window.fresh.clear()
    return found


def items_of(trace: Trace, calls: Calls) -> tuple[list[Item], dict[int, list[int]], Holders]:
    """All items, those of each unit, and who holds each atom; the tokens of protected items are added to `calls`."""
    last = len(trace.turns) + 1
    foreign = foreign_blocks(trace)
    leaves = {b: turn.index for turn in reversed(trace.turns) for b in turn.leaving}
    items: list[Item] = []
    by_unit: dict[int, list[int]] = {}
    holders: Holders = {}
    newest: dict[tuple[int, int], int] = {}
    for turn in trace.turns:
        k = turn.index
        for b in turn.arrivals:
            unit = trace.unit_of[b]
            if b in foreign or trace.units[unit].pinned is not None:
                continue
            end = leaves.get(b, last)
            number = newest.get((unit, end))
            if number is None or (items[number].start != k and items[number].held < k - 1):
                held = k - 1
                while held + 1 < end and unit in calls.sure[held + 1]:
                    held += 1
                number = newest[unit, end] = len(items)
                items.append(Item(unit, k, held, end))
                by_unit.setdefault(unit, []).append(number)
            item, tokens = items[number], trace.tokens[b]
            item.tokens += tokens
            for call in range(k, item.held + 1):
                calls.protected[call] += tokens
            for a in trace.atoms[b]:
                holders.setdefault(a, []).append((k, end, number))
    return items, by_unit, holders
