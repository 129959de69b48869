"""The live monitor and its trend; and that a recorded session says the same as a live one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import ClaudeSession, lines_of, with_health

import ctxctl
from ctxctl.health.metrics import metrics_of
from ctxctl.health.monitor import ContextHealthMonitor
from ctxctl.health.options import HealthOptions
from ctxctl.health.result import METRICS, Trend, TurnMetrics
from ctxctl.health.trend import trend_of


def test_it_is_a_public_name() -> None:
    assert ctxctl.ContextHealthMonitor is ContextHealthMonitor


def test_a_turn() -> None:
    monitor = ContextHealthMonitor(100_000)
    monitor.record_turn(20_000)
    turn = monitor.record_turn(
        30_000, counted=33_600, prompt=30_000, cache_read=20_000, tool_results=15_000, cost=0.5, seconds=12.0
    )
    assert turn == TurnMetrics(
        2, 30_000, 0.3, "green", 10_000, 10_000.0, 0, 0, (), 2 / 3, pytest.approx(0.12), 0.5, 12.0, False
    )
    now = monitor.snapshot()
    assert (now.utilization, now.burn_rate, now.cache_hit_rate, now.tool_result_bloat) == (0.3, 10_000, 2 / 3, 0.5)
    assert now.token_drift == pytest.approx(0.12)
    assert [a.code for a in monitor.alerts()] == ["token_drift"]


def test_critical_live() -> None:
    monitor = ContextHealthMonitor(100_000)
    levels = []
    for tokens in (91_000, 92_000, 93_000, 40_000):
        monitor.record_turn(tokens)
        levels.append([a.level for a in monitor.alerts() if a.code == "utilization_critical"])
    assert levels == [[], [], ["critical"], ["warning"]]


def test_compactions_resumes_and_evictions() -> None:
    monitor = ContextHealthMonitor(None)
    for number in range(10):
        monitor.record_turn(1_000, evictions=2 if number == 9 else 0, compactions=("micro",) if number == 9 else ())
    monitor.record_compaction(9_000, 1_000)
    monitor.record_compaction(1_000, 1_000)
    monitor.record_resume(True)
    monitor.record_resume(False)
    now = monitor.snapshot()
    assert now.utilization is None and now.why["utilization"] == "the window is unknown; --window sets it"
    assert now.eviction_frequency == pytest.approx(0.4)  # of the last 5
    assert now.compaction_frequency == {"full": 0, "micro": 10, "rollback": 0}
    assert (now.compression_ratio, now.resume_success_rate) == (5, 0.5)


def test_what_was_not_measured_has_a_reason() -> None:
    empty = ContextHealthMonitor().snapshot()
    assert all(getattr(empty, name) is None for name in METRICS)
    assert set(empty.why) == set(METRICS)
    assert ContextHealthMonitor().alerts() == ()


def test_what_is_not_chosen_is_not_measured() -> None:
    monitor = ContextHealthMonitor(1_000, options=HealthOptions(metrics=("burn_rate",)))
    for _ in range(3):
        monitor.record_turn(950)
    now = monitor.snapshot()
    assert now.utilization is None and now.why["utilization"] == "not chosen"
    assert now.burn_rate is not None and "burn_rate" not in now.why
    assert monitor.alerts() == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": -1},
        {"tokens": 10, "evictions": -1},
        {"tokens": 10, "compactions": ("total",)},
        {"tokens": 10, "fidelity": 1.1},
        {"tokens": 10, "fidelity": float("nan")},
        {"tokens": 10, "cache_read": 11},
    ],
)
def test_numbers_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be|is no kind"):
        ContextHealthMonitor().record_turn(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 or more"):
        ContextHealthMonitor().record_compaction(-1, 0)


def test_a_hundred_turns_are_kept() -> None:
    monitor = ContextHealthMonitor()
    for number in range(250):
        monitor.record_turn(number)
    assert [t.turn for t in monitor.turns] == list(range(151, 251))
    assert monitor.trend().data_points == 10
    assert monitor.snapshot().compaction_frequency == {"full": 0, "micro": 0, "rollback": 0}


def test_trend() -> None:
    assert trend_of([]) == Trend(0, insufficient_data=True)
    assert trend_of([TurnMetrics(1, 10, 0.1)]) == Trend(1, insufficient_data=True)
    series = [TurnMetrics(n, 0, n / 100, burn_rate=float(n), fidelity=f) for n, f in enumerate([None] * 12, 1)]
    series[4] = TurnMetrics(5, 0, 0.05, burn_rate=5.0, fidelity=0.5)
    series[6] = TurnMetrics(7, 0, 0.07, burn_rate=7.0, fidelity=1.0)
    found = trend_of(series)
    assert found.data_points == 10
    assert found.utilization_change == pytest.approx(0.09)  # 3 to 12
    assert (found.burn_rate_change, found.avg_fidelity, found.insufficient_data) == (9.0, 0.75, False)
    assert trend_of([TurnMetrics(1, 10), TurnMetrics(2, 20)]) == Trend(2)


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=40))
def test_sums(tokens: list[int]) -> None:
    monitor = ContextHealthMonitor(100_000)
    for held in tokens:
        monitor.record_turn(held)
    series = monitor.turns
    assert [t.tokens for t in series] == tokens
    for before, after in pairwise(series):
        assert after.added == (after.tokens - before.tokens if after.tokens >= before.tokens else None)
    known = [t.added for t in list(series)[1:] if t.added is not None][-10:]  # the first request is no growth
    assert series[-1].burn_rate == (pytest.approx(sum(known) / len(known)) if known else None)


def recorded(tmp_path: Path) -> ClaudeSession:
    session = ClaudeSession(tmp_path)
    session.user("Rename the cache to store in every module.")
    ids = [session.read(f"/code/app/src/m{n}.py", lines_of(80, f"m{n}")) for n in range(8)]
    session.clear(*ids[:4])
    session.bash("pytest -q", "12 passed")
    session.compact("Goal: rename the cache. Done: m0 to m7. Next: the tests.")
    session.edit("/code/app/tests/t.py", "cache", "store")
    session.answer("All done.")
    return session


def test_a_recorded_session_says_what_a_live_one_does(tmp_path: Path) -> None:
    session = recorded(tmp_path).examine()
    metrics, series = metrics_of(session)
    live = ContextHealthMonitor(200_000)
    for turn in series:
        usage = next(u for u in session.transcript.usage if u.turn == turn.turn)
        live.record_turn(
            turn.tokens,
            counted=session.analysis.counted[turn.turn - 1],
            prompt=usage.prompt,
            cache_read=usage.cache_read,
            evictions=turn.evictions,
            evicted_tokens=turn.evicted_tokens,
            compactions=turn.compactions,
            cost=turn.cost,
            seconds=turn.seconds,
        )
    assert live.turns == tuple(series)
    now = live.snapshot()
    for name in ("utilization", "burn_rate", "cache_hit_rate", "eviction_frequency", "compaction_frequency"):
        assert getattr(now, name) == getattr(metrics, name), name


def test_metrics_of_a_recorded_session(tmp_path: Path) -> None:
    session = recorded(tmp_path).examine()
    metrics, series = metrics_of(session)
    assert [t.turn for t in series] == list(range(1, 12))
    clearing = next(t for t in series if t.compactions == ("micro",))
    assert (clearing.turn, clearing.evictions) == (9, 4)
    assert clearing.evicted_tokens == sum(
        session.trace.tokens[b] for b, stay in enumerate(session.stays) if stay.cause == "cleared"
    )
    cut = next(t for t in series if t.compactions == ("full",))
    assert (cut.turn, cut.added) == (10, None)
    assert metrics.compaction_frequency == {"full": 100 / 11, "micro": 100 / 11, "rollback": 0}
    assert metrics.compression_ratio is not None and metrics.compression_ratio > 10
    assert series[0].hit_rate == 0 and series[1].hit_rate is not None and series[1].hit_rate > 0.8
    assert series[0].cost is not None and series[1].seconds is not None
    assert metrics.overflow_turns == 0
    assert metrics.fidelity is None and "fidelity" in metrics.why
    assert all((getattr(metrics, name) is None) == (name in metrics.why) for name in METRICS)


def test_compression_ratio_by_hand(tmp_path: Path) -> None:
    session = recorded(tmp_path).examine()
    trace, turns = session.trace, {s.left for s in session.stays if s.cause == "compacted"}
    assert turns == {10}
    before = sum(trace.tokens[b] for b, s in enumerate(session.stays) if s.cause in ("compacted", "cleared"))
    summary = sum(trace.tokens[b] for b, block in enumerate(trace.blocks) if block.kind == "summary")
    metrics, _ = metrics_of(session)
    assert metrics.compression_ratio == pytest.approx(before / (summary + 4 * 8))


def test_requests_that_were_refused_as_too_long(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("go")
    made.bash("make", "made")
    made.refused()
    made.compact("Goal: make it.")
    made.bash("make test", "12 passed")
    made.answer("Done.")
    metrics, series = metrics_of(made.examine())
    assert metrics.overflow_turns == 1
    assert [t.turn for t in series if t.overflow] == [2]


def test_windows_that_went_on_well(tmp_path: Path) -> None:
    metrics, _ = metrics_of(recorded(tmp_path).examine())
    assert metrics.resume_success_rate == 1.0


def test_only_chosen_metrics_of_a_recorded_session(tmp_path: Path) -> None:
    metrics, series = metrics_of(recorded(tmp_path).examine(with_health(metrics=("utilization",))))
    assert metrics.utilization is not None and len(series) == 11
    assert {name for name in METRICS if metrics.why.get(name) == "not chosen"} == set(METRICS) - {"utilization"}


def test_compactions_that_a_rewind_left_behind_do_not_count(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Rename the cache.")
    made.read("/code/app/a.py", lines_of(100, "a"))
    there = made.leaf
    made.compact("Goal: rename the cache.")
    made.answer("Going on.")
    assert there is not None
    made.rewind(there)
    made.user("No, keep it.")
    made.answer("Kept.", prompt=15_000)
    made.answer("Really.", prompt=15_100)
    metrics, series = metrics_of(made.examine())
    assert metrics.compaction_frequency == {"full": 0, "micro": 0, "rollback": 25}
    assert metrics.compression_ratio is None and [t.compactions for t in series if t.compactions] == [("rollback",)]


def test_a_compaction_after_the_last_call_counts(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Rename the cache.")
    for number in range(4):
        made.read(f"/code/app/{number}.py", lines_of(100, f"a{number}"))
    made.compact("Goal: rename the cache.")
    metrics, series = metrics_of(made.examine())
    assert len(series) == 4 and metrics.compaction_frequency == {"full": 25, "micro": 0, "rollback": 0}
    assert metrics.compression_ratio is not None and metrics.compression_ratio > 100
