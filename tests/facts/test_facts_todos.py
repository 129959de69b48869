"""To-do lists of each agent's tools."""

from __future__ import annotations

from typing import Any

from ctxctl.facts.session import SessionFacts
from ctxctl.model.summary import SessionSummary, Todo


def items(summary: SessionSummary) -> list[tuple[str, str]]:
    return [(todo.text, todo.status) for todo in summary.todos]


def todo_write(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"todos": [{"content": text, "status": status, "activeForm": text} for text, status in pairs]}


def test_the_newest_list_holds(script: Any) -> None:
    script.call("TodoWrite", todo_write(("a", "in_progress"), ("b", "pending")), "ok")
    script.call("TodoWrite", todo_write(("a", "completed"), ("c", "in_progress"), ("d", "cancelled")), "ok")
    script.call("TodoWrite", todo_write(("x", "pending")), "bad", error=True)
    summary = script.summary()
    assert items(summary) == [("a", "done"), ("c", "doing")]
    assert summary.next_steps == ("c",)


def test_an_empty_list_ends_it(script: Any) -> None:
    script.call("TodoWrite", todo_write(("a", "pending")), "ok")
    script.call("TodoWrite", {"todos": []}, "ok")
    assert items(script.summary()) == []


def test_a_list_of_a_branch_left_behind(script: Any) -> None:
    script.call("TodoWrite", todo_write(("a", "pending")), "ok")
    left = script.call("TodoWrite", todo_write(("b", "pending")), "ok")
    assert items(script.summary(frozenset((left, left + 1)))) == [("a", "planned")]


def test_plans_of_codex(script: Any) -> None:
    script.call(
        "update_plan",
        {"plan": [{"step": "s1", "status": "completed"}, {"step": "s2", "status": "pending"}]},
        "Plan updated",
    )
    assert items(script.summary()) == [("s1", "done"), ("s2", "planned")]


def test_tasks_one_by_one(script: Any) -> None:
    script.call("TaskCreate", {"subject": "one", "description": "d"}, "Task #1 created successfully: one")
    script.call("TaskCreate", {"subject": "two"}, "Task #2 created successfully: two")
    script.call("TaskCreate", {"subject": "three"}, "Task #3 created successfully: three")
    script.call("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status")
    script.call("TaskUpdate", {"taskId": "2", "status": "in_progress", "subject": "two again"}, "Updated")
    script.call("TaskUpdate", {"taskId": "3", "status": "deleted"}, "Updated")
    assert script.summary().todos == (Todo("one", "done", "main", "1"), Todo("two again", "doing", "main", "2"))


def test_each_agent_has_its_own(script: Any) -> None:
    script.call("TodoWrite", todo_write(("theirs", "pending")), "ok", thread="helper")
    script.call("TodoWrite", todo_write(("ours", "pending")), "ok")
    assert [(todo.agent, todo.text) for todo in script.summary().todos] == [("main", "ours"), ("helper", "theirs")]


def test_checklists_where_there_is_no_tool(script: Any) -> None:
    script.said("Plan:\n- [x] one\n- [ ] two\n\n```\n- [ ] not this\n- [ ] nor this\n```")
    script.said("Now:\n1. [x] two\n2. [ ] three")
    assert items(script.summary()) == [("one", "done"), ("two", "done"), ("three", "planned")]
    script.said("- [ ] a single one")
    assert len(script.summary().todos) == 3
    script.call("TodoWrite", todo_write(("a", "pending")), "ok")
    assert items(script.summary()) == [("a", "planned")]


def test_lists_of_odd_shape(script: Any) -> None:
    script.call("TodoWrite", {"todos": ["broken", {"content": "a"}, {"status": "pending"}, 7]}, "ok")
    script.call("TodoWrite", "not json", "ok")
    script.call("TodoWrite", {"other": 1}, "ok")
    assert items(script.summary()) in ([("a", "planned")], [])


def test_a_checklist_of_which_nothing_is_planned_or_done(script: Any) -> None:
    script.said("- [x] one\n- [ ] two")
    script.said("Both at once:\n- [~] one\n- [~] two")
    assert items(script.summary()) == [("one", "doing"), ("two", "doing")]


def test_tasks_made_anew_in_another_session_take_its_ids_and_its_order(script: Any) -> None:
    """An earlier window told them without ids; what this one has not made yet comes behind."""
    base = SessionSummary(todos=tuple(Todo(text, "planned") for text in ("one", "two", "three")))
    for number, text in enumerate(("two", "new", "one"), 1):
        script.call("TaskCreate", {"subject": text}, f"Task #{number} created successfully: {text}")
    script.call("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status")
    facts = SessionFacts()
    facts.seed(base, {})
    for number, block in enumerate(script.blocks):
        facts.see(block, number)
    assert facts.summary().todos == (
        Todo("two", "done", "main", "1"),
        Todo("new", "planned", "main", "2"),
        Todo("one", "planned", "main", "3"),
        Todo("three", "planned"),
    )
