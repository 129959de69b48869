"""sliding-window, summarize and priority-tiers (requirement E12)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions, Rule
from ctxctl.eviction.tiers import lower, tier_of
from ctxctl.facts.condense import MARK
from ctxctl.model.block import KINDS

SIMPLE = ["sliding-window", "summarize", "priority-tiers"]
LONG = "\n".join(f"line {n}: reading src/module_{n}.py gave value {n * 1111}" for n in range(60))


def reports(decisions: Any) -> list[Any]:
    return [d for d in decisions if d.floor is not None]


@pytest.mark.parametrize("policy", SIMPLE)
def test_over_means_more_than_the_effective_limit(policy: str, build: Any) -> None:
    """128 tokens with a fifth in reserve: 102.4; of 100 tokens 80."""
    builder = build()
    builder.add(1, "user_message", 20)
    builder.add(1, "assistant", 30)
    builder.add(1, "assistant", 30)
    manager = builder.manager(100, policy)
    assert not builder.run(manager)[0].edits
    assert manager.window.tokens == 80
    builder.add(1, "assistant", 1)
    manager = builder.manager(100, policy)
    (decision,) = builder.run(manager)
    assert [d.blocks for d in decision.edits.drops] == [(1,)]
    assert (decision.tokens, decision.after, decision.action) == (81, 51, "act")


@pytest.mark.parametrize("policy", SIMPLE)
def test_at_each_add_and_again_before_the_context_is_handed_out(policy: str, build: Any) -> None:
    builder = build()
    for turn in (1, 2, 3):
        builder.add(turn, "assistant", 30)
    manager = builder.manager(100, policy)
    manager.enter(0)
    manager.enter(1)
    assert manager.window.tokens == 60
    manager.enter(2)
    assert manager.window.tokens == 60
    manager.window.overhead += 30  # what was not counted before
    manager.window.tokens += 30
    decision = manager.turn_start()
    assert manager.window.tokens == 60
    assert [d.blocks for d in decision.edits.drops] == [(0,), (1,)]


def test_sliding_window_drops_the_oldest_that_is_not_the_system_prompt(build: Any, there: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "system", 10)
    builder.add(1, "tool_definitions", 10)
    builder.add(1, "user_message", 10)
    for turn in range(2, 12):
        builder.add(turn, "assistant", 10)
    builder.add(12, "user_message", 10)
    manager = builder.manager(100, "sliding-window")
    decisions = builder.run(manager)
    gone = [b for d in decisions for drop in d.edits.drops for b in drop.blocks]
    assert gone == [3, 4, 5, 6, 2, 7][: len(gone)] or gone == [3, 4, 5, 6, 7, 2]
    assert there(manager)[:2] == [0, 1]
    assert there(manager)[2:] == [8, 9, 10, 11, 12, 13]
    assert all(drop.reason == "oldest" for d in decisions for drop in d.edits.drops)


def test_tiers_by_kind() -> None:
    tiers = {kind: tier_of(kind) for kind in KINDS}
    assert {k for k, t in tiers.items() if t == 0} == {"system", "tool_definitions"}
    assert {k for k, t in tiers.items() if t == 1} == {"user_message"}
    assert {k for k, t in tiers.items() if t == 3} == {"thinking", "memory_injection"}
    assert tier_of("something else") == 3
    assert [lower(t) for t in range(4)] == [1, 2, 3, 3]


def test_priority_tiers_highest_number_first_and_oldest_first_within_one(build: Any, there: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "system", 10)
    order = ["user_message", "assistant", "memory_injection", "document", "thinking", "assistant", "memory_injection"]
    for kind in order:
        builder.add(1, kind, 10)
    builder.add(2, "user_message", 10)
    gone: list[int] = []
    for window in (112, 100, 88, 75, 63, 50, 38, 25):
        manager = builder.manager(window, "priority-tiers")
        builder.run(manager)
        gone = sorted(set(range(9)) - set(manager.window.entries), key=lambda b: (b not in gone, 0))
        assert there(manager) == sorted(there(manager))
    manager = builder.manager(25, "priority-tiers")
    decisions = builder.run(manager)
    drops = [drop for d in decisions for drop in d.edits.drops]
    assert there(manager) == [0, 8]
    assert [d.reason for d in drops if d.blocks[0] in (3, 7)] == ["tier 3, oldest"] * 2
    whole = builder.manager(10**6, "priority-tiers")
    builder.run(whole)
    whole.policy.limit = 0.0
    whole.window.turn += 1
    whole.policy.follow(whole.window)
    edits = whole.policy.rule(whole.window)
    assert [d.blocks[0] for d in edits.drops] == [3, 5, 7, 2, 4, 6, 1]


def test_summarize_shrinks_the_oldest_first_and_then_drops_it(build: Any, there: Any) -> None:
    builder = build()
    builder.add(1, "system", 10)
    for turn in range(1, 6):
        builder.add(turn, "assistant", 900, f"{turn}\n{LONG}")
    manager = builder.manager(3000, "summarize")
    decisions = builder.run(manager)
    replaced = [change.block for d in decisions for change in d.edits.replaces]
    assert replaced == sorted(replaced) and replaced[0] == 1
    assert not [drop for d in decisions for drop in d.edits.drops]
    text = manager.window.text(1)
    assert text.startswith(f"{MARK} turn 1, assistant: 1")
    assert manager.window.tokens <= 2400
    assert set(text.split("\n")[1:-1]) <= set(LONG.split("\n"))
    manager.policy.limit = 700.0
    manager.window.turn += 1
    decision = manager.turn_start()
    assert [change.block for change in decision.edits.replaces] == sorted(set(range(1, 6)) - set(replaced))
    assert [drop.blocks for drop in decision.edits.drops] == [(1,), (2,)][: len(decision.edits.drops)]
    assert all(drop.reason.startswith("oldest") for drop in decision.edits.drops)
    assert there(manager)[0] == 0


def test_a_summary_is_one_tier_lower(build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "user_message", 900, LONG)
    builder.add(1, "assistant", 900, LONG)
    builder.add(1, "memory_injection", 900, LONG)
    builder.add(2, "user_message", 20)
    manager = builder.manager(2125, "summarize")
    builder.run(manager)
    assert manager.policy.stats(manager.window).priority_distribution == {0: 0, 1: 2, 2: 0, 3: 2}
    manager.policy.limit = manager.window.tokens - 100.0
    manager.turn_start()
    assert manager.window.entries[0].replaced
    assert manager.policy.stats(manager.window).priority_distribution == {0: 0, 1: 1, 2: 1, 3: 2}


def test_what_is_not_smaller_is_refused_and_goes_in_its_turn(build: Any) -> None:
    builder = build()
    builder.add(1, "assistant", 5, "short")
    builder.add(1, "assistant", 5, "short too")
    builder.add(2, "assistant", 5, "short as well")
    manager = builder.manager(15, "summarize")
    decisions = builder.run(manager)
    assert not any(d.edits.replaces for d in decisions)
    assert [drop.blocks for d in decisions for drop in d.edits.drops] == [(0,)]


@pytest.mark.parametrize("text", [f"{MARK} of before\n{LONG}", f"[摘要] of before\n{LONG}"])
def test_summaries_do_not_nest(text: str, build: Any) -> None:
    builder = build()
    builder.add(1, "assistant", 900, text)
    builder.add(2, "assistant", 900, LONG)
    manager = builder.manager(2000, "summarize")
    (change,) = [c for d in builder.run(manager) for c in d.edits.replaces]
    assert change.block == 1


def test_calls_and_reasoning_keep_their_text(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 5)
    builder.add(2, "thinking", 900, LONG, response="r")
    builder.call(2, 900, LONG, size=900, arguments=LONG, response="r")
    builder.add(3, "assistant", 5)
    manager = builder.manager(2800, "summarize")
    decisions = builder.run(manager)
    assert [c.block for d in decisions for c in d.edits.replaces] == [3]
    assert not any(d.edits.drops for d in decisions)


@pytest.mark.parametrize("policy", SIMPLE)
@pytest.mark.parametrize("kind", ["tool_result", "user_message"])
def test_a_protected_block_that_is_larger_than_the_limit_is_reported_once(policy: str, kind: str, build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "user_message", 10)
    builder.add(2, "assistant", 10)
    large = builder.call(3, 500, "x", size=0) if kind == "tool_result" else builder.add(3, "user_message", 500)
    manager = builder.manager(100, policy)
    decisions = builder.run(manager)
    (report,) = reports(decisions)
    assert large in manager.window.entries
    assert report.turn == 3 and report.floor >= 500
    assert any("is larger than the limit of 80" in reason for reason in report.reasons)
    assert max(tokens for _, tokens in report.causes) == 500
    assert manager.turn_start().floor is None


@pytest.mark.parametrize("policy", SIMPLE)
def test_a_block_that_is_larger_than_the_limit_goes_and_takes_nothing_along(policy: str, build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    builder.add(1, "assistant", 10)
    large = builder.add(2, "memory_injection", 500)
    builder.add(2, "assistant", 10)
    manager = builder.manager(100, policy)
    decisions = builder.run(manager)
    (drop,) = [drop for d in decisions for drop in d.edits.drops]
    assert drop.blocks == (large,)
    assert drop.reason == "larger than the limit of 80 tokens by itself"
    assert not reports(decisions)


def test_summarize_shrinks_what_is_too_large_before_anything_goes(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    builder.add(1, "assistant", 100, LONG)
    large = builder.add(2, "memory_injection", 1000, LONG)
    manager = builder.manager(1000, "summarize")
    decisions = builder.run(manager)
    assert [c.block for d in decisions for c in d.edits.replaces] == [large]
    assert not any(d.edits.drops for d in decisions)


@pytest.mark.parametrize("policy", SIMPLE)
def test_the_floor_is_said_once(policy: str, build: Any) -> None:
    builder = build()
    builder.add(1, "system", 90)
    for turn in range(1, 9):
        builder.add(turn, "assistant", 5)
    manager = builder.manager(100, policy)
    decisions = builder.run(manager)
    (report,) = reports(decisions)
    assert (report.turn, report.floor, dict(report.causes)) == (1, 90, {"system": 90})
    assert list(manager.window.entries) == [0]


def test_last_resort_lets_tier_0_go_whole_and_oldest_first(build: Any) -> None:
    builder = build()
    builder.add(1, "system", 30)
    builder.add(1, "system", 30)
    builder.add(1, "tool_definitions", 30)
    builder.add(1, "user_message", 40)
    builder.add(1, "assistant", 20)
    manager = builder.manager(100, "priority-tiers:last_resort=true")
    (decision,) = builder.run(manager)
    assert [d.blocks for d in decision.edits.drops] == [(4,), (0,), (1,)]
    assert [d.reason.startswith("critical") for d in decision.edits.drops] == [False, True, True]
    assert decision.floor is None
    assert list(manager.window.entries) == [2, 3]
    by_settings = build(EvictionOptions(last_resort=True))
    by_settings.add(1, "system", 90)
    assert by_settings.run(by_settings.manager(100, "priority-tiers"))[0].after == 0
    for policy in ("priority-tiers:last_resort=false", "sliding-window", "summarize"):
        assert by_settings.run(by_settings.manager(100, policy))[0].after == 90


@pytest.mark.parametrize("policy", SIMPLE)
def test_pinned_blocks_stay(policy: str, build: Any) -> None:
    builder = build(EvictionOptions(pin=(Rule(regex="precious"),), pin_task=False))
    kept = builder.add(1, "assistant", 40, f"precious\n{LONG}")
    for turn in range(1, 5):
        builder.add(turn, "assistant", 30)
    manager = builder.manager(100, policy)
    builder.run(manager)
    assert kept in manager.window.entries
    assert not manager.window.entries[kept].replaced


@pytest.mark.parametrize("policy", SIMPLE)
def test_stats(policy: str, build: Any) -> None:
    builder = build()
    builder.add(1, "system", 100)
    builder.add(1, "user_message", 100)
    builder.call(2, 100, size=33)
    builder.add(2, "thinking", 100)
    manager = builder.manager(1000, policy)
    builder.run(manager)
    stats = manager.policy.stats(manager.window)
    assert stats.total_tokens == 433
    assert stats.limit == 800
    assert stats.usage_ratio == 0.541
    assert stats.chunk_count == 5
    assert stats.priority_distribution == {0: 1, 1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize("policy", SIMPLE)
def test_the_order_of_the_rest_is_kept(policy: str, build: Any, there: Any) -> None:
    builder = build()
    for turn in range(1, 30):
        builder.add(turn, ("assistant", "memory_injection", "document")[turn % 3], 10, LONG)
    manager = builder.manager(100, policy)
    builder.run(manager)
    assert there(manager) == sorted(there(manager))
    assert 3 <= len(there(manager)) <= 8


def test_what_stood_for_a_block_that_came_in_again_goes_first(build: Any) -> None:
    builder = build()
    builder.add(1, "assistant", 900, LONG)
    builder.add(2, "assistant", 900, LONG)
    manager = builder.manager(2000, "summarize")
    builder.run(manager, end=True)
    assert manager.window.entries[0].replaced
    summary = manager.window.entries[0].tokens
    assert manager.restore(0) == 900
    manager.window.check()
    assert 0 in manager.window.entries and not manager.window.stand_ins
    decision = manager.turn_start()
    assert decision.edits.drops[0].tokens == summary
    assert decision.edits.drops[0].reason == "stood for what came in again"


def test_a_large_unit_of_several_blocks_shrinks_once(build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.call(1, 900, LONG)
    builder.add(1, "image", 5, call="c0")
    builder.add(2, "assistant", 5)
    manager = builder.manager(300, "summarize")
    decisions = builder.run(manager)
    assert [change.block for change in decisions[-1].edits.replaces] == [1]
    assert manager.window.tokens <= 240
