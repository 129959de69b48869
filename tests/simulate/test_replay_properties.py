"""What holds of every policy over any trace (requirements E8 to E12, and the replay's own measures)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.decision import Decision
from ctxctl.model.unit import Grouper, Reference, Trace, Turn
from ctxctl.simulate.replay import ReplayOptions, replay

RANKING = ["fifo", "lru", "priority", "semantic", "type-ttl", "hybrid", "random:seed=7", "largest-first"]
SIMPLE = ["sliding-window", "summarize", "priority-tiers", "priority-tiers:reserve=0,last_resort=true"]
RULES = ["mask:keep=1", "mask:keep=0,every=3,min_saving=40", "clear:trigger=0.3,keep=1", "clear:trigger=60,keep=0"]
NAMES = ("alpha/one.py", "beta/two.py", "gamma/three.py", "delta/four.py", "omega/five.py")

atoms = st.sets(st.integers(0, len(NAMES) - 1), max_size=3).map(sorted)
sizes = st.integers(0, 60)
rows = st.integers(0, 12)


class Maker:
    """Draws a trace: exchanges with answers, reasoning, parallel calls, results that come late, injected memory,
    pictures, rewinds, and references to what came before."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.blocks: list[Block] = []
        self.tokens: list[int] = []
        self.atoms: list[tuple[int, ...]] = []
        self.entered: list[int] = []
        self.grouper = Grouper()
        self.pinned = pins_of(EvictionOptions())
        self.exchange = 0

    def add(self, turn: int, kind: str, **more: Any) -> int:
        number = len(self.blocks)
        mine = self.draw(atoms) if kind not in ("system", "image") and number > 1 else []
        lines = [f"uses {NAMES[a]} here" for a in mine] + [f"row {n} of {kind}" for n in range(self.draw(rows))]
        block = Block(f"{number}.0", kind, "x", "\n".join(lines), turn, self.exchange, Source(number + 1), **more)
        size = self.draw(sizes)
        self.blocks.append(block)
        self.tokens.append(size)
        self.atoms.append(tuple(mine))
        self.entered.append(turn)
        self.grouper.add(block, size, turn, self.pinned(block))
        return number

    def trace(self) -> Trace:
        draw = self.draw
        count = draw(st.integers(1, 12))
        late: dict[int, list[str]] = {}
        for turn in range(1, count + 1):
            if turn == 1:
                self.add(turn, "system")
            else:
                self.answer(turn, count, late)
            for call in late.pop(turn, ()):
                self.add(turn, "tool_result", call_id=call)
                if draw(st.integers(0, 5)) == 0:
                    self.add(turn, "image", call_id=call)
            if turn == 1 or draw(st.integers(0, 3)) == 0:
                self.exchange += 1
                self.add(turn, "user_message", message=turn)
            for kind in draw(st.lists(st.sampled_from(["memory_injection", "document", "image"]), max_size=1)):
                self.add(turn, kind)
        return self._trace(count)

    def answer(self, turn: int, count: int, late: dict[int, list[str]]) -> None:
        draw, response = self.draw, f"r{turn}"
        for _ in range(draw(st.integers(0, 2))):
            self.add(turn, "thinking", response_id=response)
        if draw(st.booleans()):
            self.add(turn, "assistant", response_id=response)
        for k in range(draw(st.integers(0, 3))):
            call = f"c{turn}.{k}"
            self.add(turn, "tool_call", response_id=response, call_id=call, tool_name="Read")
            back = draw(st.sampled_from([turn] * 5 + [turn + 1, count + 1]))
            late.setdefault(back, []).append(call)

    def _trace(self, count: int) -> Trace:
        draw, units, unit_of = self.draw, self.grouper.units, self.grouper.unit_of
        turns = []
        left: set[int] = set()
        for turn in range(1, count + 1):
            leaving: tuple[int, ...] = ()
            if turn > 2 and draw(st.integers(0, 9)) == 0:
                whole = [u for u in units if all(self.entered[b] < turn for b in u.blocks) and u.number not in left]
                if whole:
                    gone = draw(st.sampled_from(whole))
                    left.add(gone.number)
                    leaving = gone.blocks
            arrivals = tuple(b for b, t in enumerate(self.entered) if t == turn)
            seen = unit_of[: arrivals[-1] + 1] if arrivals else [0]
            credits = draw(st.dictionaries(st.sampled_from(seen), st.integers(1, 3), max_size=2))
            unseen = draw(st.integers(-3, 9)) if turn > 1 else 0
            told = {"references": tuple(self.references(turn, left)), "credits": tuple(credits.items())}
            turns.append(Turn(turn, arrivals, leaving, unseen, **told))
        return Trace(
            "drawn",
            "drawn",
            None,
            self.blocks,
            self.tokens,
            unit_of,
            units,
            turns,
            draw(st.integers(0, 30)),
            self.atoms,
            NAMES,
        )

    def references(self, turn: int, left: set[int]) -> list[Reference]:
        units, unit_of = self.grouper.units, self.grouper.unit_of
        found = []
        for a in self.draw(atoms):
            holders = {
                unit_of[b]
                for b, mine in enumerate(self.atoms)
                if a in mine and self.entered[b] <= turn and units[unit_of[b]].pinned is None and unit_of[b] not in left
            }
            # what is still waiting for a part of it can't be fetched again
            holders = {u for u in holders if all(self.entered[b] <= turn for b in units[u].blocks)}
            if holders:
                smallest = min(holders, key=lambda u: (units[u].tokens, u))
                found.append(Reference(turn, a, "path", 1.0, smallest, True, NAMES[a]))
        return found


