"""`ContextWindowManager`: the one engine, live in an agent loop and fed by a recorded transcript alike (requirement
M1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import floor

from ctxctl.eviction.base import Policy, Setting, roughly
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.specs import Spec, policy_of
from ctxctl.manager.ledger import Ledger
from ctxctl.manager.options import ManagerOptions
from ctxctl.model.edits import Drop, Edits
from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.model.unit import Trace
from ctxctl.model.window import Decision, Window
from ctxctl.pressure.monitor import ContextPressureMonitor
from ctxctl.pressure.options import PressureOptions, PressureThresholds

NOTHING = Edits()


class ContextWindowManager:
    """Keeps a window within its limit.

    An agent loop calls `add` and `tool_result` for what comes in, `turn_start` before each model call, `turn_end` after
    it, and `overflow` when the provider refused a request as too long. Decisions are data: what was done and why.

    window: tokens of the model's window. policy: a name, a spec (`mask:keep=10`) or a policy. trigger: utilization from
    which on it evicts (default: the orange threshold, or the watermark where `act_at` says so). target: utilization
    that it evicts down to. count: tokens of a text of some kind. trace: of a recorded session, whose blocks then come
    in by number. explain: whether drops carry the parts of their score.
    """

    def __init__(
        self,
        window: int = DEFAULT_WINDOW,
        *,
        policy: str | Spec | Policy = "hybrid",
        trigger: float | None = None,
        target: float | None = None,
        thresholds: PressureThresholds | None = None,
        pressure: PressureOptions | None = None,
        eviction: EvictionOptions | None = None,
        options: ManagerOptions | None = None,
        count: Callable[[str, str], int] = roughly,
        trace: Trace | None = None,
        overhead: int = 0,
        explain: bool = True,
    ) -> None:
        self.size = window
        self.thresholds = thresholds or PressureThresholds()
        pressure = pressure or PressureOptions()
        self.eviction = eviction or EvictionOptions()
        self.options = options or ManagerOptions()
        self.explain = explain
        setting = Setting(window, count, self.eviction)
        self.policy = policy if isinstance(policy, Policy) else policy_of(policy, setting)
        at = self.thresholds.orange if pressure.act_at == "orange" else pressure.watermark
        self.trigger = at if trigger is None else trigger
        self.target = min(self.eviction.target if target is None else target, self.trigger)
        self.monitor = ContextPressureMonitor(window, thresholds=self.thresholds, options=pressure)
        self._ledger = Ledger(self.eviction, count) if trace is None else None
        source = self._ledger or trace
        assert source is not None
        self.window = Window(
            source.blocks, source.unit_of, source.units, trace.overhead if trace is not None else overhead
        )
        self._tokens: Sequence[int] = source.tokens
        self._arrived = self.window.overhead
        self._floor_said = 0
        self._edits = NOTHING
        self._freed = 0
        self._credits: deque[tuple[int, Sequence[tuple[int, int]]]] = deque()
        self._came: set[int] = set()

    @property
    def turn(self) -> int:
        """The call that comes next."""
        return self.window.turn

    # what comes in

    def enter(self, number: int) -> None:
        """A block of the trace, or one that was just added, comes into the window."""
        window, policy = self.window, self.policy
        tokens = self._tokens[number]
        self._came.add(number)
        window.enter(number, tokens)
        change = policy.record(window, number)
        if change is not None:
            self._early(Edits(replaces=(change,)))
            tokens = change.tokens
        self._arrived += tokens
        if policy.at_each_add:
            self._early(policy.rule(window))

    def _early(self, edits: Edits) -> None:
        """Edits before the next turn starts; its decision reports them."""
        if edits:
            before = self.window.tokens
            self.window.apply(edits)
            self._edits = _joined(self._edits, edits)
            self._freed += before - self.window.tokens

    def add(
        self,
        kind: str,
        text: str,
        *,
        role: str | None = None,
        tool_name: str | None = None,
        call_id: str | None = None,
        target: str | None = None,
        is_error: bool = False,
    ) -> str:
        """A block comes in: a system prompt, a user message, injected memory. Returns its id."""
        if self._ledger is None:
            raise ValueError("a manager over a recorded trace takes its blocks by number")
        number = self._ledger.add(
            kind, text, self.turn, role, tool_name=tool_name, call_id=call_id, target=target, is_error=is_error
        )
        self.enter(number)
        return self._ledger.blocks[number].id

    def tool_result(self, text: str, *, call_id: str, is_error: bool = False, target: str | None = None) -> str:
        """The result of a call: counted and registered as it is. It stays until a model call has answered it."""
        return self.add("tool_result", text, role="tool", call_id=call_id, is_error=is_error, target=target)

    # the four hooks

    def turn_start(self) -> Decision:
        """Before a model call: decide by the configured thresholds, carry it out, and recompute the window."""
        window, policy = self.window, self.policy
        policy.follow(window)
        self._early(policy.rule(window))
        edits, before = self._edits, window.tokens + self._freed
        self._edits, self._freed = NOTHING, 0
        reasons: tuple[str, ...] = (edits.reason,) if edits else ()
        utilization = window.tokens / self.size
        action = self._action(utilization)
        floor_: int | None = None
        causes: tuple[tuple[str, int], ...] = ()
        if action in ("act", "forced", "emergency") and policy.ranks:
            evicted, floor_, causes = self._evict(floor(self.target * self.size))
            reasons = (*reasons, f"utilization {utilization:.2f}")
            if evicted:
                edits = _joined(edits, evicted)
        elif not policy.ranks:
            if policy.limit is not None:
                floor_, causes = self._floor(policy.limit)
            kept = action == "evaluate" or floor_ is not None
            action = "act" if edits else action if kept else "none"
        elif edits and action in ("none", "evaluate"):
            action = "act"
        if floor_ is not None:
            reasons = (*reasons, *self._too_large(self.size if policy.limit is None else policy.limit))
        reading = self.monitor.update(
            window.tokens,
            added=self._arrived,
            turn=window.turn,
            source="counted",
            compaction="micro" if edits else None,
        )
        self._arrived = 0
        return Decision(action, window.turn, before, window.tokens, reading.level or "", edits, reasons, floor_, causes)

    def turn_end(
        self,
        text: str = "",
        *,
        calls: Sequence[tuple[str, str, str]] = (),
        thinking: str = "",
        prompt: int | None = None,
        output: int = 0,
        credits: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """After a model call: its answer comes in, and the units that it used are credited.

        calls: (id, tool, arguments). prompt, output: tokens of the request and its answer as the provider reported
        them; what was counted too little or too much of the prompt is put down to the overhead. credits: (unit,
        times) when they are known from a recording.
        """
        window = self.window
        if prompt is not None:
            window.settle(prompt)
        now = window.turn
        if self._ledger is not None:
            credits = self._ledger.credits(text, calls)
        self._credit(credits or ())
        window.fresh.clear()
        window.prompt, window.output = window.tokens, output
        window.last_time = window.time if window.time is not None else window.last_time
        window.turn = now + 1
        if self._ledger is not None:
            for number in self._ledger.answer(text, calls, thinking, now):
                self.enter(number)

    def _credit(self, credits: Sequence[tuple[int, int]]) -> None:
        """References count for some turns, so that what was used a lot long ago does not stay for ever."""
        references, used, now = self.window.references, self.window.used, self.window.turn
        for unit, times in credits:
            references[unit] = references.get(unit, 0) + times
            used[unit] = now
        self._credits.append((now, credits))
        while self._credits and self._credits[0][0] <= now - self.eviction.reference_turns:
            for unit, times in self._credits.popleft()[1]:
                references[unit] -= times

    def overflow(self) -> Decision:
        """The provider refused the request as too long: evict to the target whatever the level says."""
        window = self.window
        before = window.tokens
        evicted, floor_, causes = self._evict(min(floor(self.target * self.size), floor(before * self.target)))
        return Decision(
            "emergency",
            window.turn,
            before,
            window.tokens,
            self.thresholds.level(window.tokens / self.size),
            evicted,
            ("the provider refused the request as too long",),
            floor_,
            causes,
        )

    def restore(self, unit: int) -> int:
        """A unit that was evicted or replaced comes in again as it was, at the end of the window; returns its tokens.
        Blocks of it that are yet to come, or that the client took back, stay away."""
        window = self.window
        came = 0
        for number in window.units[unit].blocks:
            if number not in self._came:
                continue
            if number in window.entries:
                if not window.entries[number].replaced:
                    continue
                window.detach(number)
            self.enter(number)
            came += self._tokens[number]
        window.fresh.discard(unit)
        return came

    def leave(self, numbers: Sequence[int]) -> int:
        """The client itself took blocks back (a rewind); returns their tokens."""
        self._came.difference_update(numbers)
        return sum(self.window.drop(b) for b in numbers if b in self.window.entries)

    # deciding

    def _action(self, utilization: float) -> str:
        if utilization >= self.trigger:
            if utilization >= max(self.options.emergency, self.thresholds.red):
                return "emergency"
            return "forced" if utilization >= self.thresholds.red else "act"
        return "evaluate" if utilization >= self.thresholds.yellow else "none"

    def ranking(self) -> list[Drop]:
        """Every unit that may leave now, the first to go first, with its score and the parts of it; nothing changes."""
        return [drop for group in self._ranked(self.window.protected()) for drop in self._drops(group, explain=True)]

    def _ranked(self, protected: set[int]) -> list[tuple[float, tuple[int, ...]]]:
        """Groups of units that leave together with their score, the lowest first; ties by age, then by number."""
        window, policy = self.window, self.policy
        units = [u for u in window.resident if u not in protected] if protected else list(window.resident)
        scores, ties = policy.score(window, units), policy.ties(window, units)
        groups = [g for g in window.bound() if protected.isdisjoint(g)] if window.thinking else []
        if not groups:
            return [(s, (u,)) for s, _, u in sorted(zip(scores, ties, units, strict=True))]
        of = dict(zip(units, zip(scores, ties, strict=True), strict=True))
        rows: list[tuple[float, int, tuple[int, ...]]] = []
        for group in groups:
            marks = [of.pop(u) for u in group]
            rows.append((max(s for s, _ in marks), max(t for _, t in marks), group))
        rows += [(s, t, (u,)) for u, (s, t) in of.items()]
        return [(s, group) for s, _, group in sorted(rows)]

    def _drops(self, ranked: tuple[float, tuple[int, ...]], *, explain: bool) -> list[Drop]:
        window, policy = self.window, self.policy
        score, group = ranked
        parts = None
        if explain:  # of the member whose score is the group's
            parts = max((policy.parts(window, unit) for unit in group), key=lambda p: sum(p.values()))
        return [
            Drop(
                unit,
                tuple(window.present(unit)),
                window.resident[unit],
                policy.reason or policy.name,
                score,
                parts,
            )
            for unit in group
        ]

    def _evict(self, target: int) -> tuple[Edits, int | None, tuple[tuple[str, int], ...]]:
        """Merge what loses nothing, then evict from the lowest score up until the window holds no more than the
        target."""
        window = self.window
        if window.tokens <= target:
            return NOTHING, None, ()
        merged = self.policy.merge(window, window.protected())
        if merged:
            window.apply(merged)
        drops = window.spare(window.tokens - target)
        left = window.tokens - target - sum(drop.tokens for drop in drops)
        if left > 0:
            for ranked in self._ranked(window.protected()):
                for drop in self._drops(ranked, explain=self.explain):
                    drops.append(drop)
                    left -= drop.tokens
                if left <= 0:
                    break
        window.apply(Edits(drops))
        return (_joined(merged, Edits(drops)), *self._floor(target))

    def _floor(self, target: float) -> tuple[int | None, tuple[tuple[str, int], ...]]:
        """What stays above a target and what holds it. It is said once, and once more when it passes the window."""
        tokens = self.window.tokens
        missed = 0 if tokens <= target else 1 if tokens <= self.size else 2
        said, self._floor_said = self._floor_said, max(missed, self._floor_said if missed else 0)
        return (tokens, self.causes()) if missed > said else (None, ())

    def _too_large(self, limit: float) -> list[str]:
        """Units that stay although nothing else would fit beside them."""
        window = self.window
        sizes = [(u, window.resident.get(u, 0)) for u in sorted(window.protected())] + list(window.fixed.items())
        return [
            f"block {window.units[u].id} of {tokens:,} tokens is larger than the limit of {limit:,.0f}"
            for u, tokens in sizes
            if tokens > limit
        ]

    def causes(self) -> tuple[tuple[str, int], ...]:
        """What can't leave now, and its tokens, the largest first."""
        window = self.window
        found: dict[str, int] = {"system prompt and tools (not in the file)": window.overhead}
        for unit, tokens in window.fixed.items():
            reason = window.units[unit].pinned or ""
            found[reason] = found.get(reason, 0) + tokens
        for unit in window.protected():
            if unit in window.resident:
                reason = (
                    "calls without a result"
                    if unit in window.pending
                    else "results not answered yet"
                    if unit in window.fresh
                    else "current exchange"
                )
                found[reason] = found.get(reason, 0) + window.resident[unit]
        found["summaries and stand-ins"] = sum(e.tokens for number, e in window.entries.items() if number < 0)
        return tuple(sorted(((k, v) for k, v in found.items() if v), key=lambda item: -item[1]))


def _joined(one: Edits, other: Edits) -> Edits:
    if not one:
        return other
    if not other:
        return one
    later = {b for drop in other.drops for b in drop.blocks} | {change.block for change in other.replaces}
    return Edits(
        (*one.drops, *other.drops),
        (*(change for change in one.replaces if change.block not in later), *other.replaces),
        (*one.inserts, *other.inserts),
        (*one.helper, *other.helper),
        one.reason or other.reason,
    )
