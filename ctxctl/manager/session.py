"""A recorded session, compacted: read, decide, and the draft that its format writes (requirements C7, C8, C16)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import floor

from ctxctl.compaction.base import Scene, Writes, own_target
from ctxctl.compaction.cascade import Cascade, allowed_steps
from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.base import Setting
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.eviction.options import EvictionOptions
from ctxctl.facts.prompts import correction
from ctxctl.facts.session import SessionFacts
from ctxctl.manager.compactor import Compacted, Compactor
from ctxctl.model.edits import Outcome
from ctxctl.model.summary import SessionSummary
from ctxctl.state.noted import Notebook, with_notes
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
    """What became of a session's window. outcome: for its writer, in the transcript's block numbers. facts: what the
    session itself says, without notes from before."""

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
    wanted = own_target(steps, size) or floor(eviction.target * size)
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
        noted: Notebook | None = None,
    ) -> None:
        """noted: notes from before, which the summary tells too."""
        self.live = live
        self._compaction = compaction
        self._eviction = eviction
        self._cleaner = cleaner
        self._helper = helper
        self._recall = recall
        self._facts = self._told = told(facts, live)
        if noted is not None:
            tools = {block.tool_name for block in live.window.blocks if block.tool_name is not None}
            self._told = with_notes(self._facts, noted, tools)

    def run(self, goal: Goal) -> CompactedSession:
        """Compact a copy of the window; the session itself is left as it was."""
        live = self.live
        window = live.window.copy()
        if goal.keep_turns:
            newest = window.turn - 1 - goal.keep_turns  # the window's turn is the call that comes next
            window.kept.update(
                u for u in window.resident if any(window.block(b).turn > newest for b in window.present(u))
            )
        cascade = Cascade(self._compaction, self._cleaner)
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
        return CompactedSession(live, goal, done, outcome, self._facts)


class _Others:
    """Blocks of other conversations in the file, and those that a rewind left behind."""

    def __init__(self, gone: frozenset[int], own: range) -> None:
        self._gone, self._own = gone, own

    def __contains__(self, number: object) -> bool:
        return number in self._gone or (isinstance(number, int) and number >= 0 and number not in self._own)


class _Past:
    """Blocks from before the newest full compaction, and those that a rewind left behind."""

    def __init__(self, gone: frozenset[int], at: int, kept: frozenset[int]) -> None:
        self._gone, self._at, self._kept = gone, at, kept

    def __contains__(self, number: object) -> bool:
        return number in self._gone or (isinstance(number, int) and number < self._at and number not in self._kept)


def told(facts: SessionFacts, live: LiveWindow) -> SessionSummary:
    """What a summary may tell. Files, plan, tests and commits are those of the whole session; what was said counts only
    as far as the window still held it: the agent's own compaction told the rest, and what it let go does not come
    back."""
    gone: Container[int] = live.gone
    if len(live.transcript.conversations) > 1:
        gone = _Others(live.gone, range(live.numbers[0], live.numbers[-1] + 1))
    everything = facts.summary(gone)
    # the newest prompt stays in the window, so that what it corrects is said there
    newest = correction(facts.asked(gone))
    everything = replace(everything, learnings=tuple(t for t in everything.learnings if t != newest))
    cuts = [c for c in live.transcript.compactions if c.kind == "full" and not c.abandoned]
    if not cuts:
        return everything
    said = facts.summary(_Past(live.gone, cuts[-1].at, frozenset(cuts[-1].kept)))
    return replace(
        said,
        learnings=tuple(text for text in said.learnings if text != newest),
        files=everything.files,
        todos=everything.todos,
        tests=everything.tests,
        commits=everything.commits,
        artifacts=everything.artifacts,
        turns=everything.turns,
    )


def lowered(goal: Goal, tokens: int) -> Goal:
    """The same goal with a target lower by so many tokens."""
    return replace(goal, tokens=max(1, goal.tokens - tokens))
