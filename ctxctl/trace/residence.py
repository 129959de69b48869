"""How long each block stayed in the window of the recording itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxctl.model.unit import Trace

Cause = Literal["compacted", "cleared", "taken back"]


@dataclass(frozen=True, slots=True)
class Stay:
    """The stay of one block. came: the first call that reads it. left: the first call that does not any more, None when
    it is still there. cause: `compacted` (a summary took its place), `cleared` (a placeholder did), `taken back` (a
    rewind or rollback)."""

    came: int
    left: int | None = None
    cause: Cause | None = None

    def holds(self, turn: int) -> bool:
        """Whether the request of a call held the block."""
        return self.came <= turn and (self.left is None or turn < self.left)


def stays_of(trace: Trace) -> list[Stay]:
    """The stay of every block of a trace, under what the agent itself did. One that no call has read yet comes with the
    call behind the last one."""
    came = [len(trace.turns) + 1] * len(trace.blocks)
    left: dict[int, tuple[int, Cause]] = {}
    resident: dict[int, None] = {}

    def cut_before(index: int) -> None:
        cut = trace.recorded.get(index)
        if cut is None:
            return
        for b in [b for b in resident if not cut.stays(b, trace.blocks[b].kind)]:
            del resident[b]
            # what arrives with a compaction and does not outlive it was never sent
            left[b] = index, "compacted"
        for b in cut.cleared:
            if resident.pop(b, 0) is None:
                left[b] = index, "cleared"

    for turn in trace.turns:
        for b in turn.leaving:
            if resident.pop(b, 0) is None:
                left[b] = turn.index, "taken back"
        for b in turn.arrivals:
            came[b] = turn.index
            resident[b] = None
        cut_before(turn.index)
    behind = len(trace.turns) + 1
    if behind in trace.recorded:  # no call was made since
        resident.update((b, None) for b, turn_ in enumerate(came) if turn_ == behind)
        cut_before(behind)
    return [Stay(came[b], *left.get(b, (None, None))) for b in range(len(trace.blocks))]
