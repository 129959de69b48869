"""What acting would do, told at yellow without doing it (requirement E10)."""

from __future__ import annotations

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
