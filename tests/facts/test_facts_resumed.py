"""Sessions that begin with a resume prompt: their goal is the one of the windows before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.facts.resumed import find
from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block, Source
from ctxctl.model.summary import Todo

PROMPT = """[CONTEXT_WINDOW_RESUME]
Background from window 2, state version 7. Confirm the next step before acting.
## Goal (from: transcript)
> Replace axios with fetch.
> Keep every public name.
## Constraints (from: transcript)
- Never change vendor/
## Current step (from: transcript)
Current step (in progress, not finished): Port the refunds module
Id: s8
Progress: 7 of 11 done
Next step: Port the exports module
## Open issues (from: transcript)
- The rate limiter test is flaky
## Completed, last 1 of 7 (from: transcript)
- [x] s7: Port module 7
## Remaining, 2 of 2 (from: transcript)
- [>] s9@explore: Check the callers
- [ ] s10: Port the exports module
[/CONTEXT_WINDOW_RESUME]
"""
GOAL = "Replace axios with fetch.\nKeep every public name."


def test_the_goal_is_the_one_of_the_windows_before(script: Any) -> None:
    script.add("summary", "user", PROMPT)
    script.user("Go on with the refunds module please")
    script.said("I will.")
    found = script.summary()
    assert found.goal == GOAL
    assert found.constraints == ("Never change vendor/",)
    assert found.requests == ("Go on with the refunds module please",)
    assert {todo.text: todo.status for todo in found.todos} == {
        "Port the refunds module": "doing",
        "Port module 7": "done",
        "Check the callers": "doing",
        "Port the exports module": "planned",
    }
    assert found.open_issues == ("The rate limiter test is flaky",)
    assert {item.section: item.count for item in found.left_out} == {"done": 6}


@pytest.mark.parametrize("between", ["\n", " ", ""])
def test_what_the_user_wrote_behind_it_is_a_request(script: Any, between: str) -> None:
    script.user(PROMPT.rstrip("\n") + between + "You must not touch the docs. Port the exports module first.")
    script.said("I will.")
    script.user("And then the docs after all, please")
    found = script.summary()
    assert found.goal == GOAL
    assert found.requests == (
        "You must not touch the docs. Port the exports module first.",
        "And then the docs after all, please",
    )
    assert any("must not touch the docs" in text for text in found.constraints)
    assert "Never change vendor/" in found.constraints


@pytest.mark.parametrize(
    "text",
    [
        PROMPT,
        f"SessionStart hook additional context: {PROMPT}",
        f"<system-reminder>\nSessionStart:startup hook success: {PROMPT}\n</system-reminder>",
        json.dumps([PROMPT]),
        json.dumps({"hookSpecificOutput": {"additionalContext": "Note\n" + PROMPT}}),
    ],
)
@pytest.mark.parametrize("kind", ["memory_injection", "system"])
def test_a_hook_may_put_it_in(script: Any, text: str, kind: str) -> None:
    assert find(text) == PROMPT.rstrip("\n")
    script.add(kind, "user", text)
    script.user("Port the exports module first")
    found = script.summary()
    assert found.goal == GOAL
    assert found.requests == ("Port the exports module first",)
    assert found.todos


def test_tool_output_is_none(script: Any) -> None:
    script.user("Read the prompt that is in the file")
    script.bash("cat prompt.txt", PROMPT)
    assert script.summary().goal == "Read the prompt that is in the file"


def test_a_quoted_one_is_none(script: Any) -> None:
    script.add("memory_injection", "user", "Our notes:\n" + "".join(f"> {line}\n" for line in PROMPT.split("\n")))
    script.user("Fix the parser of the client")
    assert script.summary().goal == "Fix the parser of the client"


def test_the_newest_of_several_holds(script: Any) -> None:
    script.add("memory_injection", "user", PROMPT)
    script.user("Go on with what is open")
    script.add("memory_injection", "user", PROMPT.replace("- The rate limiter test is flaky", "- Retries are slow"))
    assert script.summary().open_issues == ("Retries are slow",)


def test_a_summary_of_the_agent_does_not_take_its_place(script: Any) -> None:
    script.add("summary", "user", PROMPT)
    script.user("Go on with what is open")
    script.add(
        "summary", "user", "This session is being continued from a previous conversation.\nPending Tasks:\n- docs"
    )
    found = script.summary()
    assert found.goal == GOAL
    assert "Never change vendor/" in found.constraints


def test_a_later_todo_holds(script: Any) -> None:
    script.add("summary", "user", PROMPT)
    script.user("Go on with what is open")
    script.call("TodoWrite", {"todos": [{"content": "Port the refunds module", "status": "completed"}]})
    status = {todo.text: todo.status for todo in script.summary().todos if todo.agent == "main"}
    assert status["Port the refunds module"] == "done"


def block(kind: str, text: str, exchange: int = 0, number: int = 1) -> Block:
    return Block(f"{number}.0", kind, "user", text, 1, exchange, Source(number), message=number)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["summary", "memory_injection", "user_message"])
def test_it_is_pinned_as_the_task(kind: str) -> None:
    pin = pins_of(EvictionOptions())
    assert pin(block(kind, PROMPT)) == "task"
    assert pin(block("user_message", "Go on", 1, 2)) is None
    assert pin(block(kind, PROMPT, 2, 4)) is None
    assert pin(block(kind, PROMPT)) == "task"  # asked again


def test_one_that_comes_later_is_not_the_task() -> None:
    pin = pins_of(EvictionOptions())
    assert pin(block("user_message", "Fix the parser", 1)) == "task"
    assert pin(block("summary", PROMPT, 1, 2)) is None


def test_a_list_that_leaves_subtasks_out_does_not_call_them_off(script: Any) -> None:
    script.add("summary", "user", PROMPT)
    script.user("Go on with what is open")
    script.call("TodoWrite", {"todos": [{"content": "Port the refunds module", "status": "in_progress"}]})
    facts = SessionFacts()
    for number, one in enumerate(script.blocks):
        facts.see(one, number)
    for told in ((), (Todo("Port the exports module", "planned"), Todo("Write the docs", "planned"))):
        plan = facts.plan(frozenset(), told, told_now=False)
        texts = [planned.todo.text for planned in plan.items]
        assert texts.count("Port the exports module") == texts.count("Check the callers") == 1
        assert texts.count("Write the docs") == bool(told)
        assert not plan.cancelled
