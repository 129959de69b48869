"""Alerts: hand-made series at, just below and just above each limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.health.alerts import alerts_of, high_turns
from ctxctl.health.options import AlertOptions
from ctxctl.health.result import METRICS, Metrics, TurnMetrics
from ctxctl.model.finding import Finding

OPTIONS = AlertOptions()
WINDOW = 100_000


def turns(*utilizations: float, **fields: object) -> list[TurnMetrics]:
    made = [TurnMetrics(n, round(u * WINDOW), u) for n, u in enumerate(utilizations, 1)]
    return [replace(turn, **fields) for turn in made]  # type: ignore[arg-type]


def growing(*added: int | None) -> list[TurnMetrics]:
    return [TurnMetrics(n, 50_000, 0.5, added=a) for n, a in enumerate(added, 1)]


def of(code: str, series: Sequence[TurnMetrics], stable: bool = False, **metrics: object) -> Finding | None:
    found = [a for a in alerts_of(series, Metrics(**metrics), OPTIONS, stable) if a.code == code]  # type: ignore[arg-type]
    assert len(found) <= 1
    return found[0] if found else None


def critical(*utilizations: float) -> Finding | None:
    return of("utilization_critical", turns(*utilizations), utilization=utilizations[-1])


@pytest.mark.parametrize(
    ("series", "level"),
    [
        ((0.91, 0.91), None),
        ((0.91, 0.91, 0.91), "critical"),
        ((0.90, 0.90, 0.90), None),
        ((0.9001, 0.9001, 0.9001), "critical"),
        ((0.91, 0.91, 0.90, 0.91, 0.91), None),
        ((0.91, 0.91, 0.5, 0.91, 0.91, 0.95), "critical"),
        ((0.5, 0.95, 0.96, 0.97, 0.3), "warning"),
        ((0.95, 0.96, 0.97, 0.3, 0.95, 0.95), "warning"),
        ((1.2, 1.3, 1.4), "critical"),
    ],
)
def test_critical_takes_three_turns_in_a_row(series: tuple[float, ...], level: str | None) -> None:
    alert = critical(*series)
    assert (alert.level if alert else None) == level


def test_a_session_that_recovered_says_when_it_was_critical() -> None:
    alert = critical(0.5, 0.95, 0.96, 0.97, 0.3)
    assert alert is not None and alert.turn == 4
    assert alert.message == (
        "the window was above 90% for 3 turns in a row (turns 2 to 4, 97% at most); it is at 30% now"
    )
    assert "split the task" in alert.hint


def test_a_window_that_was_cut_down_since_the_last_call_is_not_critical_now() -> None:
    alert = of("utilization_critical", turns(0.95, 0.95, 0.95), utilization=0.2)
    assert alert is not None and alert.level == "warning"


def test_how_long_it_is_critical() -> None:
    assert high_turns(turns(0.95, 0.95, 0.95, 0.95), OPTIONS) == 4
    assert high_turns(turns(0.95, 0.5, 0.95), OPTIONS) == 1
    assert high_turns(turns(0.95, 0.90), OPTIONS) == 0
    assert high_turns([], OPTIONS) == 0
    assert high_turns(turns(0.95, 0.95, 0.95), OPTIONS, 0.91) == 3
    assert high_turns(turns(0.95, 0.95, 0.95), OPTIONS, 0.2) == 0  # cut down since the last call
    alert = critical(0.95, 0.5, 0.95, 0.95, 0.99)
    assert alert is not None and "for 3 turns in a row (since turn 3), now at 99%" in alert.message


@pytest.mark.parametrize(("value", "fires"), [(0.7499, False), (0.75, True), (0.76, True)])
def test_prepare(value: float, fires: bool) -> None:
    alert = of("utilization_prepare", turns(value), utilization=value)
    assert (alert is not None) == fires
    assert alert is None or alert.level == "info"


@pytest.mark.parametrize(
    ("counts", "level"),
    [
        ((5, 5, 5, 5, 5), None),
        ((5, 5, 5, 5, 6), "warning"),
        ((0, 0, 0, 0, 25), None),  # a batch
        ((0, 0, 0, 0, 26), "warning"),
        ((30, 30, 30, 30), None),  # not five turns yet
        ((30, 0, 0, 0, 0, 0), "info"),
        ((25, 0, 0, 0, 0, 0), None),
    ],
)
def test_evictions_per_turn(counts: tuple[int, ...], level: str | None) -> None:
    series = [TurnMetrics(n, 1_000, evictions=count) for n, count in enumerate(counts, 1)]
    alert = of("eviction_frequency", series)
    assert (alert.level if alert else None) == level


@pytest.mark.parametrize(("value", "fires"), [(0.7499, True), (0.75, False), (0.80, False), (0.0, True)])
def test_fidelity(value: float, fires: bool) -> None:
    series = [TurnMetrics(1, 10), TurnMetrics(2, 5, compactions=("full",)), TurnMetrics(3, 6)]
    alert = of("low_fidelity", series, fidelity=value)
    assert (alert is not None) == fires
    assert alert is None or alert.turn == 2


@pytest.mark.parametrize(
    ("added", "fires"),
    [
        ((1_000, 1_000, 1_000, 2_000), False),
        ((1_000, 1_000, 1_000, 2_001), True),
        ((1_000, 1_000, 2_001), False),  # two turns before
        ((1_000, None, 1_000, 2_001), False),
        ((1_000, None, 1_000, 1_000, 2_001), True),
        ((90_000, *[1_000] * 10, 2_001), True),  # eleven turns before: the first is left out
        ((90_000, *[1_000] * 9, 2_001), False),
        ((0, 0, 0, 500), False),
        ((1_000, 1_000, 1_000, 2_001, None), False),
        ((1_000, 1_000, 1_000, 9_000, 100), False),  # not the newest
    ],
)
def test_burn_rate_spike(added: tuple[int | None, ...], fires: bool) -> None:
    assert (of("burn_rate_spike", growing(*added), burn_rate=1.0) is not None) == fires


def test_a_spike_of_less_than_a_hundredth_of_the_window_is_for_information() -> None:
    small, large = growing(10, 10, 10, 900), growing(10, 10, 10, 1_100)
    levels = [alert.level for s in (small, large) if (alert := of("burn_rate_spike", s, burn_rate=1.0))]
    assert levels == ["info", "warning"]


@pytest.mark.parametrize(("value", "fires"), [(1.0, False), (1.01, True), (1.99, True), (2.0, False), (0.9, False)])
def test_compression(value: float, fires: bool) -> None:
    assert (of("weak_compression", turns(0.1), compression_ratio=value) is not None) == fires


@pytest.mark.parametrize(("value", "fires"), [(0.10, False), (-0.10, False), (0.101, True), (-0.101, True)])
def test_drift(value: float, fires: bool) -> None:
    assert (of("token_drift", turns(0.5), token_drift=value) is not None) == fires


def test_a_drift_of_a_few_hundred_tokens_is_frames() -> None:
    small = [TurnMetrics(1, 1_000)]
    assert of("token_drift", small, token_drift=0.5) is None
    assert of("token_drift", small, token_drift=0.51) is not None


@pytest.mark.parametrize(
    ("value", "stable", "fires"), [(0.7999, True, True), (0.80, True, False), (0.1, False, False), (0.0, True, True)]
)
def test_cache_hit_rate(value: float, stable: bool, fires: bool) -> None:
    assert (of("low_cache_hit_rate", turns(0.1), stable, cache_hit_rate=value) is not None) == fires


@pytest.mark.parametrize(("value", "fires"), [(0.9499, True), (0.95, False), (1.0, False)])
def test_resume_success(value: float, fires: bool) -> None:
    assert (of("resume_success", turns(0.1), resume_success_rate=value) is not None) == fires


def test_every_alert_has_a_turn_and_a_hint() -> None:
    series = [replace(t, added=1_000, evictions=9) for t in turns(*[0.95] * 6)]
    series[-1] = replace(series[-1], added=5_000)
    low = {"fidelity": 0.1, "compression_ratio": 1.5, "token_drift": 0.5, "cache_hit_rate": 0.1}
    metrics = Metrics(utilization=0.95, burn_rate=1.0, resume_success_rate=0.1, **low)  # type: ignore[arg-type]
    alerts = alerts_of(series, metrics, OPTIONS, True)
    assert [a.code for a in alerts] == [
        "utilization_critical",
        "utilization_prepare",
        "eviction_frequency",
        "low_fidelity",
        "burn_rate_spike",
        "weak_compression",
        "token_drift",
        "low_cache_hit_rate",
        "resume_success",
    ]
    assert all(a.turn == 6 and a.hint and a.message for a in alerts)


SHARES = st.none() | st.floats(0, 1.5)
ROWS = st.lists(
    st.builds(
        TurnMetrics,
        turn=st.integers(1, 1000),
        tokens=st.integers(0, 200_000),
        utilization=SHARES,
        added=st.none() | st.integers(0, 50_000),
        evictions=st.integers(0, 40),
    ),
    max_size=30,
)
MEASURED = st.builds(
    Metrics,
    utilization=SHARES,
    compression_ratio=st.none() | st.floats(0.1, 10),
    burn_rate=st.none() | st.floats(0, 1e5),
    fidelity=SHARES,
    cache_hit_rate=SHARES,
    resume_success_rate=SHARES,
    token_drift=st.none() | st.floats(-1, 6),
)


@given(series=ROWS, stable=st.booleans())
def test_what_was_not_measured_raises_nothing(series: list[TurnMetrics], stable: bool) -> None:
    empty = Metrics(why=dict.fromkeys(METRICS, "not measured"))
    quiet = [replace(turn, evictions=0) for turn in series]
    assert alerts_of(quiet, empty, OPTIONS, stable) == ()


UP = ("utilization_critical", "utilization_info", "eviction_warning", "burn_rate_spike_ratio", "token_drift_warning")
DOWN = ("fidelity_warning", "compression_ratio_warning", "cache_hit_rate_warning", "resume_success_warning")


@given(series=ROWS, metrics=MEASURED, name=st.sampled_from(UP + DOWN), factor=st.floats(1, 3), more=st.integers(0, 5))
def test_a_more_tolerant_limit_never_adds_an_alert(
    series: list[TurnMetrics], metrics: Metrics, name: str, factor: float, more: int
) -> None:
    limit = getattr(OPTIONS, name)
    loose = replace(
        OPTIONS,
        critical_turns=OPTIONS.critical_turns + more,
        **{name: limit * factor if name in UP else limit / factor},
    )
    strict = {a.code for a in alerts_of(series, metrics, OPTIONS, True)}
    assert {a.code for a in alerts_of(series, metrics, loose, True)} <= strict
