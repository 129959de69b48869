"""Limits over budgets: a value at its limit passes, one that could not be measured does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxctl.budgets.advice import findings_of, next_steps
from ctxctl.budgets.components import COMPONENTS, limits_of, use_of
from ctxctl.budgets.forecast import plan_forecast
from ctxctl.budgets.gate_options import GateOptions, component_limit
from ctxctl.budgets.gates import gates_of, total_gates
from ctxctl.budgets.money import Money
from ctxctl.budgets.options import BudgetOptions
from ctxctl.budgets.result import Budget, Totals


def made(window: int | None = 100_000, money: Money | None = None, **used: Any) -> Budget:
    limits = limits_of(window, BudgetOptions()) if window else {}
    uses = tuple(use_of(n, used.get(n, 10), limits.get(n), used.get("source")) for n in COMPONENTS)
    total = sum(u.used or 0 for u in uses[:-1])
    return Budget(
        "runs/my session.jsonl",
        "id",
        "claude-code",
        "a-model",
        window,
        uses,
        total,
        total / window if window else None,
        0,
        used.get("burn", 100.0),
        8.0,
        20,
        2.7,
        money or Money(2.0, 0.5, 0.5, 0.5, 0.5, 0.1, requests=20),
        used.get("plan"),
        Totals(20, 22, 60_000, 900_000, 1, 0),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_cost", 2.0),
        ("max_cost_per_turn", 0.1),
        ("max_peak", 60_000),
        ("max_tokens", 50),
        ("max_total", 900_000),
        ("max_turns", 20),
        ("max_peak_utilization", 0.6),
        ("max_compactions", 1),
        ("max_overflow_turns", 0),
        ("max_burn_rate", 100),
    ],
)
def test_at_the_limit_it_passes_and_above_it_does_not(field: str, value: float) -> None:
    (gate,) = gates_of(made(), GateOptions(**{field: value}))
    assert (gate.name, gate.ok, gate.value) == (field.replace("_", "-"), True, value)
    below = value - 1 if isinstance(value, int) else value - 0.001
    if below >= 0:
        (gate,) = gates_of(made(), GateOptions(**{field: below}))
        assert not gate.ok
        assert gate.text.startswith(f"{gate.name} ")


def test_what_was_not_measured_does_not_pass() -> None:
    nothing = replace(
        made(None, Money(), burn=None), totals=Totals(0), total_used=None, total_utilization=None, burn_rate=None
    )
    asked = GateOptions(
        max_cost=1,
        max_cost_per_turn=1,
        max_peak=1,
        max_tokens=1,
        max_total=1,
        max_peak_utilization=0.5,
        max_burn_rate=1,
    )
    gates = gates_of(nothing, asked, {"soft", "hard"})
    assert len(gates) == 9
    for gate in gates:
        assert (gate.ok, gate.value) == (False, None)
        assert "could not be checked: " in gate.text


@pytest.mark.parametrize(
    ("limit", "tokens"),
    [
        *((limit, 20_000) for limit in ("20k", "20000", "20_000", 20_000, 0.2, "0.2", ".2", "20%")),
        *(("1.5k", 1500), ("1m", 1_000_000), (1.0, 100_000), (1, 1), ("0", 0)),
    ],
)
def test_limits_of_components_as_they_are_written(limit: int | float | str, tokens: int) -> None:
    assert component_limit("tool_results", limit).of(100_000) == tokens
    budget = made(tool_results=tokens)
    (gate,) = gates_of(budget, GateOptions(components={"tool-results": limit}))
    assert (gate.name, gate.limit, gate.value, gate.ok) == ("max tool_results", tokens, tokens, True)
    (gate,) = gates_of(made(tool_results=tokens + 1), GateOptions(components={"tool_result": limit}))
    assert not gate.ok


@pytest.mark.parametrize("limit", ["", "x", "20kk", "-1", "1.5", "120%", "0%", "1.2345k", "nan", True, "1e3"])
def test_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(ValueError, match="tool_results"):
        GateOptions(components={"tool_results": limit})


def test_a_component_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="did you mean 'tool_results'"):
        GateOptions(components={"tool_resluts": 5})


def test_a_share_of_an_unknown_window_can_not_be_checked() -> None:
    share, tokens = gates_of(made(None), GateOptions(components={"tool_results": 0.5, "system_prompt": 10}))
    assert (share.ok, "window is unknown" in share.text) == (False, True)
    assert tokens.ok
    missing = replace(made(), components=tuple(use_of(n, None, None) for n in COMPONENTS))
    (gate,) = gates_of(missing, GateOptions(components={"system_prompt": "5k"}))
    assert (gate.ok, gate.value) == (False, None)


@pytest.mark.parametrize(
    ("tokens", "worst", "soft", "hard"),
    [
        (9599, "ok", True, True),
        (9600, "soft", False, True),
        (11_999, "soft", False, True),
        (12_000, "hard", False, False),
    ],
)
def test_fail_on_the_status_of_components(tokens: int, worst: str, soft: bool, hard: bool) -> None:
    gates = gates_of(made(tool_results=tokens), GateOptions(), {"soft", "hard"})
    assert [(g.limit, g.value, g.ok) for g in gates] == [("soft", worst, soft), ("hard", worst, hard)]


def test_fail_on_the_forecast() -> None:
    def gate(plan: Any) -> Any:
        (found,) = gates_of(made(plan=plan), GateOptions(), {"forecast"})
        return found.ok, found.value

    assert gate(None) == (True, None)
    assert gate(plan_forecast(5, 2.0, 10)) == (True, 10)
    assert gate(plan_forecast(5, 2.0, 9)) == (False, 9)
    assert gate(plan_forecast(5, 2.0, None)) == (True, None), "nothing is being added"
    assert gate(plan_forecast(5, 2.0, None, known=False)) == (False, None)


def test_gates_over_all_sessions() -> None:
    paid, free = made(), made(money=Money(requests=3))
    asked = GateOptions(max_total_cost=4)
    assert total_gates([paid], GateOptions(), 2) == ()
    assert [g.ok for g in total_gates([paid, paid], asked, 4.0)] == [True]
    assert [g.ok for g in total_gates([paid, paid], asked, 4.01)] == [False]
    (unknown,) = total_gates([paid, free], asked, 2.0)
    assert (unknown.ok, unknown.value) == (False, None)
    (over,) = total_gates([paid, free], asked, 5.0)
    assert (over.ok, over.value) == (False, 5.0)


def test_findings_name_what_to_do() -> None:
    budget = made(tool_results=13_000, message_history=60_000, plan=plan_forecast(5, 5.0, 20))
    found = findings_of(budget)
    assert [(f.code, f.level) for f in found] == [
        ("budget_hard", "critical"),
        ("budget_soft", "warning"),
        ("forecast", "warning"),
    ]
    assert "1,000 tokens over its limit of 12,000" in found[0].message
    steps = next_steps(budget)
    assert "ctxctl checkpoint 'runs/my session.jsonl'" in steps[0]
    assert "ctxctl compact -s tool-results --dry-run 'runs/my session.jsonl'" in steps[1]
    assert "ctxctl compact -s progressive" in steps[2]
    assert findings_of(made()) == ()
    assert next_steps(made()) == ()


def test_what_is_known_only_together_is_one_finding() -> None:
    (finding,) = findings_of(made(system_prompt=6600, tool_definitions=4400, source="shared residual"))
    assert "system_prompt with tool_definitions holds 11,000 tokens" in finding.message
    apart = findings_of(made(system_prompt=6600, tool_definitions=4400, source="transcript"))
    assert len(apart) == 2
