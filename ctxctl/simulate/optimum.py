"""The exact optimum: the fewest tokens that evicting whole units at a budget makes one fetch again.

An integer program over keep-intervals, as for caches of objects of unequal size (Berger, Beckmann, Harchol-Balter,
"Practical bounds on optimal caching with variable object sizes", 2018), solved by HiGHS through `scipy.optimize.milp`.

It follows the replay: after the eviction before call k a set of units is resident that fits the window and holds all
that is protected; a reference is a hit when a resident unit holds its atom, else its smallest unit is fetched again,
once per call, and may stay from the next call on. Nothing else brings a unit back. Where the replay ties units together
(reasoning with its calls, blocks that come late to a unit that has left) the program leaves them apart, so that its
result is never above what a policy reaches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from ctxctl.model.unit import Trace
from ctxctl.simulate.intervals import Calls, Item, items_of, protected_calls


@dataclass(frozen=True, slots=True)
class Optimum:
    """Proven: no schedule fetches less. refetched, demand: tokens, as in `Replay`. hits, misses: references of one
    schedule that reaches it; others may share them out otherwise. seconds: what building and solving took."""

    capacity: int
    refetched: int
    demand: int
    hits: int
    misses: int
    seconds: float

    @property
    def miss_ratio(self) -> float | None:
        """Tokens fetched again / tokens demanded; None without demand."""
        return self.refetched / self.demand if self.demand else None


def optimum(trace: Trace, capacity: int, *, most_blocks: int = 2000, time_limit: float = 30.0) -> Optimum | str:
    """The optimum at a window of `capacity` tokens, all of which may be used; or why there is none: scipy is missing,
    more than `most_blocks` blocks, or not proven within `time_limit` seconds."""
    began = perf_counter()
    if len(trace.blocks) > most_blocks:
        return f"{len(trace.blocks):,} blocks; the optimum is computed for at most {most_blocks:,}"
    demand = sum(trace.units[u].tokens for turn in trace.turns for u in {r.smallest for r in turn.references})
    program = _Program()
    program.build(trace, capacity)
    if not program.fetches:
        return Optimum(capacity, 0, demand, program.hits, 0, perf_counter() - began)
    try:
        x = program.solve(time_limit)
    except ImportError:
        return "scipy is not installed: pip install 'ctxctl[optimum]'"
    if x is None:
        return f"not proven within {time_limit:g} s"
    refetched = sum(trace.units[unit].tokens for (unit, _), v in program.fetches.items() if x[v] > 0.5)
    misses = sum(count for count, kept in program.wanted if all(x[v] < 0.5 for v in kept))
    hits = program.hits + sum(count for count, _ in program.wanted) - misses
    return Optimum(capacity, refetched, demand, hits, misses, perf_counter() - began)


@dataclass(slots=True)
class _Program:
    """The integer program: minimise costs @ x over 0/1 variables, lower <= matrix @ x <= upper.

    fetches: variable of each (unit, call) that may fetch. wanted: references that have the same holders, how many, and
    the variables that say whether one of those is there. hits: references that find a protected unit.
    """

    costs: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    fetches: dict[tuple[int, int], int] = field(default_factory=dict)
    wanted: list[tuple[int, list[int]]] = field(default_factory=list)
    hits: int = 0
    kept: list[range] = field(default_factory=list)

    def _variable(self, cost: float = 0.0) -> int:
        self.costs.append(cost)
        return len(self.costs) - 1

    def _row(
        self, terms: Sequence[tuple[int, float]], lower: float = float("-inf"), upper: float = float("inf")
    ) -> None:
        number = len(self.lower)
        for column, value in terms:
            self.rows.append(number)
            self.columns.append(column)
            self.values.append(value)
        self.lower.append(lower)
        self.upper.append(upper)

    def build(self, trace: Trace, capacity: int) -> None:
        calls = protected_calls(trace)
        items, by_unit, holders = items_of(trace, calls)
        # per call and unit that a miss would fetch: the sets of items that would spare it, with how many references
        needs: list[tuple[int, int, dict[tuple[int, ...], int]]] = []
        for turn in trace.turns:
            k = turn.index
            by_smallest: dict[int, dict[tuple[int, ...], int]] = {}
            for r in turn.references:
                there = {i for first, end, i in holders.get(r.atom, ()) if first <= k < end}
                if any(k <= items[i].held for i in there):
                    self.hits += 1
                    continue
                sets = by_smallest.setdefault(r.smallest, {})
                key = tuple(sorted(there))
                sets[key] = sets.get(key, 0) + 1
            for unit, sets in by_smallest.items():
                needs.append((k, unit, sets))
                back = (i for i in by_unit.get(unit, ()) if items[i].free(k))
                for i in {i for key in sets for i in key}.union(back):
                    if items[i].events[-1:] != [k]:
                        items[i].events.append(k)
        for item in items:
            self.kept.append(range(len(self.costs), len(self.costs) + len(item.events)))
            self.costs.extend(0.0 for _ in item.events)
        for k, unit, sets in needs:
            self._need(k, unit, float(trace.units[unit].tokens), sets, items)
        for item, kept in zip(items, self.kept, strict=True):
            for before, now, event in zip(kept, kept[1:], item.events, strict=False):
                fetch = self.fetches.get((item.unit, event))
                self._row([(now, 1.0), (before, -1.0), *([] if fetch is None else [(fetch, -1.0)])], upper=0.0)
        self._fit(capacity, calls, items)

    def _need(self, k: int, unit: int, cost: float, sets: dict[tuple[int, ...], int], items: list[Item]) -> None:
        """A call that does not find an atom fetches the unit, and one that finds all of them does not."""
        fetch = self.fetches[unit, k] = self._variable(cost)
        missed: list[int] = []
        for key, count in sets.items():
            there = [self.kept[i][bisect_left(items[i].events, k)] for i in key]
            self.wanted.append((count, there))
            self._row([(fetch, 1.0), *((v, 1.0) for v in there)], lower=1.0)
            miss = fetch if len(sets) == 1 else self._variable()
            missed.append(miss)
            for v in there:
                self._row([(miss, 1.0), (v, 1.0)], upper=1.0)
        if len(sets) > 1:
            self._row([(fetch, 1.0), *((m, -1.0) for m in missed)], upper=0.0)

    def _fit(self, capacity: int, calls: Calls, items: list[Item]) -> None:
        """What is kept fits the window at every call; where what is protected is more, the window is that large."""
        spans: list[list[tuple[int, float]]] = [[] for _ in calls.fixed]
        for item, kept in zip(items, self.kept, strict=True):
            first = max(item.start, item.held + 1)
            for variable, event in zip(kept, item.events, strict=True):
                for k in range(first, event + 1):
                    spans[k].append((variable, float(item.tokens)))
                first = event + 1
        for k, terms in enumerate(spans):
            room = max(capacity - calls.fixed[k], calls.most[k]) - calls.protected[k]
            if sum(tokens for _, tokens in terms) > room:
                self._row(terms, upper=float(room))

    def solve(self, time_limit: float) -> Any:
        """The variables of an optimum, None when time ran out. Raises ImportError without scipy."""
        import numpy
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        shape = len(self.lower), len(self.costs)
        matrix = csr_array((self.values, (self.rows, self.columns)), shape=shape)
        solved = milp(
            numpy.array(self.costs),
            integrality=numpy.ones(len(self.costs)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, self.lower, self.upper),
            # taking back presolved solutions HiGHS writes to stdout, whatever it is told, and it is no faster for them
            options={"mip_rel_gap": 0.0, "time_limit": time_limit, "presolve": False},
        )
        return solved.x if solved.status == 0 else None
