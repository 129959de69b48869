"""Where the recent part begins: whole answers with their results, the last messages whatever their size (C10)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.compaction.boundary import LEAST_MESSAGES, groups_of, held_tokens, recent

ALL = 10**9


def worked(session: Any, rounds: int, size: int = 400, calls: int = 1) -> Any:
    session.user("the task")
    for n in range(rounds):
        session.say(f"step {n}", *[("Read", {"path": f"f{n}_{k}"}, "w" * size) for k in range(calls)])
    session.user("go on")
    session.say("yes")
    return session.window()


def test_the_last_six_messages_whatever_they_hold(session: Any) -> None:
    window = worked(session, 10, 40_000)
    _, tail = recent(window, 0, ALL)
    assert LEAST_MESSAGES == 6
    assert 6 <= sum(g.messages for g in tail) <= 7
    assert sum(g.tokens for g in tail) > 20_000


def test_then_as_many_as_the_limit_holds(session: Any) -> None:
    window = worked(session, 40)
    held = held_tokens(window)
    old, tail = recent(window, held + 1_000, ALL)
    free = sum(window.resident[u] for g in tail for u in g.units if u not in window.protected())
    assert 900 <= free <= 1_000 and old and sum(g.messages for g in tail) > 6
    assert recent(window, ALL, ALL)[0] == []


def test_what_does_not_fit_leaves_from_the_front_in_whole_groups(session: Any) -> None:
    window = worked(session, 10, 4_000, calls=3)
    _, tail = recent(window, ALL, 4_000)
    assert 0 < sum(window.resident[u] for g in tail for u in g.units if u not in window.protected()) <= 4_000
    assert recent(window, ALL, 0)[1] == [] or all(
        u in window.protected() for g in recent(window, ALL, 0)[1] for u in g.units
    )


def test_an_answer_and_all_its_results_are_one_group(session: Any) -> None:
    window = worked(session, 5, calls=3)
    groups = groups_of(window)
    rows = [g for g in groups if len(g.units) > 1]
    assert len(rows) == 5
    for group in rows:
        kinds = [window.block(b).kind for u in group.units for b in window.present(u)]
        assert kinds.count("tool_call") == kinds.count("tool_result") == 3
        assert group.messages == 4  # the answer, and three results


def test_a_summary_is_never_recent(session: Any) -> None:
    window = worked(session, 6)
    unit = sorted(window.resident)[4]
    window.summaries.add(unit)
    old, tail = recent(window, ALL, ALL)
    assert unit in {u for g in old for u in g.units} and unit not in {u for g in tail for u in g.units}


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rounds=st.integers(0, 12),
    size=st.sampled_from([0, 40, 4_000]),
    calls=st.integers(0, 3),
    limit=st.integers(0, 5_000),
    room=st.integers(0, 5_000),
)
def test_both_parts_are_the_whole(rounds: int, size: int, calls: int, limit: int, room: int, sessions: Any) -> None:
    window = worked(sessions(), rounds, size, calls)
    old, tail = recent(window, limit, room)
    assert [*old, *tail] == groups_of(window)
    assert sorted(u for g in (*old, *tail) for u in g.units) == sorted(window.resident)
    places = [g.place for g in (*old, *tail)]
    assert places == sorted(places)
    responses = [{window.units[u].response for u in g.units} for g in (*old, *tail)]
    assert all(len(r) == 1 for r in responses)


@pytest.mark.parametrize("movable", [False, True])
def test_what_is_held(movable: bool, session: Any) -> None:
    window = worked(session, 3)
    unit = sorted(window.resident)[1]
    window.summaries.add(unit)
    with_it = held_tokens(window)
    assert held_tokens(window, window.summaries if movable else ()) == with_it - (
        window.resident[unit] if movable else 0
    )
    assert with_it >= window.overhead + sum(window.fixed.values())
