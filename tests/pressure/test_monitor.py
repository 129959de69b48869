"""The pressure monitor, to the digit of requirements P1 to P4."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl import ContextPressureMonitor
from ctxctl.pressure.monitor import LevelChange, Reading, Spike
from ctxctl.pressure.options import LEVELS, PressureOptions, PressureThresholds


def run(window: int | None, tokens: list[int]) -> tuple[ContextPressureMonitor, list[Reading]]:
    monitor = ContextPressureMonitor(window)
    return monitor, [monitor.update(n) for n in tokens]


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, "green"),
        (49_999, "green"),
        (50_000, "yellow"),
        (74_999, "yellow"),
        (75_000, "orange"),
        (89_999, "orange"),
        (90_000, "red"),
        (100_000, "red"),
        (250_000, "red"),
    ],
)
def test_a_level_holds_from_its_threshold_on(tokens: int, level: str) -> None:
    _, (reading,) = run(100_000, [tokens])
    assert reading.level == level
    assert reading.utilization == tokens / 100_000  # not clamped at 1


def test_thresholds_can_be_set() -> None:
    thresholds = PressureThresholds(yellow=0.2, orange=0.4, red=1.0)
    monitor = ContextPressureMonitor(1000, thresholds=thresholds)
    assert [monitor.update(n).level for n in (199, 200, 399, 400, 999, 1000)] == [
        "green",
        "yellow",
        "yellow",
        "orange",
        "orange",
        "red",
    ]


@pytest.mark.parametrize("values", [(0.5, 0.5, 0.9), (0.6, 0.5, 0.9), (0.5, 0.95, 0.9)])
def test_thresholds_must_grow(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="yellow < orange < red"):
        PressureThresholds(*values)


def test_twenty_turns_of_two_thousand() -> None:
    monitor, readings = run(128_000, [2_000 * n for n in range(1, 21)])
    chosen = [readings[n - 1] for n in (1, 6, 11, 16)]
    assert [round(r.utilization or 0, 3) for r in chosen] == [0.016, 0.094, 0.172, 0.25]
    assert [r.turns_until_overflow for r in chosen] == [63, 58, 53, 48]
    assert [r.turn for r in readings] == list(range(1, 21))
    assert {r.velocity for r in readings} == {2_000.0}
    assert [r.remaining for r in readings][:2] == [126_000, 124_000]
    assert monitor.events == [] and monitor.spikes == []


def test_velocity_is_the_mean_of_at_most_five_turns() -> None:
    _, readings = run(1_000_000, [100, 300, 600, 1_000, 1_500, 2_500])
    assert [r.velocity for r in readings] == [100, 150, 200, 250, 300, 480]
    assert [r.added for r in readings] == [100, 200, 300, 400, 500, 1_000]


def test_drops_do_not_count() -> None:
    _, readings = run(10_000, [1_000, 2_000, 500, 1_500])
    assert [r.added for r in readings] == [1_000, 1_000, None, 1_000]
    assert [r.velocity for r in readings] == [1_000.0] * 4


def test_what_a_turn_added_can_be_told_beside_a_drop() -> None:
    monitor = ContextPressureMonitor(10_000)
    monitor.update(1_000)
    reading = monitor.update(500, added=200)
    assert (reading.added, reading.velocity) == (200, 600)


@pytest.mark.parametrize(
    ("tokens", "turns"),
    [
        ([1_000], 9),
        ([1_000, 2_500], 6),  # 7,500 / 1,250
        ([9_999], 0),
        ([10_000], -1),
        ([10_001], -1),
        ([0], None),
        ([0, 0, 0], None),
        ([5_000, 5_000, 5_000, 5_000, 5_000, 5_000], None),  # nothing was added for five turns
    ],
)
def test_turns_until_overflow(tokens: list[int], turns: int | None) -> None:
    assert run(10_000, tokens)[1][-1].turns_until_overflow == turns


def test_remaining_is_never_below_zero() -> None:
    assert [r.remaining for r in run(10_000, [4_000, 10_000, 12_000])[1]] == [6_000, 0, 0]


def test_an_unknown_window_leaves_tokens_and_velocity() -> None:
    monitor, readings = run(None, [1_000, 3_000])
    last = readings[-1]
    assert (last.tokens, last.velocity, last.added) == (3_000, 1_500, 2_000)
    assert (last.utilization, last.level, last.turns_until_overflow, last.remaining) == (None, None, None, None)
    assert monitor.level is None and monitor.events == []


def test_a_spike_is_more_than_three_times_the_mean_of_the_other_four() -> None:
    tokens = [100, 200, 300, 400, 700]
    assert run(None, tokens)[0].spikes == []  # 300 is exactly three times 100
    monitor, _ = run(None, [*tokens[:4], 701])
    assert monitor.spikes == [Spike(turn=5, tokens=301, mean=100.0, ratio=3.01)]


def test_no_spike_before_five_turns_are_known() -> None:
    assert run(None, [100, 200, 300, 100_000])[0].spikes == []


def test_no_spike_when_the_mean_is_zero() -> None:
    monitor, _ = run(None, [0, 0, 0, 0, 50_000])
    assert monitor.spikes == []


def test_a_spike_is_measured_over_the_newest_five_turns() -> None:
    monitor, _ = run(None, [10_000, 10_100, 10_200, 10_300, 10_400, 12_400])
    assert monitor.spikes == [Spike(6, 2_000, 100.0, 20.0)]


def test_window_and_ratio_of_spikes_can_be_set() -> None:
    monitor = ContextPressureMonitor(options=PressureOptions(velocity_window=3, spike_ratio=1.5))
    for tokens in (100, 200, 351):
        monitor.update(tokens)
    assert monitor.spikes == [Spike(3, 151, 100.0, 1.51)]


def test_one_event_per_change_of_level() -> None:
    monitor, _ = run(100, [10, 55, 60, 80, 95, 96, 40, 41])
    assert [(e.turn, e.before, e.after, e.direction) for e in monitor.events] == [
        (2, "green", "yellow", "up"),
        (4, "yellow", "orange", "up"),
        (5, "orange", "red", "up"),
        (7, "red", "green", "down"),
    ]
    assert monitor.events[0].utilization == 0.55
    assert monitor.level == "green"


def test_callbacks_fire_upwards_alone() -> None:
    monitor = ContextPressureMonitor(100)
    fired: list[LevelChange] = []
    for level in LEVELS:
        monitor.on_level(level, fired.append)
    for tokens in (55, 80, 95, 80, 55, 10, 60):
        monitor.update(tokens)
    assert [(e.turn, e.after) for e in fired] == [(1, "yellow"), (2, "orange"), (3, "red"), (7, "yellow")]


def test_a_jump_fires_the_level_that_it_reaches() -> None:
    monitor = ContextPressureMonitor(100)
    fired: list[str] = []
    for level in LEVELS:
        monitor.on_level(level, lambda e: fired.append(e.after))
    monitor.update(95)
    assert fired == ["red"]


def test_downwards_on_request() -> None:
    monitor = ContextPressureMonitor(100)
    fired: list[tuple[str, str]] = []
    monitor.on_level("green", lambda e: fired.append((e.after, e.direction)), downwards=True)
    monitor.on_level("yellow", lambda e: fired.append((e.after, e.direction)))
    for tokens in (95, 60, 10):
        monitor.update(tokens)
    assert fired == [("green", "down")]


def test_callbacks_on_spikes() -> None:
    monitor = ContextPressureMonitor()
    fired: list[Spike] = []
    monitor.on_spike(fired.append)
    for tokens in (100, 200, 300, 400, 1_400):
        monitor.update(tokens)
    assert [s.ratio for s in fired] == [10.0] and fired == monitor.spikes


def test_turn_source_and_compaction_are_taken_over() -> None:
    monitor = ContextPressureMonitor(100)
    reading = monitor.update(10, turn=7, source="counted", compaction="full")
    assert (reading.turn, reading.source, reading.compaction) == (7, "counted", "full")
    assert monitor.update(20).turn == 8


@pytest.mark.parametrize("window", [0, -1, True, 1.5])
def test_a_window_must_be_positive(window: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ContextPressureMonitor(window)


def test_what_can_not_be_is_refused() -> None:
    monitor = ContextPressureMonitor(100)
    with pytest.raises(ValueError, match="0 or more"):
        monitor.update(-1)
    with pytest.raises(ValueError, match="unknown level"):
        monitor.on_level("purple", lambda e: None)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=30))
def test_invariants(tokens: list[int]) -> None:
    monitor, readings = run(128_000, tokens)
    for reading in readings:
        assert reading.velocity >= 0
        assert reading.turns_until_overflow is None or reading.turns_until_overflow >= -1
        assert (reading.turns_until_overflow == -1) == (reading.tokens >= 128_000)
    for before, after in zip(["green", *(e.after for e in monitor.events)], monitor.events, strict=False):
        assert after.before == before != after.after
    assert monitor.level == readings[-1].level
    assert len(monitor.spikes) <= max(0, len(tokens) - 4)


def test_without_a_window_of_its_own_it_takes_the_usual_one() -> None:
    monitor = ContextPressureMonitor()
    assert monitor.window == 128_000
    forecasts = [monitor.update(2_000 * n).turns_until_overflow for n in range(1, 21)]
    assert [forecasts[i] for i in (0, 5, 10, 15)] == [63, 58, 53, 48]
    unknown = ContextPressureMonitor(None).update(2_000)
    assert (unknown.utilization, unknown.level, unknown.turns_until_overflow) == (None, None, None)
