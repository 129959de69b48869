"""Gates: at, just below and just above each limit, and where there is nothing to measure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxctl.model.finding import Gate
from ctxctl.model.transcript import Diagnostic, Transcript
from ctxctl.model.usage import UsageTotals
from ctxctl.pressure.gates import DAMAGE, check
from ctxctl.pressure.monitor import ContextPressureMonitor
from ctxctl.pressure.options import PressureThresholds
from ctxctl.pressure.readings import Readings
from ctxctl.pressure.result import Analysis, ContextState, Counter, Peak, SpikeFound
from ctxctl.pressure.window import WindowSize

THRESHOLDS = PressureThresholds()


COUNTER = Counter("o200k_base", True, False, 1.0, 0.0, 0.0)


def analysis(tokens: int | None, window: int | None = 1_000, peak: int | None = None) -> Analysis:
    transcript = Transcript("id", "claude-code", "x.jsonl")
    context = ContextState(tokens, tokens, None, None, None, None, None, None)
    top = None if peak is None else Peak(peak, None, 1)
    size = WindowSize(window, "config" if window else "unknown")
    return Analysis(
        transcript, size, UsageTotals(), {}, (), context, Readings(), top, (), (), None, (), counter=COUNTER
    )


def one(of: Analysis, **limits: object) -> Gate:
    none = {"fail_on": set(), "max_utilization": None, "max_tokens": None, "max_peak": None}
    (gate,) = check(of, THRESHOLDS, **{**none, **limits})  # type: ignore[arg-type]
    return gate


@pytest.mark.parametrize(("tokens", "ok"), [(799, True), (800, True), (801, False)])
def test_max_utilization(tokens: int, ok: bool) -> None:
    gate = one(analysis(tokens), max_utilization=0.8)
    assert (gate.name, gate.limit, gate.value, gate.ok) == ("max-utilization", 0.8, tokens / 1_000, ok)


@pytest.mark.parametrize(("tokens", "ok"), [(499, True), (500, True), (501, False)])
def test_max_tokens(tokens: int, ok: bool) -> None:
    gate = one(analysis(tokens, None), max_tokens=500)
    assert (gate.name, gate.limit, gate.value, gate.ok) == ("max-tokens", 500, tokens, ok)


@pytest.mark.parametrize(("peak", "ok"), [(699, True), (700, True), (701, False)])
def test_max_peak(peak: int, ok: bool) -> None:
    gate = one(analysis(10, None, peak), max_peak=700)
    assert (gate.name, gate.limit, gate.value, gate.ok) == ("max-peak", 700, peak, ok)


@pytest.mark.parametrize(
    ("level", "tokens", "ok"),
    [
        ("yellow", 499, True),
        ("yellow", 500, False),
        ("orange", 749, True),
        ("orange", 750, False),
        ("red", 899, True),
        ("red", 900, False),
        ("yellow", 950, False),
        ("red", 750, True),
    ],
)
def test_fail_on_a_level_or_above(level: str, tokens: int, ok: bool) -> None:
    assert one(analysis(tokens), fail_on={level}).ok is ok


def test_what_can_not_be_measured_does_not_pass() -> None:
    for limits in ({"fail_on": {"red"}}, {"max_utilization": 0.9}):
        gate = one(analysis(10, None), **limits)
        assert gate.value is None and not gate.ok
        assert "window is unknown" in gate.text


def test_fail_on_spike() -> None:
    measured = replace(analysis(10), pressure=Readings([ContextPressureMonitor().update(10)]))
    spiked = replace(measured, spikes=(SpikeFound(5, 900, 100.0, 9.0, None),))
    assert one(measured, fail_on={"spike"}).ok
    unknown = one(analysis(10), fail_on={"spike"})  # no turn: nothing was looked at
    assert unknown.value is None and not unknown.ok and "no turn was measured" in unknown.text
    assert not one(spiked, fail_on={"spike"}).ok


@pytest.mark.parametrize("code", sorted(DAMAGE))
def test_fail_on_damage(code: str) -> None:
    damaged = replace(analysis(10), diagnostics=(Diagnostic("warning", code, "bad", 3),))
    assert not one(damaged, fail_on={"damage"}).ok


def test_an_odd_shape_or_a_gap_in_the_tree_is_not_damage() -> None:
    notes = tuple(Diagnostic("warning", code, "odd", 3) for code in ("odd_shape", "dangling_parent", "drift"))
    assert one(replace(analysis(10), diagnostics=notes), fail_on={"damage"}).ok


def test_only_what_was_asked_for_in_a_fixed_order() -> None:
    gates = check(analysis(10), THRESHOLDS, {"red", "yellow", "spike", "damage"}, 0.5, 100, 100)
    assert [g.name for g in gates] == [
        "fail-on",
        "fail-on",
        "fail-on spike",
        "fail-on damage",
        "max-utilization",
        "max-tokens",
        "max-peak",
    ]
    assert [g.limit for g in gates[:2]] == ["yellow", "red"]
    assert check(analysis(10), THRESHOLDS, set(), None, None, None) == ()


def test_lines_for_people() -> None:
    assert one(analysis(950), fail_on={"red"}).text == "fail-on red: it is red"
    assert one(analysis(950), max_utilization=0.9).text == "max-utilization 90.0%: it is 95.0%"
    assert one(analysis(12_345, None), max_tokens=10_000).text == "max-tokens 10,000: it is 12,345"


def test_a_peak_that_was_not_measured_does_not_pass() -> None:
    gate = one(analysis(None, None, None), max_peak=700)
    assert gate.value is None and not gate.ok


def test_tokens_that_were_not_measured_do_not_pass() -> None:
    gate = one(analysis(None, None, None), max_tokens=700)
    assert gate.value is None and not gate.ok
