"""`ContextWindowManager`: the one engine, live in an agent loop and fed by a recorded transcript alike (requirement
M1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from math import floor
from typing import TYPE_CHECKING

from ctxctl.budgets.components import RESERVE, limits_of
from ctxctl.budgets.forecast import FORECAST, PlanForecast
from ctxctl.budgets.options import BudgetOptions
from ctxctl.eviction.base import Policy, Setting, roughly
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.specs import Spec, policy_of
from ctxctl.manager.arguments import counted, share, string, whole
from ctxctl.manager.evictor import Evictor
from ctxctl.manager.forecasting import Outlasting
from ctxctl.manager.ledger import Ledger
from ctxctl.manager.options import ManagerOptions
from ctxctl.model.block import KINDS
from ctxctl.model.decision import Decision, Outlook
from ctxctl.model.edits import Drop, Edits, joined
from ctxctl.model.limits import DEFAULT_WINDOW
from ctxctl.model.unit import Trace
from ctxctl.model.window import Window
from ctxctl.pressure.monitor import ContextPressureMonitor
from ctxctl.pressure.options import PressureOptions, PressureThresholds

if TYPE_CHECKING:
    from ctxctl.compaction.base import Writes
    from ctxctl.compaction.options import CompactionOptions
    from ctxctl.state.audit import AuditTrail

NOTHING = Edits()
RESCUE = "emergency: evicted by hybrid"
"""Why units go at the last moment where the policy's own rule did not free enough."""


