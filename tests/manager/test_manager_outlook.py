"""What acting would do, told at yellow without doing it (requirement E10)."""

from __future__ import annotations

import pytest

from ctxctl.manager.manager import ContextWindowManager


def filled(results: int, *, explain: bool = True) -> ContextWindowManager:
    """A window of 1,000 tokens with a task of 4 and results of 100 tokens each, all but the newest answered."""
    manager = ContextWindowManager(1000, policy="fifo", explain=explain)
    manager.add("user_message", "do the task now.")
    for k in range(results):
        manager.turn_start()
        manager.turn_end(calls=[(f"c{k}", "read", "{}")])
        manager.tool_result("x" * 400, call_id=f"c{k}")
    return manager


def test_yellow_changes_nothing_and_tells_what_would_go() -> None:
    manager = filled(6)
    before = manager.window.tokens
    decision = manager.turn_start()
    assert decision.action == "evaluate" and manager.window.tokens == before == decision.after
    ahead = decision.outlook
    assert ahead is not None
    assert [drop.unit for drop in ahead.ranking] == [1, 2, 3, 4, 5]  # the newest result was not answered yet
    each = ahead.ranking[0].tokens
    assert ahead.going == -(-(before - 600) // each) and ahead.freed == ahead.going * each
    assert ahead.prefix_kept == 4  # all but the task stands behind the first result
    assert ahead.behind == before - ahead.freed - 4
    assert all(drop.parts for drop in ahead.ranking)


def test_no_outlook_below_yellow_nor_where_nothing_is_explained() -> None:
    assert filled(2).turn_start().outlook is None
    assert filled(6, explain=False).turn_start().outlook is None


def test_what_the_outlook_says_is_what_acting_does() -> None:
    manager = filled(6)
    ahead = manager.outlook()
    manager.trigger = 0.5
    manager.target = 0.6
    acted = manager.turn_start()
    assert [d.unit for d in acted.edits.drops] == [d.unit for d in ahead.ranking[: ahead.going]]
    assert acted.tokens - acted.after == ahead.freed
    assert manager.window.stable_prefix(manager.window.prompt) == ahead.prefix_kept


FILE = "\n".join(f"src/module_{n}.py: value = {n * 1111}" for n in range(20))


def polled(rounds: int, policy: str) -> ContextWindowManager:
    """A window of 2,000 tokens in which the same file is read again and again, a line of it new each time."""
    manager = ContextWindowManager(2000, policy=policy)
    manager.add("user_message", "do the task now.")
    for k in range(rounds):
        manager.turn_start()
        thinking = "I look again." if k % 2 else ""
        manager.turn_end("on it", thinking=thinking, calls=[(f"c{k}", "read", "{}")], prompt=None)
        manager.tool_result(f"{FILE}\nread {k}" if k % 3 else f"other {k} " * 60, call_id=f"c{k}")
    return manager


@pytest.mark.parametrize("policy", ["semantic", "hybrid", "fifo", "lru", "priority", "type-ttl"])
@pytest.mark.parametrize("rounds", [3, 5, 7, 9])
@pytest.mark.parametrize("target", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("again", [False, True])
def test_the_outlook_counts_what_merges_and_what_is_spare(policy: str, rounds: int, target: float, again: bool) -> None:
    manager = polled(rounds, policy)
    window = manager.window
    manager.turn_start()
    manager.turn_end("seen")
    if again and window.resident:  # a line stands for a result that came in again
        unit = next(u for u in window.resident if window.units[u].kind == "tool_result")
        result = window.units[unit].blocks[-1]
        window.replace(result, "[cleared]", 3)
        manager.restore(unit)
    manager.target = target
    before = (dict(window.entries), window.tokens, dict(window.resident), list(window.made))
    ahead = manager.outlook()
    assert (dict(window.entries), window.tokens, dict(window.resident), list(window.made)) == before
    assert manager.outlook() == ahead
    window.check()
    manager.trigger = 0.0001
    acted = manager.turn_start()
    assert [d.blocks for d in acted.edits.drops] == [d.blocks for d in ahead.ranking[: ahead.going]]
    assert acted.tokens - acted.after == ahead.freed
    assert window.stable_prefix(window.prompt) == ahead.prefix_kept
    if acted.edits:
        assert ahead.behind == window.tokens - ahead.prefix_kept
    window.check()
