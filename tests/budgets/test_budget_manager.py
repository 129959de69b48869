"""The numbers of requirements B1 to B4, and what must hold of any sequence of adding and removing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl import BudgetExceeded, TokenBudgetManager
from ctxctl.budgets.components import COMPONENTS, component_of, limits_of
from ctxctl.budgets.options import Allocations, BudgetOptions
from ctxctl.errors import UsageError
from ctxctl.model.block import KINDS

SIZES = st.integers(0, 200_000)


def example() -> TokenBudgetManager:
    """B3: 5,000 system + 3,000 tools + 45,000 history on 128,000."""
    manager = TokenBudgetManager()
    manager.track("system_prompt", 5000)
    manager.track("tool_definitions", 3000)
    manager.track("message_history", 45_000)
    return manager


def test_shares_of_128k() -> None:
    limits = limits_of(128_000, BudgetOptions())
    assert [limits[name].hard for name in COMPONENTS] == [7680, 5120, 83_200, 15_360, 10_240, 6400]
    assert [limits[name].soft for name in COMPONENTS] == [6144, 4096, 66_560, 12_288, 8192, 5120]


def test_kinds_map_to_components() -> None:
    homes = {kind: component_of(kind) for kind in KINDS}
    history = ("user_message", "assistant", "thinking", "tool_call", "summary", "image", "document")
    assert homes == {
        **dict.fromkeys(history, "message_history"),
        "system": "system_prompt",
        "tool_definitions": "tool_definitions",
        "tool_result": "tool_results",
        "memory_injection": "memory_injection",
    }


@pytest.mark.parametrize(("wrong", "meant"), [("tool_resluts", "tool_results"), ("sytem", "system")])
def test_an_unknown_component_is_an_error(wrong: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        TokenBudgetManager().track(wrong, 1)
    assert meant in (caught.value.hint or "")


def test_the_example_is_allowed_without_warning() -> None:
    manager = example()
    check = manager.check_before_add("message_history", 20_000)
    assert (check.allowed, check.status, check.after, check.excess) == (True, "ok", 65_000, 0)
    assert round(manager.usage().total_utilization, 2) == 0.41
    assert manager.used("message_history") == 45_000, "a check changes nothing"


@pytest.mark.parametrize(
    ("more", "allowed", "status", "excess"),
    [
        (21_559, True, "ok", 0),
        (21_560, True, "soft", 0),
        (38_199, True, "soft", 0),
        (38_200, True, "hard", 0),
        (38_201, False, "hard", 1),
        (40_000, False, "hard", 1800),
    ],
)
def test_limits_to_the_token(more: int, allowed: bool, status: str, excess: int) -> None:
    check = example().check_before_add("message_history", more)
    assert (check.allowed, check.status, check.excess) == (allowed, status, excess)
    assert (check.limit, check.current, check.after) == (83_200, 45_000, 45_000 + more)
    assert ("hard limit reached" in check.message) == (allowed and status == "hard")
    assert ("soft limit" in check.message) == (status == "soft")


def test_a_refusal_calls_relieve_and_checks_again() -> None:
    calls: list[tuple[str, int]] = []

    def relieve(component: str, excess: int) -> int:
        calls.append((component, excess))
        return manager.remove("old")

    manager = TokenBudgetManager(relieve=relieve)
    manager.track("tool_result", 10_000, key="old")
    manager.track("tool_result", 5000, key="new")
    check = manager.add("tool_results", 1000)
    assert calls == [("tool_results", 640)]
    assert (check.allowed, check.freed, check.after) == (True, 10_000, 6000)
    assert manager.used("tool_results") == 6000


def test_what_relieve_freed_elsewhere_is_taken_off_the_oldest() -> None:
    manager = TokenBudgetManager(relieve=lambda component, excess: excess)
    manager.track("tool_result", 300, key="oldest")
    manager.track("tool_result", 15_000, key="newer")
    assert manager.add("tool_results", 560).allowed
    assert manager.used("tool_results") == 15_360
    assert manager.remove("oldest") == 0, "the oldest went whole"
    assert manager.remove("newer") == 14_800


def test_only_what_still_does_not_fit_is_refused() -> None:
    manager = TokenBudgetManager(relieve=lambda component, excess: 0)
    manager.track("tool_result", 15_000)
    check = manager.add("tool_results", 1000)
    assert (check.allowed, check.excess) == (False, 640)
    assert manager.used("tool_results") == 15_000


@pytest.mark.parametrize(("component", "limit"), [("system_prompt", 7680), ("tool_definitions", 5120)])
def test_only_the_skeleton_raises(component: str, limit: int) -> None:
    manager = TokenBudgetManager()
    assert manager.add(component, limit).status == "hard"
    with pytest.raises(BudgetExceeded) as caught:
        manager.add(component, 7)
    error = caught.value
    assert (error.component, error.limit, error.current, error.excess) == (component, limit, limit, 7)
    assert manager.used(component) == limit
    for other in ("message_history", "tool_results", "memory_injection", "output_reserved"):
        assert not manager.add(other, 10**6).allowed


def test_relieve_may_add_without_being_called_again() -> None:
    depth = 0

    def relieve(component: str, excess: int) -> int:
        nonlocal depth
        depth += 1
        freed = manager.clear("tool_results")
        assert not manager.add("tool_results", 10**6).allowed
        manager.add("message_history", 50)
        return freed

    manager = TokenBudgetManager(relieve=relieve)
    manager.track("tool_result", 15_360)
    assert manager.add("tool_results", 10).allowed
    assert depth == 1
    assert manager.used("message_history") == 50


def test_a_key_names_one_thing() -> None:
    manager = TokenBudgetManager()
    manager.track("system", 7000, key="prompt")
    assert manager.add("system_prompt", 7680, key="prompt").allowed, "what it replaces does not count"
    assert manager.total_used == 7680
    assert manager.resize("prompt", 1000) == 6680
    manager.track("tool_result", 5, key="prompt")
    assert (manager.used("system_prompt"), manager.used("tool_results")) == (0, 5)
    assert (manager.remove("prompt"), manager.remove("prompt")) == (5, 0)
    with pytest.raises(KeyError):
        manager.resize("prompt", 1)


def test_the_reserve_is_kept_free_and_not_used() -> None:
    manager = example()
    assert manager.check_output(4000).status == "ok"
    assert manager.check_output(5120).status == "soft"
    assert not manager.check_output(6401).allowed
    manager.track("output_reserved", 4000)
    assert manager.total_used == 53_000


def test_burn_rate_and_what_it_leaves() -> None:
    manager = example()
    assert (manager.burn_rate, manager.turns_remaining, manager.minutes_remaining) == (None, None, None)
    for added in [90_000, *[2000] * 10]:
        manager.record_turn(added, seconds=30)
    # (128,000 - 6,400 - 53,000) / 2,000 = 34.3
    assert (manager.burn_rate, manager.turns_remaining, manager.minutes_remaining) == (2000, 34, 17.0)
    manager.track("tool_result", 68_599)
    assert manager.turns_remaining == 0
    manager.track("tool_result", 10_000)
    assert (manager.turns_remaining, manager.minutes_remaining) == (0, 0.0)


def test_no_burn_is_no_end() -> None:
    manager = TokenBudgetManager()
    manager.record_turn(0, 5)
    assert (manager.burn_rate, manager.turns_remaining, manager.minutes_remaining) == (0, None, None)


def test_one_long_wait_does_not_count_for_many_turns() -> None:
    manager = TokenBudgetManager()
    for seconds in (10, 10, 7200):
        manager.record_turn(1216, seconds)
    assert manager.minutes_remaining == 100 * 10 / 60


BAD_TOKENS: list[Any] = [-1, 1.5, math.nan, math.inf, True, "5", None]


@pytest.mark.parametrize("bad", BAD_TOKENS, ids=repr)
def test_tokens_that_are_none_are_refused(bad: Any) -> None:
    manager = TokenBudgetManager()
    for call in (
        lambda: manager.track("system", bad),
        lambda: manager.check_before_add("system", bad),
        lambda: manager.add("system", bad),
        lambda: manager.record_turn(bad),
        lambda: TokenBudgetManager(bad),
    ):
        with pytest.raises(ValueError):
            call()
    assert manager.total_used == 0


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "5"], ids=repr)
def test_seconds_that_are_none_are_refused(bad: Any) -> None:
    manager = TokenBudgetManager()
    with pytest.raises(ValueError):
        manager.record_turn(1, bad)
    assert manager.burn_rate is None, "the turn is recorded whole or not at all"


def test_a_component_without_room() -> None:
    manager = TokenBudgetManager(1000, BudgetOptions(Allocations(memory_injection=0)))
    empty = manager.component("memory_injection")
    assert (empty.limit, empty.utilization, empty.status) == (0, None, "ok")
    assert manager.check_before_add("memory_injection", 1).excess == 1
    manager.track("memory_injection", 1)
    assert manager.component("memory_injection").status == "hard"


STEPS = st.lists(
    st.tuples(st.sampled_from(("track", "add", "remove", "resize", "clear")), st.sampled_from(COMPONENTS), SIZES),
    max_size=40,
)


@given(STEPS)
def test_usage_is_the_sum_of_what_is_tracked(steps: list[tuple[str, str, int]]) -> None:
    manager = TokenBudgetManager()
    held: dict[str, tuple[str, int]] = {}
    for number, (what, component, count) in enumerate(steps):
        key = f"{number % 7}"
        if what == "track":
            manager.track(component, count, key=key)
            held[key] = component, count
        elif what == "add":
            try:
                if manager.add(component, count, key=key).allowed:
                    held[key] = component, count
            except BudgetExceeded:
                assert component in ("system_prompt", "tool_definitions")
        elif what == "remove":
            assert manager.remove(key) == held.pop(key, ("", 0))[1]
        elif what == "resize" and key in held:
            manager.resize(key, count)
            held[key] = held[key][0], count
        elif what == "clear":
            manager.clear(component)
            held = {k: v for k, v in held.items() if v[0] != component}
        usage = manager.usage()
        for use in usage.components:
            assert use.used == sum(n for home, n in held.values() if home == use.component)
        assert usage.total_used == sum(n for home, n in held.values() if home != "output_reserved")


@given(st.integers(1, 10**7), SIZES, SIZES, st.sampled_from(COMPONENTS))
def test_more_tokens_never_fit_better(window: int, few: int, more: int, component: str) -> None:
    manager = TokenBudgetManager(window)
    small, large = (manager.check_before_add(component, n) for n in sorted((few, more)))
    order = ("ok", "soft", "hard")
    assert small.allowed >= large.allowed
    assert order.index(small.status) <= order.index(large.status)
    for check in (small, large):
        assert check.allowed == (check.after <= check.limit)
        assert check.excess == max(0, check.after - check.limit)


@given(st.integers(1, 10**7), st.lists(SIZES, min_size=1, max_size=30), SIZES)
def test_turns_remaining_is_never_negative_and_falls_as_the_window_fills(
    window: int, added: list[int], more: int
) -> None:
    manager = TokenBudgetManager(window)
    for count in added:
        manager.record_turn(count, 1)
    before = manager.turns_remaining
    manager.track("tool_result", more)
    after = manager.turns_remaining
    if after is None:
        assert not any(added[-10:])
    else:
        assert after >= 0
        assert before is None or after <= before
        assert manager.minutes_remaining == after / 60
