"""What calls paid for blocks that were never used again (requirement B5).

At each call the money of its prompt is shared out over what the prompt held, token by token: the system prompt and
tools in front, then the blocks in their order. The first tokens, as many as the cache served, cost what a cache read
does, the others the mean of what was read anew and stored. Counted is what went to blocks that could have left (tool
calls and their results, media, injected memory, reasoning; not what is pinned) and that no answer, of this call or of a
later one that still held them, used. The call that reads a block first counts as a use. A block is used where an answer
refers to something that it holds (`ctxctl.trace.references`); an answer can rest on a text without repeating any of it,
so the figure is an upper bound of what could have been saved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from ctxctl.budgets.cost import Prices, prices_of
from ctxctl.model.limits import ModelRow
from ctxctl.model.unit import Trace
from ctxctl.model.usage import Usage
from ctxctl.trace.residence import Stay

EVICTABLE = frozenset(("tool_call", "tool_result", "image", "document", "memory_injection", "thinking"))
"""Kinds of blocks that a session can do without."""


class _Sums:
    """Tokens by block number, with sums up to one (a binary indexed tree: Fenwick 1994)."""

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)
        self._top = 1 << max(0, size.bit_length() - 1) if size else 0
        self.total = 0

    def add(self, number: int, tokens: int) -> None:
        self.total += tokens
        at = number + 1
        while at < len(self._tree):
            self._tree[at] += tokens
            at += at & -at

    def before(self, number: int) -> int:
        """Tokens of all blocks of lower numbers."""
        total, at = 0, number
        while at > 0:
            total += self._tree[at]
            at -= at & -at
        return total

    def within(self, tokens: float) -> int:
        """The first block that does not end within the first so many tokens; the number of blocks when all do."""
        at, left, step = 0, tokens, self._top
        while step:
            if at + step < len(self._tree) and self._tree[at + step] <= left:
                at += step
                left -= self._tree[at]
            step >>= 1
        return at


def last_uses(trace: Trace, stays: Sequence[Stay]) -> list[int]:
    """The last call that used each block while it was held; the call that reads it first counts as one."""
    turns_of: dict[int, list[int]] = {}
    for turn in trace.turns:
        for reference in turn.references:
            found = turns_of.setdefault(reference.atom, [])
            if not found or found[-1] != turn.index:
                found.append(turn.index)
    last = []
    for block, stay in enumerate(stays):
        newest = stay.came
        for atom in trace.atoms[block] if block < len(trace.atoms) else ():
            used = turns_of.get(atom, [])
            at = len(used) if stay.left is None else bisect_left(used, stay.left)
            if at:
                newest = max(newest, used[at - 1])
        last.append(newest)
    return last


def unreferenced_cost(trace: Trace, stays: Sequence[Stay], row_of: Callable[[Usage], ModelRow | None]) -> float | None:
    """USD that calls of the main thread paid for blocks that were never used again; None when no call that reports its
    usage has a price. See the head of this module for what counts."""
    count = len(trace.blocks)
    held, idle = _Sums(count), _Sums(count)
    coming: dict[int, list[int]] = {}
    idling: dict[int, list[int]] = {}
    leaving: dict[int, list[int]] = {}
    uses = last_uses(trace, stays)
    for b, stay in enumerate(stays):
        if stay.left is not None and stay.left <= stay.came:
            continue  # never sent
        coming.setdefault(stay.came, []).append(b)
        if stay.left is not None:
            leaving.setdefault(stay.left, []).append(b)
        evictable = trace.blocks[b].kind in EVICTABLE and trace.units[trace.unit_of[b]].pinned is None
        if evictable and (stay.left is None or uses[b] + 1 < stay.left):
            idling.setdefault(uses[b] + 1, []).append(b)
    spent, any_call = 0.0, False
    away: set[int] = set()
    idle_now: set[int] = set()
    for turn in trace.turns:
        now = turn.index
        for b in leaving.get(now, ()):
            held.add(b, -trace.tokens[b])
            away.add(b)
            if b in idle_now:
                idle_now.discard(b)
                idle.add(b, -trace.tokens[b])
        for b in coming.get(now, ()):
            held.add(b, trace.tokens[b])
        for b in idling.get(now, ()):
            if b not in away:
                idle_now.add(b)
                idle.add(b, trace.tokens[b])
        usage = turn.usage
        if usage is None or not usage.reported or not usage.prompt:
            continue
        row = row_of(usage)
        prices = prices_of(row, usage.prompt) if row is not None else None
        if prices is None:
            continue
        any_call = True
        spent += _of_call(usage, prices, trace, held, idle)
    return spent if any_call else None


def _of_call(usage: Usage, prices: Prices, trace: Trace, held: _Sums, idle: _Sums) -> float:
    """USD of one call for idle blocks."""
    known = trace.overhead + held.total
    front = trace.overhead + max(0, usage.prompt - known)
    scale = min(1.0, usage.prompt / known) if known else 1.0
    cached_blocks = max(0.0, usage.cache_read / scale - front)
    edge = held.within(cached_blocks)
    cached = float(idle.before(edge))
    if edge < len(trace.blocks):
        own = idle.before(edge + 1) - idle.before(edge)
        if own:  # a block across the edge of the cached prefix
            cached += min(own, cached_blocks - held.before(edge))
    fresh = usage.input + usage.cache_write
    hour = min(usage.cache_write_1h, usage.cache_write)
    anew = usage.input * prices.input + (usage.cache_write - hour) * prices.write + hour * prices.write_1h
    each = anew / fresh if fresh else prices.input
    return scale * (cached * prices.read + (idle.total - cached) * each) / 1e6
