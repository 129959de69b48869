"""What is decided at which utilization (requirements M1, E9, E10)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.manager.manager import ContextWindowManager, ManagerOptions
from ctxctl.pressure.options import PressureOptions, PressureThresholds

LADDER = [
    (0, "none", "green"),
    (490, "none", "green"),
    (500, "evaluate", "yellow"),
    (740, "evaluate", "yellow"),
    (749, "evaluate", "yellow"),
    (750, "act", "orange"),
    (890, "act", "orange"),
    (899, "act", "orange"),
    (900, "forced", "red"),
    (949, "forced", "red"),
    (950, "emergency", "red"),
    (1000, "emergency", "red"),
    (1400, "emergency", "red"),
]


def decide(trace: Any, **more: Any) -> tuple[ContextWindowManager, Any]:
    manager = ContextWindowManager(1000, trace=trace, **{"policy": "fifo", **more})
    for number in range(len(trace.blocks)):
        manager.enter(number)
    decision = manager.turn_start()
    manager.window.check()
    return manager, decision


@pytest.mark.parametrize(("tokens", "action", "level"), LADDER)
def test_the_ladder(tokens: int, action: str, level: str, build_trace_of: Any) -> None:
    manager, decision = decide(build_trace_of(*[tokens // 10] * 9, tokens - 9 * (tokens // 10)))
    assert (decision.action, decision.tokens) == (action, tokens)
    assert bool(decision.edits) is (action not in ("none", "evaluate"))
    assert decision.after == manager.window.tokens
    if decision.edits:
        assert decision.after <= 600
        assert decision.reasons == (f"utilization {tokens / 1000:.2f}",)
    else:
        assert (decision.level, decision.reasons) == (level, ())


@pytest.mark.parametrize(
    ("tokens", "action"), [(49, "none"), (50, "evaluate"), (60, "act"), (70, "forced"), (80, "emergency")]
)
def test_the_thresholds_are_those_of_the_settings(tokens: int, action: str, build_trace_of: Any) -> None:
    _, decision = decide(
        build_trace_of(*[1] * tokens),
        thresholds=PressureThresholds(0.05, 0.06, 0.07),
        options=ManagerOptions(emergency=0.08),
        target=0.01,
    )
    assert decision.action == action


def test_action_may_start_at_the_watermark(build_trace_of: Any) -> None:
    trace = build_trace_of(*[100] * 5)
    assert decide(trace)[1].action == "evaluate"
    _, decision = decide(trace, pressure=PressureOptions(act_at="watermark"))
    assert (decision.action, decision.after) == ("act", 500)
    _, higher = decide(trace, pressure=PressureOptions(act_at="watermark", watermark=0.6))
    assert higher.action == "evaluate"


@pytest.mark.parametrize(
    ("tokens", "target", "gone"),
    [(800, 0.6, 2), (750, 0.6, 2), (800, 0.61, 2), (800, 0.8, 1), (800, 0.1, 7), (800, 0.05, 8)],
)
def test_it_evicts_down_to_the_target_and_no_further(
    tokens: int, target: float, gone: int, build_trace_of: Any
) -> None:
    sizes = [100] * (tokens // 100) + ([tokens % 100] if tokens % 100 else [])
    manager, decision = decide(build_trace_of(*sizes), target=target)
    assert [drop.blocks for drop in decision.edits.drops] == [(n,) for n in range(gone)]
    assert decision.after <= target * 1000 or target > manager.trigger


def test_a_target_above_the_trigger_is_the_trigger(build_trace_of: Any) -> None:
    manager, decision = decide(build_trace_of(*[10] * 80), target=0.9)
    assert manager.target == manager.trigger == 0.75
    assert decision.after == 750


def test_yellow_changes_nothing_and_the_ranking_lists_everything(build_trace_of: Any) -> None:
    manager, decision = decide(build_trace_of(*[100] * 6), policy="hybrid")
    assert decision.action == "evaluate" and not decision.edits
    before = dict(manager.window.entries)
    ranking = manager.ranking()
    assert dict(manager.window.entries) == before
    assert sorted(drop.unit for drop in ranking) == list(range(6))
    scores = [drop.score for drop in ranking]
    assert scores == sorted(scores)  # type: ignore[type-var]
    for drop in ranking:
        assert drop.parts is not None
        assert sum(drop.parts.values()) == pytest.approx(drop.score)
        assert drop.tokens == 100
    manager.trigger, manager.target = 0.0, 0.6
    assert not manager.turn_start().edits  # the target is met
    manager.target = 0.3
    assert [d.unit for d in manager.turn_start().edits.drops] == [d.unit for d in ranking[:3]]


def test_parts_are_left_out_where_nobody_asks(build_trace_of: Any) -> None:
    _, decision = decide(build_trace_of(*[100] * 9), explain=False)
    assert decision.edits.drops and all(drop.parts is None for drop in decision.edits.drops)


def test_the_floor_is_said_once_with_its_causes(build_trace_of: Any) -> None:
    manager = ContextWindowManager(1000, policy="fifo", overhead=700)
    manager.add("system", "x" * 400)
    manager.add("user_message", "x" * 200)
    decision = manager.turn_start()
    assert decision.floor == 850
    assert decision.causes == (("system prompt and tools (not in the file)", 700), ("system", 100), ("task", 50))
    for _ in range(3):
        manager.turn_end("x" * 40)
        again = manager.turn_start()
        assert again.after == 850
        assert again.floor is None and again.causes == ()


def test_the_floor_is_said_again_when_it_passes_the_window() -> None:
    manager = ContextWindowManager(1000, policy="fifo", overhead=850)
    assert manager.turn_start().floor == 850
    manager.turn_end()
    assert manager.turn_start().floor is None
    manager.add("user_message", "x" * 800)
    decision = manager.turn_start()
    assert decision.floor == 1050
    assert manager.turn_start().floor is None


def test_it_is_said_anew_once_the_target_was_met() -> None:
    manager = ContextWindowManager(1000, policy="fifo", overhead=800)
    assert manager.turn_start().floor == 800
    manager.turn_end(prompt=760)
    assert manager.turn_start().floor is None
    manager.turn_end(prompt=500)
    manager.add("memory_injection", "x" * 1200)
    assert manager.turn_start().after == 500
    manager.turn_end(prompt=900)
    assert manager.turn_start().floor == 900


def test_a_block_larger_than_the_window_is_named() -> None:
    manager = ContextWindowManager(1000, policy="fifo")
    manager.add("user_message", "x" * 8000)
    decision = manager.turn_start()
    assert decision.floor == 2000
    assert "block 1.0 of 2,000 tokens is larger than the limit of 1,000" in decision.reasons


@pytest.mark.parametrize("policy", ["unbounded", "recorded"])
def test_rules_without_a_limit_report_no_floor(policy: str, build_trace_of: Any) -> None:
    _, decision = decide(build_trace_of(*[100] * 12), policy=policy)
    assert (decision.action, decision.floor, decision.causes) == ("none", None, ())


def test_eviction_is_no_change_of_velocity(build_trace_of: Any) -> None:
    manager, _ = decide(build_trace_of(*[100] * 9))
    assert sum(manager.monitor._added) == 900
    manager.turn_end()
    manager.turn_start()
    assert list(manager.monitor._added) == [900, 0]
