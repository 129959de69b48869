"""Tiny traces, made from a plain description, and the cheapest way through them by trying every schedule."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.result import Replay
from ctxctl.model.unit import Reference, Trace, Turn, Unit
from ctxctl.simulate.replay import replay

# no package here: test modules find these by this name
sys.modules["tiny_traces"] = sys.modules[__name__]


@dataclass
class Made:
    """A unit to make: calls at which its blocks arrive, with tokens; what it holds; the call before which it leaves."""

    arrives: Sequence[tuple[int, int]]
    atoms: frozenset[int] = frozenset()
    kind: str = "assistant"
    pinned: bool = False
    exchange: int = 0
    response: str | None = None
    leaves: int | None = None

    @property
    def tokens(self) -> int:
        return sum(t for _, t in self.arrives)

    @property
    def first(self) -> int:
        return self.arrives[0][0]


@dataclass
class Case:
    """A trace to make. uses: atoms by call."""

    units: list[Made]
    uses: dict[int, list[int]]
    calls: int
    overhead: int = 0
    unseen: dict[int, int] = field(default_factory=dict)

    def holders(self, atom: int, call: int) -> list[int]:
        return [
            n
            for n, u in enumerate(self.units)
            if atom in u.atoms and u.first <= call and not u.pinned and (u.leaves is None or call < u.leaves)
        ]

    def smallest(self, atom: int, call: int) -> int:
        return min(self.holders(atom, call), key=lambda n: (self.units[n].tokens, self.units[n].first, n))

    def trace(self) -> Trace:
        rows = sorted((call, n, at, t) for n, u in enumerate(self.units) for at, (call, t) in enumerate(u.arrives))
        blocks: list[Block] = []
        of: list[int] = []
        mine: list[list[int]] = [[] for _ in self.units]
        arrivals: list[list[int]] = [[] for _ in range(self.calls)]
        for call, n, at, _ in rows:
            u = self.units[n]
            kind = ("tool_call" if at == 0 else "tool_result") if u.kind == "tool" else u.kind
            mine[n].append(len(blocks))
            arrivals[call - 1].append(len(blocks))
            of.append(n)
            blocks.append(
                Block(f"{len(blocks) + 1}.0", kind, "user", "", call, u.exchange, Source(1), response_id=u.response)
            )
        units = [
            Unit(
                n,
                f"u{n}",
                "tool_result" if u.kind == "tool" else u.kind,
                u.arrives[-1][0],
                tuple(mine[n]),
                u.tokens,
                exchange=u.exchange,
                pinned="task" if u.pinned else None,
                response=u.response,
            )
            for n, u in enumerate(self.units)
        ]
        leaving: dict[int, tuple[int, ...]] = {}
        for n, u in enumerate(self.units):
            if u.leaves is not None:
                leaving[u.leaves] = (*leaving.get(u.leaves, ()), *mine[n])
        turns = [
            Turn(
                k,
                tuple(arrivals[k - 1]),
                leaving.get(k, ()),
                self.unseen.get(k, 0),
                references=tuple(
                    Reference(k, a, "identifier", 1.0, self.smallest(a, k), True, f"a{a}") for a in self.uses.get(k, [])
                ),
            )
            for k in self.span
        ]
        names = [f"a{a}" for a in range(1 + max((a for u in self.units for a in u.atoms), default=0))]
        # a call's request holds nothing, its result does
        atoms = [
            () if b.kind == "tool_call" else tuple(sorted(self.units[n].atoms)) for b, n in zip(blocks, of, strict=True)
        ]
        tokens = [t for *_, t in rows]
        return Trace(None, "-", None, blocks, tokens, of, units, turns, self.overhead, atoms, names)

    @property
    def span(self) -> range:
        return range(1, self.calls + 1)

    def forced(self, call: int) -> set[int]:
        """What may not leave at a call: results that it reads first, calls without one, the newest prompt."""
        exchange = max((u.exchange for u in self.units if u.kind == "user_message" and u.first <= call), default=0)
        found = set()
        for n, u in enumerate(self.units):
            if u.first > call or u.pinned or (u.leaves is not None and u.leaves <= call):
                continue
            last = u.arrives[-1][0]
            if (u.kind in ("tool", "tool_result") and last >= call) or (
                u.kind == "user_message" and u.exchange == exchange
            ):
                found.add(n)
        return found

    def cheapest(self, capacity: int) -> int:
        """By trying every set that could be kept at every call."""
        best: dict[frozenset[int], int] = {frozenset(): 0}
        for call in self.span:
            gone = {n for n, u in enumerate(self.units) if u.leaves is not None and u.leaves <= call}
            came = {n for n, u in enumerate(self.units) if u.first == call and not u.pinned} - gone
            forced = self.forced(call)
            fixed = self.overhead
            for k in range(1, call + 1):
                pinned = sum(t for u in self.units if u.pinned for at, t in u.arrives if at < k)
                fixed = max(-pinned, fixed + self.unseen.get(k, 0))
            fixed += sum(t for u in self.units if u.pinned for k, t in u.arrives if k <= call)
            size = {n: sum(t for k, t in u.arrives if k <= call) for n, u in enumerate(self.units)}
            room = max(capacity, fixed + sum(size[n] for n in forced))
            after: dict[frozenset[int], int] = {}
            for there, cost in best.items():
                pool = (there | came) - gone
                assert forced <= pool
                free = sorted(pool - forced)
                for count in range(len(free) + 1):
                    for kept in combinations(free, count):
                        now = forced | set(kept)
                        if fixed + sum(size[n] for n in now) > room:
                            continue
                        fetched = {
                            self.smallest(a, call)
                            for a in self.uses.get(call, [])
                            if now.isdisjoint(self.holders(a, call))
                        }
                        state = frozenset(now | fetched)
                        total = cost + sum(self.units[n].tokens for n in fetched)
                        if total < after.get(state, total + 1):
                            after[state] = total
            best = after
        return min(best.values())


def run(trace: Trace, policy: str, capacity: int) -> Replay:
    manager = ContextWindowManager(capacity, policy=policy, trace=trace, trigger=1.0, target=1.0)
    return replay(trace, manager)


def held(*atoms: int, at: int, tokens: int = 10, **more: object) -> Made:
    return Made([(at, tokens)], frozenset(atoms), **more)  # type: ignore[arg-type]
