"""clairvoyant: evicts what the rest of the run would miss least.

Belady, "A study of replacement algorithms for a virtual-storage computer" (1966), for units of unequal size: what a
miss would fetch, per token that staying takes and per turn until then, as rankings for variable object sizes do
(Berger, Beckmann, Harchol-Balter 2018, section 5). Several units may hold the same; the one that is worth most keeps
it, and the others are ranked by the rest of what they hold (the greedy rule for coverage: Nemhauser, Wolsey, Fisher
1978).
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.unit import Trace
from ctxctl.model.window import Window


@POLICIES.register("clairvoyant")
class Clairvoyant(Policy):
    """What is needed least and farthest in the future goes first; it sees the whole recording.

    Complexity: O(n log n) per eviction, and O(atoms still to be used) to look ahead.
    Strength: close to the optimum, at any length.
    Weakness: no agent can do it.
    Fit: a ceiling.
    """

    name = "clairvoyant"
    group = "ceiling"
    needs_recording = True

    def prepare(self, trace: Trace) -> None:
        # per atom the calls that use it, with the unit that a miss would fetch; the next one last
        self._uses: dict[int, list[tuple[int, int]]] = {}
        for turn in reversed(trace.turns):
            for reference in turn.references:
                self._uses.setdefault(reference.atom, []).append((turn.index, reference.smallest))
        self._atoms: list[Sequence[int]] = list(trace.atoms)

    def _needed(self, window: Window, unit: int) -> list[int]:
        """The atoms of a resident unit that are still to be used."""
        now, uses, entries = window.turn, self._uses, window.entries
        found: list[int] = []
        for b in window.units[unit].blocks:
            if b not in entries or entries[b].replaced or not self._atoms[b]:
                continue
            mine: list[int] = []
            for a in self._atoms[b]:
                turns = uses.get(a)
                while turns and turns[-1][0] < now:
                    turns.pop()
                if turns:
                    mine.append(a)
            self._atoms[b] = mine
            found += mine
        return found

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        now, uses, known, sizes, entered = window.turn, self._uses, window.units, window.resident, window.entered
        needed = {u: self._needed(window, u) for u in sizes}
        rest = set(units)
        kept = {a for u in sizes if u not in rest for a in needed[u]}
        taken: set[int] = set()

        def worth(unit: int) -> float:
            fetches = {uses[a][-1] for a in needed[unit] if a not in kept}
            return sum([known[u].tokens / (turn - now + 1) for turn, u in sorted(fetches)]) / max(sizes[unit], 1)

        # what nothing needs goes before all else, the largest first
        scores = {u: -float(sizes[u]) for u in units if not needed[u]}
        ranked = sorted(((worth(u), entered[u], u) for u in units if needed[u]), reverse=True)
        for at_first, _, u in ranked:
            mine = needed[u]
            scores[u] = (at_first if taken.isdisjoint(mine) else worth(u)) or -float(sizes[u])
            kept.update(mine)
            taken.update(mine)
        return [scores[u] for u in units]

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        return {}