class ContextWindowManager:
    """Keeps a window within its limit.

    An agent loop calls `add` and `tool_result` for what comes in, `turn_start` before each model call, `turn_end` after
    it, and `overflow` when the provider refused a request as too long. Decisions are data: what was done and why.

    window: tokens of the model's window. policy: a name, a spec (`mask:keep=10`) or a policy. trigger: utilization from
    which on it evicts (default: the orange threshold, or the watermark where `act_at` says so); at red it evicts
    whatever the trigger, and a trigger above red moves red up to it. target: utilization that it evicts down to. count:
    tokens of a text of some kind. compaction: settings of policies that compact; helper: a model that writes their
    summaries (`ctxctl.compaction.helper.helper_of`), extracts without one; a policy that is an object already has its
    own. budget: the room kept for the answer and the burn window, for the forecast of a plan that the loop told
    (`plan`). trace: of a recorded session, whose blocks then come in by number. overhead: tokens in front that no block
    holds. explain: whether drops carry the parts of their score. audit: where evictions,
    compactions and refusals are recorded; a decision that could not be says so among its reasons, and is recorded with
    the next one.

    Raises ValueError or TypeError for an argument that makes no sense, UsageError for an unknown policy.
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
        compaction: CompactionOptions | None = None,
        budget: BudgetOptions | None = None,
        helper: Writes | None = None,
        count: Callable[[str, str], int] = roughly,
        trace: Trace | None = None,
        overhead: int = 0,
        explain: bool = True,
        audit: AuditTrail | None = None,
    ) -> None:
        self.size = whole("window", window, least=1)
        trigger, target = share("trigger", trigger), share("target", target)
        if trigger is not None and target is not None and target > trigger:
            raise ValueError(f"the target {target:g} is above the trigger {trigger:g}")
        whole("overhead", overhead)
        count = counted(count)
        self.thresholds = thresholds or PressureThresholds()
        if trigger is not None and trigger > self.thresholds.red:
            self.thresholds = replace(self.thresholds, red=trigger)
        pressure = pressure or PressureOptions()
        self.eviction = eviction or EvictionOptions()
        self.options = options or ManagerOptions()
        self.explain = explain
        self.audit = audit
        setting = Setting(window, count, self.eviction, compaction=compaction, helper=helper)
        if compaction is not None:
            setting = replace(setting, mark=compaction.mark)
        if not isinstance(policy, str | Spec | Policy):
            raise TypeError(f"the policy must be a name, a spec or a policy, not {policy!r}")
        self.policy = policy if isinstance(policy, Policy) else policy_of(policy, setting)
        if self.policy.needs_recording and trace is None:
            raise ValueError(f"the policy {self.policy.name} needs a recording: give the manager a trace")
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
        rule = not self.policy.ranks and self.policy.group == "policy" and self.policy.limit is None
        self._rescue = Evictor(self.window, Hybrid(setting), window, explain=explain, reason=RESCUE) if rule else None
        self._evictor = self._rescue or Evictor(self.window, self.policy, window, explain=explain)
        self._edits = NOTHING
        self._freed = 0
        budget = budget or BudgetOptions()
        self._outlasting = Outlasting(window, limits_of(window, budget)[RESERVE].hard, budget.burn_window)
        self._forecast_at: int | None = None
        self._credits: deque[tuple[int, Sequence[tuple[int, int]]]] = deque()
        self._came: set[int] = set()

    @property
    def turn(self) -> int:
        """The call that comes next."""
        return self.window.turn

    @property
    def evicts(self) -> bool:
        """Whether it evicts what is missing, at the trigger or at the last moment; what does not only follows a rule of
        its own, and may leave the window too full."""
        return self.policy.ranks or self._rescue is not None or self.policy.limit is not None

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
            self._edits = joined(self._edits, edits)
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
        """A block comes in: a system prompt, a user message, injected memory. Returns its id.

        Raises ValueError for a kind that is not known, TypeError for a text that is none."""
        if self._ledger is None:
            raise ValueError("a manager over a recorded trace takes its blocks by number")
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind of block; known: {', '.join(KINDS)}")
        string("text", text)
        number = self._ledger.add(
            kind, text, self.turn, role, tool_name=tool_name, call_id=call_id, target=target, is_error=is_error
        )
        self.enter(number)
        return self._ledger.blocks[number].id

    def tool_result(self, text: str, *, call_id: str, is_error: bool = False, target: str | None = None) -> str:
        """The result of a call: counted and registered as it is. It stays until a model call has answered it."""
        return self.add("tool_result", text, role="tool", call_id=call_id, is_error=is_error, target=target)

    # the plan

    def plan(self, remaining_steps: int | None, turns_per_step: float | None = None) -> None:
        """So many steps of the loop's plan remain; None withdraws it.

        turns_per_step: by default measured from what the loop told before, 1 while no step is done. While fewer turns
        remain than these steps need, `turn_start` acts whatever the level, with `forecast` among its reasons
        (`manager.forecast_trigger: false` leaves only the thresholds). Raises ValueError for what is no number of
        steps or turns.
        """
        self._outlasting.plan(remaining_steps, turns_per_step)
        self._forecast_at = None

    def forecast(self) -> PlanForecast | None:
        """Whether the plan still fits into the window; None without one."""
        return self._outlasting.forecast(self.window.tokens)

    def _falls_short(self) -> PlanForecast | None:
        """The forecast where it says to act."""
        found = self.forecast() if self.options.forecast_trigger else None
        return found if found is not None and found.act else None

    def _again(self) -> bool:
        """Whether an eviction for the forecast is due: one at once, and the next when half of what lies between target
        and trigger has come in since, so that the cached prefix is not broken at every turn."""
        at = self._forecast_at
        return at is None or self.window.tokens >= at + (self.trigger - self.target) / 2 * self.size

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
        self._outlasting.arrived(self._arrived)
        action, short = self._action(utilization), self._falls_short()
        early = short is not None and action in ("none", "evaluate")
        due = early and self._again()
        floor_: int | None = None
        causes: tuple[tuple[str, int], ...] = ()
        rescued = action == "emergency" and self._rescue is not None
        if rescued or ((due or action in ("act", "forced", "emergency")) and policy.ranks):
            evicted, floor_, causes = self._evictor.evict(floor(self.target * self.size))
            reasons = (*reasons, f"utilization {utilization:.2f}")
            if rescued and evicted:
                reasons = (*reasons, RESCUE)
            if evicted:
                edits = joined(edits, evicted)
                self._forecast_at = window.tokens
        elif not policy.ranks:
            if policy.limit is not None:
                floor_, causes = self._evictor.floor(policy.limit)
            kept = action == "evaluate" or floor_ is not None
            action = "act" if edits else action if kept else "none"
        elif edits and action in ("none", "evaluate"):
            action = "act"
        if short is not None:
            action = "act" if action in ("none", "evaluate") else action
            left, needed = short.turns_remaining, short.turns_needed
            reasons = (*reasons, FORECAST, f"{left:,} turns remain, the plan needs {needed:,}")
        if floor_ is not None:
            reasons = (*reasons, *self._evictor.too_large(self.size if policy.limit is None else policy.limit))
        reading = self.monitor.update(
            window.tokens,
            added=self._arrived,
            turn=window.turn,
            source="counted",
            compaction="micro" if edits else None,
        )
        self._arrived = 0
        live = self._ledger is not None and self.explain
        ahead = self.outlook() if live and action == "evaluate" and policy.ranks else None
        decision = Decision(
            action, window.turn, before, window.tokens, reading.level or "", edits, reasons, floor_, causes, ahead
        )
        return decision if self.audit is None else self._recorded(decision, self.audit)

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
        them; what was counted too little stands in the window as hidden growth, of the first request in front as
        overhead. credits: (unit,
        times) when they are known from a recording. Raises TypeError or ValueError for tokens that are no whole number
        of 0 or more.
        """
        window = self.window
        whole("output", output)
        for part in (text, thinking):
            string("what a call wrote", part)
        if prompt is not None:
            window.settle(whole("prompt", prompt))
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
        evicted, floor_, causes = self._evictor.evict(min(floor(self.target * self.size), floor(before * self.target)))
        decision = Decision(
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
        return decision if self.audit is None else self._recorded(decision, self.audit, overflow=True)

    def _recorded(self, decision: Decision, trail: AuditTrail, *, overflow: bool = False) -> Decision:
        from ctxctl.manager.audited import decision_events, overflow_event, recorded

        limit = self.policy.limit
        target = floor(self.target * self.size) if limit is None else floor(limit)
        events = decision_events(decision, self.window, self.policy.name, self.size, target)
        return recorded(trail, chain([overflow_event(decision, self.size)] if overflow else [], events), decision)

    def restore(self, unit: int) -> int:
        """A unit that was evicted or replaced comes in again as it was, at the end of the window; returns its tokens.
        Blocks of it that are yet to come, or that the client took back, stay away. Raises ValueError for a unit that is
        not known."""
        window = self.window
        if not 0 <= unit < len(window.units):
            raise ValueError(f"there is no unit {unit}: {len(window.units):,} are known, from 0 on")
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
        if utilization >= min(self.trigger, self.thresholds.red):
            if utilization >= max(self.options.emergency, self.thresholds.red):
                return "emergency"
            return "forced" if utilization >= self.thresholds.red else "act"
        return "evaluate" if utilization >= self.thresholds.yellow else "none"

    def ranking(self) -> list[Drop]:
        """Every unit that may leave now, the first to go first, with its score and the parts of it; nothing changes."""
        return self._evictor.ranking()

    def outlook(self) -> Outlook:
        """What an eviction to the target would do now; nothing changes."""
        return self._evictor.outlook(floor(self.target * self.size), self.window.prompt)

    def causes(self) -> tuple[tuple[str, int], ...]:
        """What can't leave now, and its tokens, the largest first."""
        return self._evictor.causes()
