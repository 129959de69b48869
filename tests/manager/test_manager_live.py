"""The manager in an agent loop: blocks come in, calls are answered, the window stays within its limit."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.errors import UsageError
from ctxctl.eviction.options import EvictionOptions
from ctxctl.manager.manager import ContextWindowManager


def text(tokens: int) -> str:
    """So many tokens as the manager counts without a tokenizer: a quarter of the characters."""
    return ("word " * tokens)[: 4 * tokens]


def loop(manager: ContextWindowManager, calls: int, size: int = 100) -> list[Any]:
    """A task and so many calls of a tool, each answered."""
    manager.add("system", text(50))
    manager.add("user_message", "Fix the login.")
    decisions = []
    for n in range(calls):
        decisions.append(manager.turn_start())
        manager.window.check()
        manager.turn_end("on it", calls=[(f"c{n}", "Read", f'{{"file_path": "f{n}.py"}}')])
        manager.tool_result(text(size), call_id=f"c{n}")
        manager.window.check()
    decisions.append(manager.turn_start())
    return decisions


def test_every_block_is_registered_once_with_its_text() -> None:
    manager = ContextWindowManager(10_000)
    ids = [manager.add("system", "Be kind."), manager.add("user_message", "Fix it.")]
    manager.turn_start()
    manager.turn_end("I read it.", calls=[("a", "Read", "{}"), ("b", "Read", "{}")], thinking="hm", output=7)
    ids.append(manager.tool_result("a text", call_id="b", is_error=True))
    ids.append(manager.tool_result("a text", call_id="a"))
    window = manager.window
    assert len(set(ids)) == 4
    assert [(b.kind, b.text, b.turn) for b in window.blocks] == [
        ("system", "Be kind.", 1),
        ("user_message", "Fix it.", 1),
        ("thinking", "hm", 1),
        ("assistant", "I read it.", 1),
        ("tool_call", "Read {}", 1),
        ("tool_call", "Read {}", 1),
        ("tool_result", "a text", 2),
        ("tool_result", "a text", 2),
    ]
    assert [b.tool_name for b in window.blocks][-2:] == ["Read", "Read"]
    assert window.blocks[-2].is_error
    assert [window.unit_of[n] for n in (6, 7)] == [window.unit_of[5], window.unit_of[4]]
    assert window.tokens == sum(-(-len(b.text) // 4) for b in window.blocks)
    assert manager.turn == 2 and window.output == 7


def test_only_the_end_of_a_turn_closes_it() -> None:
    manager = ContextWindowManager(10_000)
    manager.add("user_message", "Fix it.")
    for _ in range(3):
        assert manager.turn_start().turn == 1
    manager.turn_end("done")
    manager.add("user_message", "And that.")
    assert manager.turn_start().turn == 2


@pytest.mark.parametrize(
    "policy",
    ["fifo", "lru", "priority", "semantic", "type-ttl", "hybrid", "sliding-window", "summarize", "priority-tiers"],
)
def test_a_long_loop_stays_within_its_window(policy: str) -> None:
    manager = ContextWindowManager(1000, policy=policy)
    decisions = loop(manager, 60)
    assert all(d.after <= 1000 for d in decisions)
    assert any(d.edits for d in decisions)
    assert all(d.floor is None for d in decisions)
    kinds = [manager.window.block(b).kind for b in manager.window.entries]
    assert kinds.count("tool_call") == kinds.count("tool_result")
    assert "system" in kinds and "user_message" in kinds
    freed = [d.tokens - d.after for d in decisions if d.edits]
    assert min(freed) > 0


def test_the_policy_is_told_by_name_spec_or_itself() -> None:
    assert ContextWindowManager(policy="mask:keep=3").policy.parameters.keep == 3
    with pytest.raises(UsageError):
        ContextWindowManager(policy="none-such")
    with pytest.raises(ValueError, match="window"):
        ContextWindowManager(0)


def test_a_result_stays_until_a_call_has_answered_it() -> None:
    manager = ContextWindowManager(1000, policy="fifo", target=0.01)
    manager.add("user_message", "Fix it.")
    manager.turn_start()
    manager.turn_end(calls=[("c", "Read", "{}")])
    manager.tool_result(text(900), call_id="c")
    decision = manager.turn_start()
    assert not decision.edits and decision.floor is not None
    manager.turn_end("seen")
    assert [d.tokens for d in manager.turn_start().edits.drops] == [902]


def test_reported_tokens_correct_the_count() -> None:
    manager = ContextWindowManager(1000)
    manager.add("user_message", text(100))
    manager.turn_start()
    manager.turn_end("", prompt=340)
    window = manager.window
    assert (window.tokens, window.overhead + window.hidden) == (340, 240)
    manager.add("user_message", text(10))
    manager.turn_start()
    manager.turn_end("", prompt=330)
    assert (window.tokens, window.overhead + window.hidden) == (330, 220)
    manager.window.check()


def test_overflow_evicts_whatever_the_level_says() -> None:
    """The provider counts more than we do."""
    manager = ContextWindowManager(10_000, policy="fifo")
    loop(manager, 20)
    assert manager.window.tokens < 3000
    before = manager.window.tokens
    decision = manager.overflow()
    assert decision.action == "emergency"
    assert decision.after <= 0.6 * before and decision.after == manager.window.tokens
    assert decision.edits.drops and decision.floor is None
    again = manager.overflow()
    assert again.after < decision.after
    manager.window.check()


@pytest.mark.parametrize("policy", ["mask", "sliding-window", "summarize", "unbounded"])
def test_overflow_helps_with_policies_that_do_not_rank(policy: str) -> None:
    manager = ContextWindowManager(10_000, policy=policy)
    loop(manager, 20)
    before = manager.window.tokens
    assert manager.overflow().after <= 0.6 * before
    manager.window.check()
    manager.turn_start()


def test_overflow_with_nothing_to_evict_says_so() -> None:
    manager = ContextWindowManager(1000, policy="fifo")
    manager.add("system", text(500))
    manager.add("user_message", "Fix it.")
    manager.turn_start()
    decision = manager.overflow()
    assert (decision.edits.drops, decision.floor) == ([], 502)
    assert manager.overflow().floor is None


def test_a_manager_over_a_trace_takes_its_blocks_by_number(build_trace_of: Any) -> None:
    manager = ContextWindowManager(1000, trace=build_trace_of(1))
    with pytest.raises(ValueError, match="recorded trace"):
        manager.add("user_message", "more")


def test_at_each_add() -> None:
    manager = ContextWindowManager(1000, policy="sliding-window")
    for _ in range(8):
        manager.add("memory_injection", text(100))
    assert manager.window.tokens == 800
    manager.add("memory_injection", text(100))
    assert manager.window.tokens == 800
    decision = manager.turn_start()
    assert (decision.action, decision.tokens, decision.after) == ("act", 900, 800)
    assert [drop.blocks for drop in decision.edits.drops] == [(0,)]
    assert decision.reasons == ("above the limit of 800 tokens",)
    by_turn = ContextWindowManager(1000, policy="fifo")
    for _ in range(9):
        by_turn.add("memory_injection", text(100))
    assert by_turn.window.tokens == 900


def test_a_second_session_starts_anew() -> None:
    runs = []
    for _ in range(2):
        manager = ContextWindowManager(1000, policy="hybrid", eviction=EvictionOptions())
        runs.append([(d.turn, d.after, [x.blocks for x in d.edits.drops]) for d in loop(manager, 40)])
    assert runs[0] == runs[1]
