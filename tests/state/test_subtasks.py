"""Subtasks merged by S3: planned, doing and done are never mixed up, and nothing is lost."""

from __future__ import annotations

import pytest

from ctxctl.errors import UsageError
from ctxctl.facts.plan import Plan, Planned
from ctxctl.model.state import AgentState, Subtask
from ctxctl.model.summary import Progress, Todo
from ctxctl.state.subtasks import added, arranged, marked, merged, position


def plan(*items: tuple[str, Progress], off: tuple[str, ...] = ()) -> Plan:
    return Plan(tuple(Planned(Todo(text, status)) for text, status in items), frozenset(("main", text) for text in off))


def told(subtasks: list[Subtask]) -> list[tuple[str, str, str]]:
    return [(s.id, s.text, s.status) for s in subtasks]


KNOWN = (
    Subtask("s1", "a", "done"),
    Subtask("s2", "b", "doing", evidence="no result yet of: Bash"),
    Subtask("s3", "c", "planned"),
)


def test_the_newest_word_holds_and_new_items_get_new_ids() -> None:
    found, following = merged(
        KNOWN, plan(("b", "done"), ("c", "doing"), ("d", "planned")), window=1, next_id=4, same=True
    )
    assert told(found) == [("s1", "a", "done"), ("s2", "b", "done"), ("s3", "c", "doing"), ("s4", "d", "planned")]
    assert following == 5
    assert found[1].evidence == ""


def test_what_a_list_no_longer_shows_is_kept_unless_called_off() -> None:
    found, _ = merged(KNOWN, plan(("d", "planned")), window=2, next_id=4, same=False)
    assert {(t, s) for _, t, s in told(found)} == {("a", "done"), ("b", "doing"), ("c", "planned"), ("d", "planned")}
    found, _ = merged(KNOWN, plan(("b", "doing"), off=("c", "a")), window=1, next_id=4, same=True)
    assert told(found) == [("s1", "a", "done"), ("s2", "b", "doing")]


def test_task_ids_of_another_session_are_other_tasks() -> None:
    known = (Subtask("s1", "old", "planned", task="1"),)
    new = Plan((Planned(Todo("new", "done", id="1")),))
    found, _ = merged(known, new, window=2, next_id=2, same=False)
    assert told(found) == [("s2", "new", "done"), ("s1", "old", "planned")]
    found, _ = merged(known, new, window=1, next_id=2, same=True)
    assert told(found) == [("s1", "new", "done")]


def test_a_hand_holds_until_the_agent_says_something_new() -> None:
    by_hand = marked(KNOWN, "s2", "done", 1)
    again, _ = merged(by_hand, plan(("a", "done"), ("b", "doing"), ("c", "planned")), window=1, next_id=4, same=True)
    assert ("s2", "b", "done") in told(again)
    later, _ = merged(again, plan(("a", "done"), ("b", "planned"), ("c", "planned")), window=1, next_id=4, same=True)
    assert ("s2", "b", "planned") in told(later)


def test_what_was_added_by_hand_outlives_the_agents_lists() -> None:
    mine, following = added(KNOWN, ["mine", "mine", " "], 1, 4)
    assert told(mine)[-1] == ("s4", "mine", "planned") and following == 5
    found, _ = merged(mine, plan(("x", "doing"), off=("mine",)), window=1, next_id=5, same=True)
    assert ("s4", "mine", "planned") in told(found)


def test_a_rewind_takes_back_what_this_window_told() -> None:
    known = (Subtask("s1", "a", "done", window=1), Subtask("s2", "b", "done", window=2))
    found, _ = merged(known, plan(("b", "planned")), window=2, next_id=3, same=True, began=2)
    assert told(found) == [("s1", "a", "done"), ("s2", "b", "planned")]
    found, _ = merged(known, plan(), window=2, next_id=3, same=True, began=2)
    assert told(found) == [("s1", "a", "done")]


def test_what_was_dropped_by_hand_does_not_come_back() -> None:
    found, _ = merged((), plan(("a", "planned")), window=1, next_id=1, same=True, closed=("a",))
    assert found == []


def test_only_the_first_in_work_is_the_current_one() -> None:
    state = arranged(
        AgentState(), [Subtask("s1", "a", "doing"), Subtask("s2", "b", "doing"), Subtask("s3", "c", "done")]
    )
    assert state.current_subtask is not None and state.current_subtask.id == "s1"
    assert [(s.id, s.status) for s in state.remaining_subtasks] == [("s2", "doing")]
    assert [s.id for s in state.completed_subtasks] == ["s3"]


@pytest.mark.parametrize("name", ["s2", "b", " B ", "#7"])
def test_names_of_a_subtask(name: str) -> None:
    known = (Subtask("s1", "a", "done"), Subtask("s2", "b", "doing", task="7"))
    assert position(known, name) == 1


def test_a_wrong_name_says_what_there_is() -> None:
    with pytest.raises(UsageError) as raised:
        position(KNOWN, "s22")
    assert "'s22'" in raised.value.message and "did you mean 's2'?" in (raised.value.hint or "")
    with pytest.raises(UsageError) as raised:
        position((), "zzz")
    assert "--add-todo" in (raised.value.hint or "")


def test_a_text_that_stands_twice_on_a_list_is_two_subtasks_each_with_its_own_status() -> None:
    found, following = merged(
        (), plan(("run", "doing"), ("fix", "planned"), ("run", "planned")), window=1, next_id=1, same=True
    )
    assert len(found) == 3
    for second in (("done", "done", "planned"), ("done", "done", "doing"), ("done", "done", "done")):
        items = plan(*zip(("run", "fix", "run"), second, strict=True))
        found, following = merged(found, items, window=1, next_id=following, same=True)
        assert {(s.id, s.status) for s in found} == set(zip(("s1", "s2", "s3"), second, strict=True))
    assert following == 4
    found, following = merged(
        found, plan(*[("run", "done")] * 3, ("fix", "done")), window=1, next_id=following, same=True
    )
    assert [s.id for s in found if s.text == "run"] == ["s1", "s3", "s4"]


def test_what_the_newest_window_has_in_work_is_current() -> None:
    """What an earlier window left in work, and no list mentions since, is kept behind it."""
    known = (Subtask("s1", "fix it", "doing", window=1), Subtask("s2", "fix it well", "doing", window=2))
    state = arranged(AgentState(window_id=2), known)
    assert state.current_subtask == known[1] and state.remaining_subtasks == (known[0],)
    tie = arranged(AgentState(), [Subtask("s1", "a", "doing"), Subtask("s2", "b", "doing")])
    assert tie.current_subtask is not None and tie.current_subtask.id == "s1"


def test_a_task_that_takes_the_text_of_an_older_item_is_that_item() -> None:
    """The list of an earlier session told it, and a task of this one was renamed to it: the newest word holds."""
    known = (Subtask("s1", "fix it", "planned"),)
    items = (Planned(Todo("fix it", "planned")), Planned(Todo("fix it", "doing", "main", "2")))
    for both in (items, items[::-1]):
        found, following = merged(known, Plan(both), window=1, next_id=2, same=False)
        assert [(s.id, s.status, s.task) for s in found] == [("s1", "doing", "2")] and following == 2