@st.composite
def traces(draw: Any) -> Trace:
    return Maker(draw).trace()


def manager_of(trace: Trace, policy: str, window: int, **more: Any) -> ContextWindowManager:
    return ContextWindowManager(window, policy=policy, trace=trace, trigger=1.0, target=1.0, **more)


def there(manager: ContextWindowManager, name: int) -> bool:
    """Whether something in the window holds an atom, by its text."""
    window = manager.window
    return any(NAMES[name] in window.text(b) for b in window.entries)


def hook(manager: ContextWindowManager, arrived: set[int]) -> None:
    """What holds after every hook: sums are sums, and of each unit all or nothing is there."""
    window = manager.window
    window.check()
    for unit in window.units:
        came = [b for b in unit.blocks if b in arrived]
        present = [b for b in came if b in window.entries]
        assert present in ([], came), f"half of unit {unit.number}"
        if present:
            size = sum(window.entries[b].tokens for b in present)
            assert size == window.resident.get(unit.number, window.fixed.get(unit.number))
    places = [window.place(b) for b in window.entries]
    assert len(set(places)) == len(places)


def drive(
    trace: Trace, manager: ContextWindowManager, *, limit: float | None = None
) -> tuple[list[Decision], list[int]]:
    """A replay without its bookkeeping: decisions, and misses per turn as the texts tell them."""
    window = manager.window
    arrived: set[int] = set()
    decisions: list[Decision] = []
    misses: list[int] = []
    for turn in trace.turns:
        manager.leave(turn.leaving)
        arrived -= set(turn.leaving)
        hook(manager, arrived)
        window.grow(turn.unseen)
        for number in turn.arrivals:
            arrived.add(number)
            manager.enter(number)
            window.check()
        decision = manager.turn_start()
        decisions.append(decision)
        hook(manager, arrived)
        assert decision.after == window.tokens
        if limit is not None and window.tokens > limit:
            assert set(window.resident) <= window.protected()
            assert all(number >= 0 for number in window.entries)
        lost = sorted({r.smallest for r in turn.references if not there(manager, r.atom)})
        misses.append(sum(not there(manager, r.atom) for r in turn.references))
        manager.turn_end(credits=turn.credits)
        hook(manager, arrived)
        for unit in lost:
            manager.restore(unit)
            hook(manager, arrived)
    return decisions, misses


windows = st.integers(20, 400)


@pytest.mark.parametrize("policy", RANKING)
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows)
def test_never_above_capacity_unless_what_stays_is_protected(policy: str, trace: Trace, window: int) -> None:
    drive(trace, manager_of(trace, policy, window), limit=window)


