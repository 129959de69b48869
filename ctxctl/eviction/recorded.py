"""recorded: what the agent itself did; the baseline."""

from __future__ import annotations

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.model.edits import Drop, Edits, Replace
from ctxctl.model.unit import CLEARED_TOKENS, Trace
from ctxctl.model.window import Window


@POLICIES.register("recorded")
class Recorded(Policy):
    """The agent's own compactions and clearings, as the transcript shows them; nothing else leaves.

    Complexity: O(1) per turn.
    Strength: what really happened, and what the bill was for.
    Weakness: one policy among many, seldom the best.
    Fit: the baseline of every comparison.
    """

    name = "recorded"
    group = "ceiling"
    ranks = False
    needs_recording = True

    def prepare(self, trace: Trace) -> None:
        self._cuts = dict(trace.recorded)

    def rule(self, window: Window) -> Edits:
        cut = getattr(self, "_cuts", {}).get(window.turn)
        if cut is None:
            return Edits()
        cleared = [
            Replace(b, None, min(CLEARED_TOKENS, window.entries[b].tokens), "cleared by the agent")
            for b in cut.cleared
            if b in window.entries
        ]
        if cut.kept is None:
            return Edits(replaces=cleared, reason="the agent cleared old results")
        gone = [b for b in window.entries if b >= 0 and not cut.stays(b, window.blocks[b].kind)]
        by_unit: dict[int, list[int]] = {}
        for b in gone:
            by_unit.setdefault(window.unit_of[b], []).append(b)
        drops = [
            Drop(unit, tuple(blocks), sum(window.entries[b].tokens for b in blocks), "compacted by the agent")
            for unit, blocks in by_unit.items()
        ]
        return Edits(drops, [c for c in cleared if c.block not in set(gone)], reason="the agent compacted")
