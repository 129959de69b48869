"""Compaction of a window to a target: the cascade first, then eviction of what is still missing (requirement C8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxctl.compaction.base import Scene
from ctxctl.compaction.cascade import Cascade, Step
from ctxctl.eviction.base import Policy
from ctxctl.manager.evictor import Evictor
from ctxctl.model.edits import SUMMARY, Change, Drop, Edits, Outcome
from ctxctl.model.window import Window
from ctxctl.trace.answers import answer_of, is_reply

LAST_RESORT = "unanswered-results"
"""The strategy that may touch what is protected, where the target can't be met otherwise."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did. steps: of the cascade; evicted: units that left beside; floor: tokens that can't leave;
    causes: what holds them, largest first; too_large: units that are larger than the target alone, in words.
    prefix_kept: tokens in front of the first change; freed: tokens; behind: tokens that the next request reads anew."""

    before: int
    after: int
    target: int
    steps: tuple[Step, ...]
    evicted: tuple[Drop, ...]
    floor: int
    causes: tuple[tuple[str, int], ...]
    prefix_kept: int
    too_large: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the window holds no more than the target."""
        return self.after <= self.target

    @property
    def freed(self) -> int:
        """Tokens by which the window became smaller."""
        return self.before - self.after

    def break_even(self, read: float, write: float) -> float | None:
        """Further calls after which breaking the cached prefix has paid (replay.md 1): prices of a cache read and a
        write as multiples of the input price. None when nothing was freed, or reads cost nothing."""
        if self.freed <= 0 or read <= 0:
            return None
        return max(0.0, write - read) * max(0, self.after - self.prefix_kept) / (read * self.freed)


class Compactor:
    """Compacts one window."""

    def __init__(self, window: Window, cascade: Cascade, policy: Policy, size: int) -> None:
        self.window = window
        self._cascade = cascade
        self._evictor = Evictor(window, policy, size, explain=True)
        self._summaries: set[int] = set()

    def run(
        self, names: Sequence[str], scene: Callable[[], Scene], target: int, *, minimum: int = 0, evict: bool = True
    ) -> Compacted:
        """Compact to a target with these steps. evict: whether what they leave missing is evicted."""
        window = self.window
        before, prompt = window.tokens, window.tokens
        window.stable_prefix(prompt)
        steps: list[Step] = []
        evicted: list[Drop] = []
        if before > target:
            steps = self._cascade.run(names, scene(), minimum=minimum)
            for step in steps:
                self._summaries.update(c.block for c in step.edits.replaces if c.kind == SUMMARY)
            if evict and window.tokens > target:
                evicted += self._evictor.evict(target)[0].drops
        if steps or evicted:
            evicted += self._tidy()
        if evict and window.tokens > target:
            steps += self._cascade.run((LAST_RESORT,), scene())
        kept = window.stable_prefix(prompt)
        causes = self._evictor.causes()
        floor = sum(tokens for _, tokens in causes)
        large = tuple(self._evictor.too_large(target)) if window.tokens > target else ()
        return Compacted(before, window.tokens, target, tuple(steps), tuple(evicted), floor, causes, kept, large)

    def _tidy(self) -> list[Drop]:
        """What can't be sent any more: reasoning whose answer left, and answers in front of the first message of the
        user (rule V6)."""
        window = self.window
        drops: list[Drop] = []
        said: dict[str, bool] = {}
        for number in window.entries:
            block = window.block(number)
            if block.response_id is not None:
                said[block.response_id] = said.get(block.response_id, False) or block.kind != "thinking"
        protected = window.protected()
        for unit in sorted(window.thinking):
            response = window.units[unit].response
            if response is not None and not said.get(response, True) and unit not in protected:
                drops.append(self._drop(unit, "its answer left"))
        drops += self._replies()
        for number in sorted(window.entries, key=window.place):
            if number not in window.entries:
                continue
            block = window.block(number)
            if block.kind in ("system", "tool_definitions"):
                continue
            if number in self._summaries or (block.role == "user" and block.call_id is None):
                break
            unit = window.unit_of[number]
            if unit in protected or unit not in window.resident:
                break
            for member in window.together(unit):
                drops.append(self._drop(member, "no message of the user stands before it"))
        return drops

    def _replies(self) -> list[Drop]:
        """Results that name no call and whose answer left: nothing says any more what they reply to (rule V1)."""
        window = self.window
        drops: list[Drop] = []
        protected = window.protected()
        for number in sorted(n for n in window.entries if n >= 0):
            unit = window.unit_of[number]
            if number in self._summaries or unit in protected or unit not in window.resident:
                continue
            if number not in window.entries or not is_reply(window.block(number)):
                continue
            answer = answer_of(window.blocks, number)
            if answer and not any(n in window.entries and n not in self._summaries for n in answer):
                drops.append(self._drop(unit, "the answer that it replies to left"))
        return drops

    def _drop(self, unit: int, reason: str) -> Drop:
        window = self.window
        drop = Drop(unit, tuple(window.present(unit)), window.resident[unit], reason)
        window.apply(Edits((drop,)))
        return drop

    def outcome(self, numbers: Sequence[int], cleared: Sequence[tuple[int, str]] = ()) -> Outcome:
        """The net of everything that was done, in the transcript's own block numbers. numbers: of the window's blocks.
        cleared: blocks of the transcript that hold another text already, with it."""
        window = self.window
        places = sorted(window.entries.values(), key=lambda entry: entry.place)
        live = [entry.number for entry in places if entry.number >= 0]
        there = set(live)
        changed = {
            numbers[n]: Change(window.entries[n].text or "", n in self._summaries)
            for n in live
            if window.entries[n].replaced
        }
        kept = {numbers[n] for n in live}
        for number, text in cleared:
            if number in kept and number not in changed:
                changed[number] = Change(text)
        gone = frozenset(numbers[n] for n in range(len(numbers)) if n not in there)
        return Outcome(tuple(numbers[n] for n in live), gone, changed)
