"""The plan over all lists of a session: nothing finished is forgotten, nothing called off comes back."""

from __future__ import annotations

import json
from typing import Any

from ctxctl.facts.plan import Plan
from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block, Source
from ctxctl.model.summary import Todo

SIGNS = {"x": "completed", ">": "in_progress", " ": "pending"}


def todo_write(*items: str) -> dict[str, Any]:
    """`x text` done, `> text` in work, ` text` planned."""
    return {"todos": [{"content": item[1:].strip(), "status": SIGNS[item[0]]} for item in items]}


def session(*steps: Any) -> SessionFacts:
    """Each step: arguments of TodoWrite, or a summary's text."""
    facts = SessionFacts()
    for number, step in enumerate(steps):
        at, turn = number * 2, number + 1
        if isinstance(step, str):
            facts.see(Block(f"{at}", "summary", "user", step, turn, 1, Source(at)), at)
            continue
        call = f"c{number}"
        text = "TodoWrite " + json.dumps(step)
        facts.see(Block(f"{at}", "tool_call", "assistant", text, turn, 1, Source(at), "TodoWrite", call), at)
        done = Block(f"{at + 1}", "tool_result", "user", "ok", turn + 1, 1, Source(at + 1), "TodoWrite", call)
        facts.see(done, at + 1)
    return facts


def told(plan: Plan) -> list[tuple[str, str, int]]:
    return [(p.todo.text, p.todo.status, p.age) for p in plan.items]


def test_finished_items_that_left_the_list_stay() -> None:
    facts = session(
        todo_write("x a", "> b", "  c"), todo_write("> b", "  c"), todo_write("x b", "  c"), todo_write("  c")
    )
    plan = facts.plan((), (), told_now=False)
    assert told(plan) == [("a", "done", 0), ("b", "done", 0), ("c", "planned", 0)]
    assert not plan.cancelled


def test_what_leaves_the_list_unfinished_is_called_off() -> None:
    plan = session(todo_write("> a", "  b"), todo_write("> a")).plan((), (), told_now=False)
    assert told(plan) == [("a", "doing", 0)]
    assert plan.cancelled == {("main", "b")}


def test_what_comes_back_is_not_called_off() -> None:
    plan = session(todo_write("  a", "  b"), todo_write("  a"), todo_write("  a", "  b")).plan((), (), told_now=False)
    assert told(plan) == [("a", "planned", 0), ("b", "planned", 0)]
    assert not plan.cancelled


def test_a_shorter_list_after_a_compaction_forgets_nothing() -> None:
    facts = session(todo_write("x a", "> b", "  c"), "This session is being continued", todo_write("> b"))
    assert told(facts.plan((), (), told_now=False)) == [("a", "done", 1), ("c", "planned", 1), ("b", "doing", 0)]


def test_the_list_of_an_earlier_window_is_not_called_off() -> None:
    before = (Todo("a", "done"), Todo("b", "planned"))
    facts = session(todo_write("> c"))
    plan = facts.plan((), before, told_now=False)
    assert {(t, s) for t, s, _ in told(plan)} == {("a", "done"), ("b", "planned"), ("c", "doing")}
    plan = facts.plan((), before, told_now=True)
    assert {(t, s) for t, s, _ in told(plan)} == {("a", "done"), ("c", "doing")}
    assert plan.cancelled == {("main", "b")}


def test_planned_again_is_not_done() -> None:
    plan = session(todo_write("x a"), todo_write("  b"), todo_write("  a", "  b")).plan((), (), told_now=False)
    assert told(plan) == [("a", "planned", 0), ("b", "planned", 0)]
