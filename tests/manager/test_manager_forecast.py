"""The forecast of a plan that the loop told: when fewer turns remain than it needs, the manager acts at once (B4)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.budgets.options import BudgetOptions
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.manager.options import ManagerOptions
from ctxctl.model.decision import Decision


def text(tokens: int) -> str:
    """So many tokens as the manager counts without a tokenizer: a quarter of the characters."""
    return ("word " * tokens)[: 4 * tokens]


class Loop:
    """An agent that reads one file of 1,000 tokens a turn, in a window of 100,000."""

    def __init__(self, **options: Any) -> None:
        self.manager = ContextWindowManager(100_000, **options)
        self.manager.add("system", text(20_000))
        self.manager.add("user_message", "Fix the login.")
        self.calls = 0

    def turn(self) -> Decision:
        decision = self.manager.turn_start()
        self.manager.window.check()
        self.calls += 1
        self.manager.turn_end("", calls=[(f"c{self.calls}", "Read", "")])
        self.manager.tool_result(text(1000), call_id=f"c{self.calls}")
        return decision

    def turns(self, count: int) -> list[Decision]:
        return [self.turn() for _ in range(count)]


def bare(decision: Decision) -> tuple[str, bool]:
    return decision.action, "forecast" in decision.reasons


def test_at_once_whatever_the_level() -> None:
    loop = Loop()
    assert [bare(d) for d in loop.turns(5)] == [("none", False)] * 5
    forecast = loop.manager.forecast()
    assert forecast is None
    loop.manager.plan(100)
    decision = loop.turn()
    assert bare(decision) == ("act", True)
    assert decision.level == "green"
    assert not decision.edits, "there is nothing to free below the target"
    assert "the plan needs 100" in decision.reasons[-1]


def test_the_numbers() -> None:
    loop = Loop()
    loop.turns(5)
    loop.manager.plan(10, turns_per_step=2.5)
    loop.turn()
    found = loop.manager.forecast()
    assert found is not None
    rate = (loop.manager.window.tokens - 20_004) / 6
    left = int((100_000 - 5000 - loop.manager.window.tokens) / rate)
    assert found.turns_needed == 25
    assert found.turns_remaining == pytest.approx(left, abs=1)
    assert found.act is False


@pytest.mark.parametrize("short", [0, 1], ids=["just fits", "one turn short"])
def test_at_the_edge(short: int) -> None:
    loop = Loop()
    loop.turns(5)
    loop.manager.plan(1)
    probe = loop.manager.forecast()
    assert probe is not None and probe.turns_remaining is not None
    # what is in the window now is what the next turn starts with
    loop.manager.plan(probe.turns_remaining + short)
    assert bare(loop.turn()) == (("act", True) if short else ("none", False))


def test_only_the_thresholds_without_the_trigger() -> None:
    loop = Loop(options=ManagerOptions(forecast_trigger=False))
    loop.turns(5)
    loop.manager.plan(10_000)
    assert bare(loop.turn()) == ("none", False)
    found = loop.manager.forecast()
    assert found is not None and found.act, "it is still told to who asks"


def test_a_plan_can_be_withdrawn_and_be_done() -> None:
    loop = Loop()
    loop.turns(5)
    loop.manager.plan(10_000)
    assert bare(loop.turn()) == ("act", True)
    loop.manager.plan(0)
    assert bare(loop.turn()) == ("none", False)
    loop.manager.plan(10_000)
    assert bare(loop.turn()) == ("act", True)
    loop.manager.plan(None)
    assert bare(loop.turn()) == ("none", False)
    assert loop.manager.forecast() is None


def test_turns_per_step_are_measured() -> None:
    loop = Loop()
    loop.turns(2)
    loop.manager.plan(10)
    found = loop.manager.forecast()
    assert found is not None and found.turns_per_step == 1, "no step is done yet"
    loop.turns(6)
    loop.manager.plan(8)
    found = loop.manager.forecast()
    assert found is not None and (found.turns_per_step, found.turns_needed) == (3, 24)
    loop.manager.plan(20)  # another plan
    found = loop.manager.forecast()
    assert found is not None and found.turns_per_step == 1


def test_it_evicts_to_the_target_and_not_at_every_turn() -> None:
    loop = Loop()
    loop.turns(45)  # 65 % full: yellow, above the target of 60 %
    loop.manager.plan(10_000)
    decisions = loop.turns(12)
    assert all(bare(d) == ("act", True) for d in decisions)
    evicting = [n for n, d in enumerate(decisions) if d.edits]
    assert evicting[0] == 0
    assert decisions[0].after <= 60_000
    # half of what lies between target and trigger: 7,500 tokens of about 1,000 a turn
    assert len(evicting) == 2
    assert evicting[1] >= 7


def test_the_thresholds_hold_as_before() -> None:
    plain, told = Loop(), Loop()
    told.manager.plan(1)
    for _ in range(70):
        one, other = plain.turn(), told.turn()
        assert (one.action, one.after, one.reasons) == (other.action, other.after, other.reasons)


def test_a_policy_with_a_rule_of_its_own_acts_too() -> None:
    loop = Loop(policy="mask:keep=200")
    loop.turns(5)
    loop.manager.plan(10_000)
    decision = loop.turn()
    assert bare(decision) == ("act", True)
    assert not decision.edits


def test_the_room_for_the_answer_and_the_burn_window_are_settings() -> None:
    short, long = Loop(budget=BudgetOptions(burn_window=1)), Loop(budget=BudgetOptions(burn_window=10))
    for loop in (short, long):
        loop.turns(6)
        loop.manager.add("user_message", text(11_000))
        loop.turn()
        loop.manager.plan(8)
    few, many = short.manager.forecast(), long.manager.forecast()
    assert few is not None and many is not None
    assert (few.act, many.act) == (True, False)


@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", float("nan")], ids=repr)
def test_what_is_no_plan_is_refused(bad: Any) -> None:
    manager = ContextWindowManager(1000)
    with pytest.raises(ValueError):
        manager.plan(bad)
    assert manager.forecast() is None


@pytest.mark.parametrize("bad", [0, -1, True, "3", float("nan"), float("inf")], ids=repr)
def test_turns_per_step_that_are_none_are_refused(bad: Any) -> None:
    manager = ContextWindowManager(1000)
    with pytest.raises(ValueError):
        manager.plan(3, bad)
    assert manager.forecast() is None
