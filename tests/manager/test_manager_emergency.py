"""At red it acts whatever the trigger, and in an emergency everything is tried (requirement M1)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.pressure.options import PressureOptions, PressureThresholds

REASON = "emergency: evicted by hybrid"


def results(manager: ContextWindowManager, *sizes: int) -> list[Any]:
    """A task, and results of so many tokens, each answered by the next call."""
    manager.add("user_message", "Do the task now.")
    decisions = [manager.turn_start()]
    for n, size in enumerate(sizes):
        manager.turn_end(calls=[(f"c{n}", "Read", "{}")])
        manager.tool_result("x" * 4 * size, call_id=f"c{n}")
        decisions.append(manager.turn_start())
        manager.window.check()
    return decisions


@pytest.mark.parametrize("policy", ["mask", "clear:keep=5", "mask:keep=0,min_saving=100000"])
def test_a_rule_that_frees_too_little_does_not_let_the_window_overflow(policy: str) -> None:
    manager = ContextWindowManager(1000, policy=policy)
    decisions = results(manager, *[360] * 8)
    assert manager.evicts
    acted = [d for d in decisions if d.action == "emergency"]
    assert acted and all(d.after <= 1000 for d in decisions)
    for decision in acted:
        assert decision.after <= 600
        assert decision.reasons[-2:] == (f"utilization {decision.tokens / 1000:.2f}", REASON)
        assert decision.edits.drops and all(drop.reason == REASON for drop in decision.edits.drops)
        assert decision.floor is None


def test_its_own_rule_comes_first() -> None:
    manager = ContextWindowManager(1000, policy="clear:trigger=0.9,keep=0")
    decisions = results(manager, 300, 300, 300, 300)
    assert all(not d.edits.drops for d in decisions)
    assert [d.action for d in decisions if d.edits.replaces] == ["act"]


@pytest.mark.parametrize("policy", ["mask", "clear"])
def test_what_may_not_leave_is_said_once_with_its_causes(policy: str) -> None:
    manager = ContextWindowManager(1000, policy=policy)
    manager.add("system", "x" * 4 * 960)
    decision = manager.turn_start()
    assert (decision.action, decision.floor, decision.causes) == ("emergency", 960, (("system", 960),))
    assert REASON not in decision.reasons
    again = manager.turn_start()
    assert (again.action, again.floor) == ("emergency", None)


@pytest.mark.parametrize("policy", ["mask", "clear"])
def test_below_an_emergency_a_rule_is_left_alone(policy: str, build_trace_of: Any) -> None:
    manager = ContextWindowManager(1000, policy=policy, trace=build_trace_of(*[94] * 10))
    for number in range(10):
        manager.enter(number)
    decision = manager.turn_start()
    assert (decision.action, decision.after) == ("none", 940)


@pytest.mark.parametrize(
    ("policy", "evicts"),
    [("hybrid", True), ("mask", True), ("clear", True), ("sliding-window", True), ("unbounded", False)],
)
def test_who_evicts(policy: str, evicts: bool) -> None:
    assert ContextWindowManager(policy=policy).evicts is evicts


def fill(manager: ContextWindowManager, tokens: int) -> Any:
    for number in range(tokens):
        manager.enter(number)
    return manager.turn_start()


def test_red_acts_where_the_watermark_is_above_it(build_trace_of: Any) -> None:
    options = PressureOptions(act_at="watermark", watermark=0.98)
    for tokens, action in ((89, "evaluate"), (90, "forced"), (95, "emergency")):
        trace = build_trace_of(*[1] * tokens)
        assert fill(ContextWindowManager(100, policy="fifo", trace=trace, pressure=options), tokens).action == action


@pytest.mark.parametrize(
    ("trigger", "tokens", "action", "level"),
    [
        (0.92, 91, "evaluate", "orange"),
        (0.92, 92, "forced", "red"),
        (1.0, 99, "evaluate", "orange"),
        (1.0, 100, "emergency", "red"),
        (0.85, 90, "forced", "red"),
    ],
)
def test_a_trigger_above_red_moves_red_up(
    trigger: float, tokens: int, action: str, level: str, build_trace_of: Any
) -> None:
    trace = build_trace_of(*[1] * tokens)
    manager = ContextWindowManager(100, policy="fifo", trace=trace, trigger=trigger, target=trigger)
    decision = fill(manager, tokens)
    assert decision.action == action
    assert manager.thresholds.level(tokens / 100) == level
    assert manager.thresholds == manager.monitor.thresholds == PressureThresholds(red=max(0.9, trigger))
