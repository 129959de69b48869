"""Changes by hand: what they set stays set, and what there is not is refused with its name."""

from __future__ import annotations

import pytest

from ctxctl.errors import UsageError
from ctxctl.model.state import AgentState, Service, Subtask
from ctxctl.model.summary import DecisionFact
from ctxctl.state.by_hand import ByHand, changed, pair_of, service_of

STATE = AgentState(
    task_goal="old",
    next_id=3,
    completed_subtasks=(Subtask("s1", "a", "done"),),
    current_subtask=Subtask("s2", "b", "doing"),
)


def test_each_key() -> None:
    sets = (
        ("goal", "new"),
        ("current", "c"),
        ("criterion", "all green"),
        ("constraint", "no new dependency"),
        ("decision", "use fetch for everything because axios is gone"),
        ("issue", "who owns billing?"),
        ("learning", "mocks hide the proxy"),
        ("summary", "half done"),
        ("cwd", "/srv"),
    )
    state = changed(STATE, ByHand(sets))
    assert state.task_goal == "new" and state.set_by_hand == ("goal", "cwd")
    assert state.current_subtask is not None and (state.current_subtask.text, state.current_subtask.id) == ("c", "s3")
    assert [(s.text, s.status) for s in state.remaining_subtasks] == [("b", "doing")]
    assert state.success_criteria == ("all green",) and state.constraints == ("no new dependency",)
    assert state.decisions == (DecisionFact("use fetch for everything", "axios is gone"),)
    assert state.open_issues == ("who owns billing?",) and state.learnings == ("mocks hide the proxy",)
    assert state.compaction_summary == "half done" and state.environment.cwd == "/srv"
    assert changed(state, ByHand(sets[2:7])) == state


def test_subtasks() -> None:
    state = changed(STATE, ByHand(done=("s2",), todos=("c", "d"), drop=("s1",)))
    assert [(s.id, s.status) for s in state.subtasks] == [("s2", "done"), ("s3", "planned"), ("s4", "planned")]
    assert state.closed_by_hand == ("a",)
    state = changed(state, ByHand(doing=("d",), planned=("s2",)))
    assert state.current_subtask is not None and state.current_subtask.text == "d"


def test_issues_are_closed_by_number_or_text() -> None:
    state = changed(STATE, ByHand((("issue", "one"), ("issue", "two"), ("issue", "three"))))
    state = changed(state, ByHand(close=("2", "ONE")))
    assert state.open_issues == ("three",) and state.closed_by_hand == ("two", "one")
    with pytest.raises(UsageError, match="nothing to close: '4'"):
        changed(state, ByHand(close=("4",)))


def test_credentials_do_not_get_in() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    state = changed(STATE, ByHand((("goal", f"use {secret}"),), todos=(f"rotate {secret}",)))
    assert secret not in repr(state)


@pytest.mark.parametrize(
    ("text", "part"),
    [("goal", "has no `=`"), ("gaol=x", "did you mean 'goal'?"), ("goal= ", "empty"), ("zz=1", "known: goal")],
)
def test_wrong_pairs(text: str, part: str) -> None:
    with pytest.raises(UsageError) as raised:
        pair_of(text)
    assert part in f"{raised.value.message} {raised.value.hint}"


def test_pairs() -> None:
    assert pair_of("task_goal=a=b") == ("goal", "a=b")


def test_services() -> None:
    assert service_of("web=8080") == service_of(" web = tcp:8080") == Service("web", 8080)
    assert service_of("db=pg_isready -q") == Service("db", command="pg_isready -q")
    for wrong in ("web", "=1", "web=", "web=70000", "web=0"):
        with pytest.raises(UsageError):
            service_of(wrong)


def test_what_a_user_writes_stays_as_it_is_but_for_credentials() -> None:
    """Only what a tool put out is searched for injected instructions."""
    text = "Test that 'ignore all previous instructions' is blocked"
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    state = changed(STATE, ByHand((("current", f"{text} twice"),), todos=(text, f"Rotate {key}")))
    assert [s.text for s in state.subtasks] == ["a", f"{text} twice", "b", text, "Rotate [credential-redacted]"]
