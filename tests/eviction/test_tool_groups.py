"""Tool groups are atomic, and reasoning is bound to its calls while their loop is open (requirement E11)."""

from __future__ import annotations

from typing import Any

import pytest

RANKING = ["fifo", "lru", "priority", "type-ttl", "hybrid", "semantic", "random:seed=3", "largest-first"]
SIMPLE = ["sliding-window:reserve=0.4", "priority-tiers:reserve=0.4", "summarize:reserve=0.4"]


def loop(build: Any) -> Any:
    """One exchange: two responses with reasoning and calls, answered by a third."""
    builder = build()
    builder.add(1, "user_message", 10)
    for turn, response in ((2, "r1"), (3, "r2")):
        builder.add(turn, "thinking", 100, response=response)
        builder.add(turn, "assistant", 20, response=response)
        builder.call(turn, 100, response=response, name=f"{response}a")
        builder.call(turn, 100, response=response, name=f"{response}b")
    builder.add(4, "assistant", 800, response="r3")
    return builder


@pytest.mark.parametrize("policy", [*RANKING, *SIMPLE])
def test_reasoning_of_the_open_loop_goes_with_its_calls_or_stays(policy: str, build: Any) -> None:
    builder = loop(build)
    for window in range(300, 1500, 50):
        manager = builder.manager(window, policy, target=0.6)
        builder.run(manager)
        there = manager.window.entries
        for first in (1, 7):
            group = [first, *range(first + 2, first + 6)]
            assert len({number in there for number in group}) == 1, (policy, window)


@pytest.mark.parametrize("policy", RANKING)
def test_reasoning_of_a_finished_exchange_may_go_alone(policy: str, build: Any) -> None:
    builder = loop(build)
    builder.add(5, "user_message", 10)
    manager = builder.manager(10**6, policy)
    builder.run(manager)
    assert all(manager.window.together(u) == (u,) for u in manager.window.resident)
    assert manager.window.bound() == []
    ranked = {drop.blocks for drop in manager.ranking()}
    assert {(1,), (7,), (3, 4), (5, 6)} <= ranked


def test_what_is_bound_to_something_protected_is_protected(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    thinking = builder.add(2, "thinking", 100, response="r")
    done = builder.call(2, 100, response="r")
    builder.add(2, "tool_call", 10, "Wait {}", response="r", call="open", tool="Wait")
    builder.add(3, "assistant", 10, response="r3")
    manager = builder.manager(100, "fifo", target=0.01)
    builder.run(manager)
    window = manager.window
    assert window.fresh == set()
    assert {builder.unit(thinking), builder.unit(done)} <= window.protected()
    assert {thinking, done} <= set(window.entries)


def test_reasoning_bound_to_a_pinned_call_stays(build: Any) -> None:
    from ctxctl.eviction.options import EvictionOptions, Rule

    builder = build(EvictionOptions(pin=(Rule(tool="Keep"),)))
    builder.add(1, "user_message", 10)
    thinking = builder.add(2, "thinking", 100, response="r")
    kept = builder.call(2, 100, response="r", tool="Keep")
    other = builder.call(2, 100, response="r")
    builder.add(3, "assistant", 10, response="r3")
    for policy in ("fifo", "sliding-window"):
        manager = builder.manager(100, policy, target=0.01)
        builder.run(manager)
        assert {thinking, kept, other} <= set(manager.window.entries), policy


def test_a_group_is_worth_what_the_best_of_it_is(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    builder.add(2, "thinking", 10, response="r")
    builder.call(2, 10, response="r")
    builder.add(2, "assistant", 10, response="r")
    builder.add(3, "assistant", 10, response="r3")
    manager = builder.manager(10**6, "priority")
    builder.run(manager)
    ranking = manager.ranking()
    assert [drop.blocks for drop in ranking] == [(1,), (2, 3), (4,), (5,)]
    assert [drop.score for drop in ranking] == [0.5, 0.5, 0.6, 0.6]


def test_all_reasoning_of_one_response_is_one_unit(build: Any) -> None:
    """Also where each add may evict: half of it never stays."""
    builder = build()
    builder.add(1, "user_message", 10)
    builder.add(2, "thinking", 300, response="r")
    builder.add(2, "thinking", 300, response="r")
    builder.add(2, "assistant", 10, response="r")
    builder.add(3, "user_message", 10)
    for policy in SIMPLE:
        for window in (100, 300, 600, 1000, 2000):
            manager = builder.manager(window, policy)
            builder.run(manager)
            assert len({number in manager.window.entries for number in (1, 2)}) == 1


def test_no_call_stays_without_its_result(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    for turn in range(2, 12):
        for _ in range(3):
            builder.call(turn, 50)
    for policy in (*RANKING, *SIMPLE):
        manager = builder.manager(700, policy)
        for decision in builder.run(manager, end=True):
            for drop in decision.edits.drops:
                assert len(drop.blocks) == 2
        kinds = [manager.window.blocks[b].kind for b in manager.window.entries]
        assert kinds.count("tool_call") == kinds.count("tool_result")


def test_bound_reasoning_is_of_the_tier_of_its_calls(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    builder.add(2, "thinking", 10, response="r")
    builder.call(2, 10, response="r")
    builder.add(2, "memory_injection", 10)
    builder.add(3, "assistant", 10, response="r3")
    manager = builder.manager(60, "priority-tiers:reserve=0")
    decisions = builder.run(manager)
    assert not any(d.edits for d in decisions)
    manager.turn_end()
    manager.policy.limit = 50
    assert [drop.blocks for drop in manager.turn_start().edits.drops] == [(4,)]
    manager.turn_end()
    manager.policy.limit = 45
    assert [drop.blocks for drop in manager.turn_start().edits.drops] == [(1,), (2, 3)]
    free = builder.manager(60, "priority-tiers:reserve=0")
    builder.run(free, end=True)
    free.window.exchange += 1  # the exchange is over
    free.policy.limit = 50
    assert [drop.blocks for drop in free.turn_start().edits.drops] == [(1,)]
