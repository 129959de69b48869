"""A recorded session, compacted: read, decide, and the draft that its format writes (requirements C7, C8, C16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor

from ctxctl.compaction.base import Scene, Writes
from ctxctl.compaction.cascade import Cascade, allowed_steps
from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.base import Setting
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.eviction.options import EvictionOptions
from ctxctl.facts.session import SessionFacts
from ctxctl.manager.compactor import Compacted, Compactor
from ctxctl.model.edits import Note, Outcome
from ctxctl.model.summary import SessionSummary
from ctxctl.trace.live import LiveWindow

DEFAULT_STEPS = ("tool-results", "progressive", "conversation")
"""Steps towards a target that was asked for: all of them may be needed, and a step that has nothing to do costs
nothing. Delegation is for what can be isolated, not for a size."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How small. tokens: the target; size: tokens of the model's window; steps: strategies in their order; minimum:
    tokens that a step must free; evict: whether the rest is evicted; keep_turns: newest turns that stay as they are."""

    tokens: int
    size: int
    steps: tuple[str, ...]
    minimum: int = 0
    evict: bool = True
    keep_turns: int = 0


@dataclass(frozen=True, slots=True)
class CompactedSession:
    """What became of a session's window. outcome: for its writer, in the transcript's block numbers."""

    live: LiveWindow
    goal: Goal
    compacted: Compacted
    outcome: Outcome
    facts: SessionSummary


def goal_of(
    size: int,
    live_tokens: int,
    compaction: CompactionOptions,
    eviction: EvictionOptions,
    *,
    target: int | None = None,
    steps: Sequence[str] = (),
    evict: bool = True,
    keep_turns: int = 0,
) -> Goal:
    """What to do. Without a target the settings decide: the cascade at its thresholds, down to `eviction.target`."""
    if target is not None:
        return Goal(target, size, tuple(steps) or DEFAULT_STEPS, 0, evict, keep_turns)
    allowed = tuple(steps) or tuple(allowed_steps(compaction, live_tokens / size))
    wanted = floor(eviction.target * size)
    return Goal(
        wanted if allowed else live_tokens,
        size,
        allowed,
        compaction.minimum_saving,
        evict and bool(allowed),
        keep_turns,
    )


class SessionCompactor:
    """Compacts one session, as often as it takes to meet the target in the file that is written."""

    def __init__(
        self,
        live: LiveWindow,
        facts: SessionFacts,
        compaction: CompactionOptions,
        eviction: EvictionOptions,
        *,
        cleaner: Cleaner,
        helper: Writes | None = None,
        recall: str = "",
        keep_notes: Callable[[Sequence[Note]], None] | None = None,
    ) -> None:
        self.live = live
        self._compaction = compaction
        self._eviction = eviction
        self._cleaner = cleaner
        self._helper = helper
        self._recall = recall
        self._keep_notes = keep_notes
        self._told = facts.summary(live.gone)

    def run(self, goal: Goal) -> CompactedSession:
        """Compact a copy of the window; the session itself is left as it was."""
        live = self.live
        window = live.window.copy()
        if goal.keep_turns:
            newest = window.turn - 1 - goal.keep_turns  # the window's turn is the call that comes next
            window.kept.update(
                u for u in window.resident if any(window.block(b).turn > newest for b in window.present(u))
            )
        cascade = Cascade(self._compaction, self._cleaner, self._keep_notes)
        setting = Setting(goal.size, live.count, self._eviction)
        compactor = Compactor(window, cascade, Hybrid(setting), goal.size)
        utilization = window.tokens / goal.size

        def scene() -> Scene:
            return Scene(
                window,
                goal.tokens,
                goal.size,
                live.count,
                lambda: self._told,
                self._compaction,
                self._helper,
                self._cleaner,
                live.frame,
                live.framed,
                self._recall,
                utilization,
            )

        done = compactor.run(goal.steps, scene, goal.tokens, minimum=goal.minimum, evict=goal.evict)
        window.check()
        transcript = live.transcript
        cleared = [
            (number, block.text)
            for number, block in zip(live.numbers, live.window.blocks, strict=True)
            if number in transcript.cleared
        ]
        outcome = compactor.outcome(live.numbers, cleared)
        return CompactedSession(live, goal, done, outcome, self._told)


def lowered(goal: Goal, tokens: int) -> Goal:
    """The same goal with a target lower by so many tokens."""
    return replace(goal, tokens=max(1, goal.tokens - tokens))