@pytest.mark.parametrize("policy", SIMPLE)
@settings(deadline=None, max_examples=30)
@given(trace=traces(), window=windows)
def test_never_above_the_effective_limit_unless_what_stays_is_protected(policy: str, trace: Trace, window: int) -> None:
    manager = manager_of(trace, policy, window)
    assert manager.policy.limit == pytest.approx(window * (1.0 if "reserve=0" in policy else 0.8))
    drive(trace, manager, limit=manager.policy.limit)


@pytest.mark.parametrize("policy", RULES)
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows)
def test_sums_and_units_hold_under_rules(policy: str, trace: Trace, window: int) -> None:
    drive(trace, manager_of(trace, policy, window))


@pytest.mark.parametrize("policy", [*RANKING, *SIMPLE, *RULES])
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows)
def test_the_replay_counts_the_misses_that_the_texts_tell(policy: str, trace: Trace, window: int) -> None:
    """And its flows add up, which it checks itself."""
    _, expected = drive(trace, manager_of(trace, policy, window))
    found = replay(trace, manager_of(trace, policy, window), ReplayOptions(steps=True))
    assert [step.missed for step in found.steps] == expected
    assert found.misses == sum(expected)
    assert found.hits + found.misses == sum(len(turn.references) for turn in trace.turns)


@settings(deadline=None)
@given(trace=traces(), window=windows)
def test_unbounded_misses_nothing(trace: Trace, window: int) -> None:
    gone = {trace.unit_of[b] for turn in trace.turns for b in turn.leaving}
    found = replay(trace, manager_of(trace, "unbounded", window))
    if not gone:
        assert (found.misses, found.missed_weight, found.refetched) == (0, 0.0, 0)
    assert (found.evictions, found.edits, found.compactions) == (0, 0, 0)


@pytest.mark.parametrize("policy", [*RANKING, *SIMPLE, *RULES])
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows)
def test_two_runs_are_equal(policy: str, trace: Trace, window: int) -> None:
    runs = [replay(trace, manager_of(trace, policy, window), ReplayOptions(steps=True)) for _ in range(2)]
    assert runs[0] == runs[1]


def told(decisions: Sequence[Decision]) -> list[str]:
    return [repr(decision) for decision in decisions]


@pytest.mark.parametrize("policy", [*RANKING, *SIMPLE, *RULES])
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows, data=st.data())
def test_no_policy_sees_the_future(policy: str, trace: Trace, window: int, data: Any) -> None:
    cut = data.draw(st.integers(1, len(trace.turns)))
    whole, _ = drive(trace, manager_of(trace, policy, window))
    part, _ = drive(trace.until(cut), manager_of(trace.until(cut), policy, window))
    assert told(part) == told(whole[:cut])


@pytest.mark.parametrize("policy", [*RANKING, *SIMPLE])
@settings(deadline=None, max_examples=15)
@given(trace=traces(), window=windows)
def test_only_what_may_leave_leaves(policy: str, trace: Trace, window: int) -> None:
    """Pinned units never, but tier 0 as a last resort; what is asked now and unanswered results not now."""
    manager = manager_of(trace, policy, window)
    seen: set[int] = set()
    exchange = 0
    for turn in trace.turns:
        manager.leave(turn.leaving)
        for number in turn.arrivals:
            exchange = max(exchange, trace.blocks[number].exchange)
            seen.add(number)
            manager.enter(number)
        for drop in manager.turn_start().edits.drops:
            unit = trace.units[drop.unit]
            if drop.reason.startswith("critical"):
                assert unit.kind == "system"
                continue
            assert unit.pinned is None
            assert not (unit.kind == "user_message" and unit.exchange == exchange)
            results = [b for b in unit.blocks if trace.blocks[b].kind in ("tool_result", "image", "document")]
            assert not set(results) & set(turn.arrivals)
            if any(trace.blocks[b].kind == "tool_call" for b in unit.blocks):
                assert set(results) & seen, "a call without its result left"
        manager.turn_end(credits=turn.credits)
