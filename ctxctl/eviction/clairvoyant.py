"""clairvoyant: evicts what is needed farthest in the future.

Belady, "A study of replacement algorithms for a virtual-storage computer" (1966), with sizes: distance times tokens, as
caches of objects of unequal size rank it (Berger, Beckmann, Harchol-Balter 2018, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.unit import Trace
from ctxctl.model.window import Window


@POLICIES.register("clairvoyant")
class Clairvoyant(Policy):
    """What is needed farthest in the future goes first, larger units before smaller; it sees the whole recording.

    Complexity: O(n log n) per eviction, and O(atoms) to look ahead.
    Strength: close to the optimum, at any length.
    Weakness: no agent can do it.
    Fit: a ceiling.
    """

    name = "clairvoyant"
    group = "ceiling"

    def prepare(self, trace: Trace) -> None:
        self._end = len(trace.turns) + 1
        uses: dict[int, list[int]] = {}
        for turn in trace.turns:
            for reference in turn.references:
                uses.setdefault(reference.atom, []).append(turn.index)
        for turns in uses.values():
            turns.reverse()
        self._uses = uses
        self._atoms = trace.atoms
        self._now = 0

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        now, uses, atoms, end = window.turn, self._uses, self._atoms, self._end
        sizes, known, entries = window.resident, window.units, window.entries
        # an atom that several resident units hold is lost only with the last of them: the newest one is to keep it
        keeper: dict[int, int] = {}
        nearest: dict[int, int] = {}
        for u in units:
            for b in known[u].blocks:
                if b in entries and not entries[b].replaced:
                    for a in atoms[b]:
                        keeper[a] = u
        for a, u in keeper.items():
            turns = uses[a]
            while turns and turns[-1] < now:
                turns.pop()
            if turns and turns[-1] < nearest.get(u, end):
                nearest[u] = turns[-1]
        scores = []
        for u in units:
            use = nearest.get(u)
            distance = end * 2 if use is None else use - now + 1
            scores.append(-float(distance) * sizes[u])
        return scores

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        return {}
