"""Gates of health: at, just below and just above each limit, and where there is nothing to measure."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from healths import a_session, measure, said

from ctxctl.budgets.gate_options import GateOptions
from ctxctl.errors import UsageError
from ctxctl.health import alerts, gates
from ctxctl.health.codes import ALERTS, rules
from ctxctl.health.compare import Base, compared
from ctxctl.health.detectors.base import DETECTORS
from ctxctl.health.figures import measured
from ctxctl.health.gates import fails, gates_of, known_codes, total_gates, words_of
from ctxctl.health.monitor import WHY
from ctxctl.health.result import Health
from ctxctl.model.finding import Gate
from ctxctl.model.usage import UsageTotals


def one(health: Health, fail_on: set[str] | None = None, **limits: Any) -> Gate:
    (gate,) = gates_of(health, GateOptions(**limits), fail_on or set())
    return gate


def usage(total: int) -> UsageTotals:
    return UsageTotals(total=total, requests=3)


# name, limit, and sessions at it, just within and just beyond
AT = [
    ("max_cost", 5.0, {"cost": 5.0}, {"cost": 4.99}, {"cost": 5.01}),
    ("max_cost_per_turn", 0.1, {"cost": 5.0}, {"cost": 4.9}, {"cost": 5.1}),
    ("max_peak", 1000, {"peak": 1000}, {"peak": 999}, {"peak": 1001}),
    ("max_tokens", 1000, {"tokens": 1000}, {"tokens": 999}, {"tokens": 1001}),
    ("max_total", 1000, {"usage": usage(1000)}, {"usage": usage(999)}, {"usage": usage(1001)}),
    ("max_turns", 50, {"turns": 50}, {"turns": 49}, {"turns": 51}),
    ("max_peak_utilization", 0.8, {"peak_utilization": 0.8}, {"peak_utilization": 0.79}, {"peak_utilization": 0.81}),
    ("max_compactions", 2, {"compactions": 2}, {"compactions": 1}, {"compactions": 3}),
]
OF_METRICS = [
    ("max_evictions", 5, "eviction_frequency", 5.0, 4.9, 5.1),
    ("max_overflow_turns", 0, "overflow_turns", 0, 0, 1),
    ("min_hit_rate", 0.8, "cache_hit_rate", 0.8, 0.81, 0.79),
    ("min_fidelity", 0.75, "fidelity", 0.75, 0.76, 0.74),
    ("min_compression", 2.0, "compression_ratio", 2.0, 2.1, 1.9),
    ("min_resume_success", 0.95, "resume_success_rate", 0.95, 1.0, 0.94),
    ("max_drift", 0.1, "token_drift", -0.1, 0.09, -0.11),
    ("max_bloat", 0.5, "tool_result_bloat", 0.5, 0.49, 0.51),
    ("max_burn_rate", 3000, "burn_rate", 3000.0, 2999.0, 3001.0),
]


@pytest.mark.parametrize(("name", "limit", "at", "within", "beyond"), AT)
def test_limits_of_facts(name: str, limit: float, at: Any, within: Any, beyond: Any) -> None:
    for changes, ok in ((at, True), (within, True), (beyond, False)):
        gate = one(a_session(**changes), **{name: limit})
        assert (gate.name, gate.limit, gate.ok) == (name.replace("_", "-"), limit, ok)
        assert gate.text.startswith(f"{gate.name} ") and ": it is " in gate.text


@pytest.mark.parametrize(("name", "limit", "metric", "at", "within", "beyond"), OF_METRICS)
def test_limits_of_metrics(name: str, limit: float, metric: str, at: float, within: float, beyond: float) -> None:
    for value, ok in ((at, True), (within, True), (beyond, False)):
        gate = one(a_session(metrics=measure(**{metric: value})), **{name: limit})
        assert gate.ok is ok and gate.value == abs(value)


@pytest.mark.parametrize(("name", "limit", "metric"), [row[:3] for row in OF_METRICS])
def test_a_metric_that_was_not_measured_does_not_pass_and_says_why(name: str, limit: float, metric: str) -> None:
    gate = one(a_session(metrics=measure(**{metric: None}, why={metric: "it rained"})), **{name: limit})
    assert (gate.value, gate.ok) == (None, False) and gate.text.endswith("could not be checked: it rained")


@pytest.mark.parametrize("changes", [{"cost": None}, {"peak": None}, {"tokens": None}, {"usage": None}])
def test_a_fact_that_is_not_known_does_not_pass_and_says_why(changes: dict[str, None]) -> None:
    limits = {"cost": "max_cost", "peak": "max_peak", "tokens": "max_tokens", "usage": "max_total"}
    (name,) = changes
    gate = one(a_session(**changes), **{limits[name]: 5})
    assert (gate.value, gate.ok) == (None, False) and re.search(r"could not be checked: \w{2,}", gate.text)


def test_without_a_compaction_or_a_resume_nothing_can_have_been_lost_by_one() -> None:
    why = {
        "fidelity": "nothing was compacted",
        "compression_ratio": "x",
        **{"resume_success_rate": WHY["resume_success_rate"]},
    }
    nothing = measure(fidelity=None, compression_ratio=None, resume_success_rate=None, why=why)
    calm = a_session(compactions=0, series=(), metrics=nothing)
    for name, limit in (("min_fidelity", 0.9), ("min_compression", 2.0), ("min_resume_success", 0.9)):
        gate = one(calm, **{name: limit})
        assert (gate.value, gate.ok) == (None, True) and "could not" not in gate.text
    assert not one(a_session(metrics=nothing), min_fidelity=0.9).ok


def test_a_value_that_looks_like_its_limit_is_told_in_full() -> None:
    assert (
        one(a_session(peak_utilization=0.80004), max_peak_utilization=0.8).text
        == "max-peak-utilization 80.0%: it is 80.004%"
    )
    assert one(a_session(cost=7.125), max_cost=5).text == "max-cost $5.00: it is $7.12"
    assert one(a_session(peak=150_000), max_peak=200_000).text == "max-peak 200,000: it is 150,000"


def test_every_limit_is_checked_by_health_but_those_of_budget_and_of_a_run() -> None:
    checked = {name for name, *_ in (*AT, *OF_METRICS)}
    assert checked == {f.name for f in fields(GateOptions)} - {"components", "max_total_cost"}
    assert gates_of(a_session(), GateOptions()) == ()


# -- what must not be found ----------------------------------------------------------------------------------------

FOUND = a_session(alerts=(said("token_drift"),), findings=(said("reload", "info"), said("repeated_calls", turn=9)))


@pytest.mark.parametrize(("level", "ok"), [("info", False), ("warning", False), ("critical", True)])
def test_levels_are_at_or_above(level: str, ok: bool) -> None:
    gate = one(FOUND, {level})
    assert (gate.name, gate.limit, gate.value, gate.ok) == ("fail-on", level, "warning", ok)
    assert one(a_session(), {level}) == Gate(
        "fail-on", level, "none", True, f"fail-on {level}: none of that level or above"
    )


def test_codes() -> None:
    assert one(FOUND, {"repeated_calls"}).text == "fail-on repeated_calls: 1 found (turn 9)"
    assert not one(FOUND, {"token_drift"}).ok and not one(FOUND, {"reload"}).ok and one(FOUND, {"jit_thrash"}).ok


def test_damage() -> None:
    assert one(a_session(), {"damage"}).ok
    assert one(a_session(damage=2), {"damage"}).text == "fail-on damage: 2 found"
    assert not one(a_session(damage=None), {"damage"}).ok


def test_words_as_users_write_them() -> None:
    assert words_of(["warning,repeated-calls", " Token_Drift ", "regression"]) == {
        *("warning", "repeated_calls", "token_drift", "regression")
    }
    assert words_of([]) == frozenset()
    assert known_codes(["reload", "reload,low-fidelity"], "--ignore") == ("reload", "low_fidelity")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("warnin", "did you mean 'warning'?"), ("jit-trash", "did you mean 'jit_thrash'?"), ("zzz", "known: info, ")],
)
def test_an_unknown_word_is_told_with_what_was_meant(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"--fail-on: unknown '{word}'") as told:
        words_of(["critical", word])
    assert told.value.hint is not None and told.value.hint.startswith(hint)


def test_levels_are_no_codes() -> None:
    for word in ("warning", "regression", "damage"):
        with pytest.raises(UsageError):
            known_codes([word], "--ignore")
    with pytest.raises(UsageError, match="names nothing"):
        words_of([","])


def test_fails() -> None:
    assert fails(said("reload", "critical"), {"warning"}) and fails(said("reload", "info"), {"reload"})
    assert not fails(said("reload", "info"), {"warning", "token_drift"})


# -- over all sessions ---------------------------------------------------------------------------------------------


def total(*healths: Health, limit: float | None = 10.0) -> Gate:
    (gate,) = total_gates(healths, GateOptions(max_total_cost=limit))
    return gate


def test_total_cost() -> None:
    assert total(a_session(cost=5.0), a_session(cost=5.0)).ok
    over = total(a_session(cost=5.0), a_session(cost=5.5))
    assert not over.ok and over.text == "max-total-cost $10.00: it is $10.50"
    unknown = total(a_session(cost=5.0), a_session(cost=None))
    assert (unknown.value, unknown.ok) == (None, False) and "1 of 2 sessions" in unknown.text
    least = total(a_session(cost=11.0), a_session(cost=None))
    assert not least.ok and least.text.endswith("it is at least $11.00")
    assert total(a_session(cost=5.0), a_session(cost=None, turns=0, requests=0)).ok


def test_regression() -> None:
    base = Base("main", (measured(a_session()),))
    for now, ok in ((a_session(), True), (replace(a_session(), peak=150_000), False)):
        (gate,) = total_gates([now], GateOptions(), {"regression"}, compared(base, [measured(now)]))
        assert gate.ok is ok and ("1 got worse: peak" in gate.text) is not ok
    (gate,) = total_gates([a_session()], GateOptions(), {"regression"})
    assert not gate.ok and "--compare-to" in gate.text


# -- the codes -----------------------------------------------------------------------------------------------------


def test_every_alert_that_is_raised_is_described() -> None:
    source = Path(str(alerts.__file__)).read_text(encoding="utf-8")
    raised = set(re.findall(r'Finding\(\s*"(\w+)"', source))
    assert raised == {rule.code for rule in ALERTS}
    codes = [rule.code for rule in rules()]
    assert codes == sorted({*raised, *DETECTORS.names()}) and gates.DAMAGE not in codes
