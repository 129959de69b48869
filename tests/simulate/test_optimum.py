"""The exact optimum: worked out by hand, against a search over all schedules, and below every policy."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_traces import Case, Made, held, run

from ctxctl.eviction.optimum import OptimumCeiling
from ctxctl.model.unit import RecordedCut
from ctxctl.simulate.budget import evictable_budget, fixed_tokens
from ctxctl.simulate.optimum import Optimum, optimum

pytest.importorskip("scipy")
POLICIES = ("fifo", "lru", "priority", "type-ttl", "hybrid", "random:seed=3", "largest-first", "clairvoyant")
CALM = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def best(case: Case, capacity: int) -> Optimum:
    found = optimum(case.trace(), capacity)
    assert isinstance(found, Optimum)
    return found


# worked out by hand


def test_all_fits() -> None:
    case = Case([held(0, at=1), held(1, at=1)], {2: [0, 1]}, 2)
    found = best(case, 20)
    assert (found.refetched, found.demand, found.hits, found.misses, found.miss_ratio) == (0, 20, 2, 0, 0.0)


def test_one_of_two_stays() -> None:
    # 30 and 20 tokens are used, 30 fit: the dearer one stays
    case = Case([held(0, at=1, tokens=30), held(1, at=1, tokens=20)], {2: [0, 1]}, 2)
    found = best(case, 30)
    assert (found.refetched, found.demand, found.hits, found.misses) == (20, 50, 1, 1)


def test_what_is_fetched_may_stay() -> None:
    # b has to go for a big unit that is used once; fetched at call 3 it is still there at calls 4 and 5
    case = Case(
        [held(0, at=1, tokens=10), held(1, at=2, tokens=15)],
        {2: [1], 3: [0], 4: [0], 5: [0]},
        5,
    )
    found = best(case, 15)
    assert (found.refetched, found.demand, found.misses) == (10, 45, 1)


def test_a_unit_is_fetched_once_a_call_however_much_of_it_is_missed() -> None:
    case = Case([held(0, 1, 2, at=1, tokens=10), held(at=2, tokens=10, kind="tool_result")], {2: [0, 1, 2]}, 2)
    found = best(case, 10)
    assert (found.refetched, found.misses, found.demand) == (10, 3, 10)


def test_any_holder_will_do_and_a_miss_pays_the_smallest() -> None:
    case = Case(
        [held(0, at=1, tokens=30), held(0, at=1, tokens=12), held(at=2, tokens=30, kind="tool_result")], {2: [0]}, 2
    )
    assert best(case, 42).refetched == 0
    assert best(case, 41).refetched == 12


def test_fresh_results_come_first_and_may_be_more_than_the_window() -> None:
    # the result of 50 is protected at call 2, so the window is that large then, and nothing else fits
    case = Case([held(0, at=1, tokens=5), held(1, at=2, tokens=50, kind="tool_result")], {2: [0, 1]}, 2)
    assert best(case, 20).refetched == 5
    assert best(case, 55).refetched == 0


def test_a_call_without_a_result_stays() -> None:
    waiting = Made([(1, 10), (3, 10)], frozenset([1]), "tool")
    case = Case([waiting, held(0, at=1, tokens=10)], {2: [0], 3: [1], 4: [1]}, 4)
    # at 19 the other one does not fit beside the call (10), nor do call and result (20) once they are answered
    assert best(case, 19).refetched == 10 + 20
    assert best(case, 20).refetched == 0


def test_the_current_prompt_stays_until_the_next() -> None:
    first = held(0, at=1, tokens=10, kind="user_message", exchange=1)
    second = held(1, at=3, tokens=10, kind="user_message", exchange=2)
    case = Case([first, held(2, at=1, tokens=10), second], {2: [2], 3: [2], 4: [0]}, 4)
    # 10 tokens: first, then second fill the window; all else is fetched each time
    assert best(case, 10).refetched == 30
    # 20 tokens: beside first until call 3; there beside second one of the two
    assert best(case, 20).refetched == 10


def test_what_the_client_takes_back_frees_its_room() -> None:
    case = Case([held(0, at=1, tokens=10), held(1, at=2, tokens=10, leaves=3)], {2: [0, 1], 3: [0]}, 3)
    assert best(case, 10).refetched == 10
    assert best(case, 20).refetched == 0


def test_what_is_fixed_leaves_less_room() -> None:
    case = Case([held(at=1, tokens=7, pinned=True), held(0, at=1, tokens=10)], {2: [0]}, 2, overhead=5, unseen={2: 3})
    assert best(case, 25).refetched == 0
    assert best(case, 24).refetched == 10
    trace = case.trace()
    assert fixed_tokens(trace) == 15
    assert evictable_budget(trace) == 20
    assert evictable_budget(trace, 1.0) == 25


def test_a_hit_fetches_nothing_even_if_that_would_pay() -> None:
    # atom 0 is held by a and by b, which holds 1 too: b is what a miss of 0 would bring, and at 5 it would save c
    a, b = held(0, at=1, tokens=9), held(0, 1, at=1, tokens=8)
    case = Case([a, b, held(2, at=2, tokens=9)], {2: [2], 3: [0], 4: [1, 0]}, 4)
    for capacity in range(1, 30):
        assert best(case, capacity).refetched == case.cheapest(capacity)


def test_summaries_of_the_agent_itself_are_not_there() -> None:
    case = Case([held(0, at=1), held(at=2, tokens=99, kind="summary")], {2: [0]}, 2)
    trace = case.trace()
    assert best(case, 20).refetched == 0 and best(case, 10).refetched == 0
    cut = replace(trace, recorded={2: RecordedCut(2, None, (), (1,))})
    found = optimum(cut, 10)
    assert isinstance(found, Optimum) and found.refetched == 0
    assert run(cut, "clairvoyant", 10).refetched == 0


def test_nothing_is_computed_beyond_some_blocks_and_the_reason_is_said() -> None:
    case = Case([held(0, at=1), held(1, at=1)], {2: [0, 1]}, 2)
    assert optimum(case.trace(), 10, most_blocks=1) == "2 blocks; the optimum is computed for at most 1"


def test_without_scipy_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case([held(0, at=1), held(1, at=1)], {2: [0, 1]}, 2)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert optimum(case.trace(), 10) == "scipy is not installed: pip install 'ctxctl[optimum]'"


def test_when_time_runs_out_the_reason_is_said() -> None:
    case = Case([held(n, at=1, tokens=n + 3) for n in range(9)], {k: [*range(9)] for k in range(2, 9)}, 9)
    assert optimum(case.trace(), 30, time_limit=0.0) == "not proven within 0 s"


def test_solving_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    case = Case([held(n, at=1, tokens=n + 3) for n in range(9)], {k: [k % 9, 8] for k in range(2, 9)}, 9)
    assert best(case, 30).refetched > 0
    assert capfd.readouterr() == ("", "")


def test_nothing_to_miss() -> None:
    found = optimum(Case([], {}, 0).trace(), 10)
    assert isinstance(found, Optimum) and found.miss_ratio is None and found.refetched == 0


def test_the_ceiling_is_listed_and_changes_nothing() -> None:
    assert OptimumCeiling.group == "ceiling" and not OptimumCeiling.ranks
    case = Case([held(0, at=1), held(1, at=1)], {2: [0, 1]}, 2)
    assert run(case.trace(), "optimum", 5).evictions == 0


# generated


@st.composite
def cases(draw: st.DrawFn, bound: bool = False, largest: int = 7) -> Case:
    """Small traces. bound: with reasoning that is bound to calls."""
    calls = draw(st.integers(2, 6))
    units: list[Made] = []
    exchange = 0
    for first in sorted(draw(st.lists(st.integers(1, calls), min_size=1, max_size=largest))):
        kinds = ["assistant", "tool_result", "tool", "user_message", *(["thinking"] if bound else [])]
        kind = draw(st.sampled_from(kinds))
        tokens = draw(st.integers(1, 12))
        pinned = kind != "tool" and draw(st.integers(0, 7)) == 0
        atoms = frozenset() if pinned else frozenset(draw(st.sets(st.integers(0, 4), max_size=3)))
        exchange += kind == "user_message"
        last = draw(st.integers(first, calls)) if kind == "tool" and draw(st.booleans()) else first
        arrives = [(first, tokens)] if kind != "tool" else [(first, draw(st.integers(0, 3))), (last, tokens)]
        leaves = draw(st.integers(last + 1, calls + 1)) if draw(st.integers(0, 6)) == 0 and not pinned else None
        response = f"r{first}" if kind in ("tool", "thinking") and bound else None
        units.append(Made(arrives, atoms, kind, pinned, exchange, response, leaves))
    case = Case(units, {}, calls, draw(st.integers(0, 5)), {2: draw(st.integers(-2, 3))})
    for call in case.span:
        # an answer uses what is there; a call without its result holds nothing yet
        known = sorted(
            {a for u in units if not u.pinned for a in u.atoms if u.arrives[-1][0] <= call}
            & {a for a in range(5) if case.holders(a, call)}
        )
        ready = [a for a in known if all(units[n].arrives[-1][0] <= call for n in case.holders(a, call))]
        case.uses[call] = draw(st.lists(st.sampled_from(ready), unique=True, max_size=3)) if ready else []
    return case


@CALM
@given(cases(), st.integers(1, 45))
def test_it_equals_the_best_of_all_schedules(case: Case, capacity: int) -> None:
    assert best(case, capacity).refetched == case.cheapest(capacity)


@CALM
@given(cases(bound=True, largest=14), st.integers(1, 60))
def test_no_policy_is_below_it(case: Case, capacity: int) -> None:
    trace = case.trace()
    found = optimum(trace, capacity)
    assert isinstance(found, Optimum)
    for policy in POLICIES:
        played = run(trace, policy, capacity)
        assert found.refetched <= played.refetched, policy
        assert (found.demand, found.hits + found.misses) == (played.demand, played.hits + played.misses)


@CALM
@given(cases(bound=True, largest=10))
def test_more_room_never_costs_more(case: Case) -> None:
    trace = case.trace()
    enough = fixed_tokens(trace) + trace.evictable
    costs = [found.refetched for c in range(1, enough + 2, 3) if isinstance(found := optimum(trace, c), Optimum)]
    assert costs == sorted(costs, reverse=True)
    last = optimum(trace, enough)
    assert isinstance(last, Optimum) and last.refetched == 0
