"""Facts that go on from what was carried are those of the whole, wherever the session is cut."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block
from ctxctl.model.summary import Commit, DecisionFact, FileFact, SessionSummary, Todo


def over(blocks: list[Block], cuts: list[int]) -> tuple[SessionSummary, dict[str, Any]]:
    """The summary of parts that are read one after the other, and what is carried behind the last."""
    facts = SessionFacts()
    at = 0
    for cut in [*cuts, len(blocks)]:
        for number, block in enumerate(blocks[at:cut]):
            facts.see(block, number)
        at = cut
        base, carried = facts.summary(), json.loads(json.dumps(facts.carry()))
        if cut < len(blocks):
            facts = SessionFacts()
            facts.seed(base, carried)
    return base, carried


def check(script: Any) -> SessionSummary:
    """Cut before each block, and before every block: always the same."""
    blocks = script.blocks
    at_once, _ = over(blocks, [])
    for cuts in [*([at] for at in range(1, len(blocks))), list(range(1, len(blocks)))]:
        parts, _ = over(blocks, cuts)
        for field in fields(SessionSummary):
            assert getattr(parts, field.name) == getattr(at_once, field.name), (field.name, cuts)
    return at_once


def test_tasks_get_their_ids_across_a_cut(script: Any) -> None:
    script.user("Do three things, please.")
    script.call("TaskCreate", {"subject": "first"}, "Task #1 created")
    script.call("TaskCreate", {"subject": "second"}, "Task #2 created")
    script.call("TaskUpdate", {"taskId": "1", "status": "completed"}, "ok")
    script.call("TaskCreate", {"subject": "third"}, "failed", error=True)
    script.call("TaskUpdate", {"taskId": "2", "status": "in_progress"}, None)
    assert [(t.text, t.status, t.id) for t in check(script).todos] == [
        ("first", "done", "1"),
        ("second", "doing", "2"),
    ]


def test_a_list_that_fails_later_never_was(script: Any) -> None:
    script.user("Do it, please.")
    script.call("TodoWrite", {"todos": [{"content": "one", "status": "pending"}]}, "ok")
    script.call("TodoWrite", {"todos": [{"content": "two", "status": "completed"}]}, "<tool_use_error>", error=True)
    assert [t.text for t in check(script).todos] == ["one"]


def test_a_todo_tool_takes_the_place_of_checklists(script: Any) -> None:
    script.user("Do it, please.")
    script.said("Plan:\n- [ ] read the code\n- [x] write the test")
    script.said("Plan:\n- [x] read the code\n- [x] write the test")
    script.call("TodoWrite", {"todos": [{"content": "another", "status": "in_progress"}]}, "ok")
    script.said("Plan:\n- [x] nothing more\n- [x] of this")
    assert [t.text for t in check(script).todos] == ["another"]


def test_issues_age_and_questions_get_answers(script: Any) -> None:
    script.user("Look into it, please.")
    for n in range(6):
        script.said(f"The number {n} is not yet implemented. Next step: write number {n}.")
        script.said("I decided to use the other one because it is faster than this.")
    script.said("Shall I go on with the rest of it?")
    found = check(script)
    assert found.open_issues[-1] == "Shall I go on with the rest of it?"
    assert len(found.decisions) == 1
    script.user("no, stop that and use the first one")
    found = check(script)
    assert "Shall I go on with the rest of it?" not in found.open_issues
    assert found.learnings == ("the user corrected: no, stop that and use the first one",)
    assert found.requests == ("no, stop that and use the first one",)
    assert found.goal == "Look into it, please."


def test_errors_are_solved_and_left_behind(script: Any) -> None:
    script.user("Build it, please.")
    script.bash("make a", "Error: a is broken", error=True)
    script.bash("make b", "Error: b is broken", error=True)
    script.bash("make a", "made")
    assert [line for line in check(script).errors] == ["Bash make b: Error: b is broken"]
    for n in range(40):
        script.bash(f"ls {n}", "x")
    assert check(script).errors == ()


def test_commits_are_amended_and_tests_run_again(script: Any) -> None:
    script.user("Commit it, please.")
    script.bash('git commit -m "one"', "[main 1111111] one")
    script.bash("pytest -q tests/a", "1 failed in 0.1s", error=True)
    script.bash("pytest -q tests/b", "1 passed in 0.1s")
    script.bash('git commit --amend -m "two"', "[main 2222222] two")
    script.bash("pytest -q tests/a", "1 passed in 0.1s")
    found = check(script)
    assert [commit.message for commit in found.commits] == ["two"]
    assert [(run.command, run.outcome) for run in found.tests] == [
        ("pytest -q tests/b", "passed"),
        ("pytest -q tests/a", "passed"),
    ]


def test_a_file_has_one_name(script: Any) -> None:
    script.user("Edit it, please.")
    script.bash("cd /w && cat src/a.py", "x")
    script.call("Edit", {"file_path": "/w/src/a.py", "old_string": "a", "new_string": "b"}, "edited")
    script.call("Write", {"file_path": "/w/src/b.py", "content": "b"}, "written")
    script.bash("cd /w && sed -i s/b/c/ src/b.py", "")
    script.bash("cat > gen.py <<'EOF'\nopen('out.txt', 'w')\nEOF", "")
    script.bash("python gen.py", "")
    assert [(f.path, f.role) for f in check(script).files] == [
        ("src/a.py", "modified"),
        ("/w/src/b.py", "modified"),
        ("gen.py", "modified"),
        ("out.txt", "modified"),
    ]


def test_a_session_of_a_shell_goes_on(script: Any) -> None:
    script.user("Run it, please.")
    script.call("exec_command", {"cmd": "pytest -q"}, "Process running with session ID 7\nOutput:\n")
    script.said("It takes a while.")
    script.call("write_stdin", {"session_id": 7}, "Process exited with code 1\nOutput:\n2 failed in 9.9s")
    assert [(run.command, run.outcome) for run in check(script).tests] == [("pytest -q", "failed")]


def test_the_newest_summary_of_another_agent_takes_the_place_of_the_one_before(script: Any) -> None:
    script.user("Do it, please. You must never touch the lock file.")
    script.said("I decided to use sqlite because it is there already.")
    start = "This session is being continued from a previous conversation.\n"
    script.add(
        "summary", "user", f"{start}A line.\n## Key decisions\n- take the old one\n## Pending tasks\n- look at a"
    )
    script.said("The parser is not yet implemented in the client.")
    script.add(
        "summary", "user", f"{start}B line.\n## Key decisions\n- take the new one\n## Pending tasks\n- look at b"
    )
    script.said("It turns out the root cause is the parser of the client.")
    found = check(script)
    assert next(fact.what for fact in found.decisions) == "take the new one"
    assert found.earlier == ("B line.",)


def test_what_a_state_holds_of_another_session(script: Any) -> None:
    """Nothing was carried: the base is told, and the first prompt is a request."""
    script.user("And now the second part of it.")
    script.bash('git commit -m "more"', "[main 2222222] more")
    script.call("TodoWrite", {"todos": [{"content": "new", "status": "pending"}]}, "ok")
    base = SessionSummary(
        goal="The whole task.",
        decisions=(DecisionFact("use sqlite"),),
        commits=(Commit("one", "1111111"),),
        todos=(Todo("old", "done"),),
        files=(FileFact("a.py", "modified", ("edited",)),),
        open_issues=("b is slow",),
        errors=("Bash make: broken",),
        next_steps=("look at b",),
    )
    for carried in ({}, {"version": 0}):
        facts = SessionFacts()
        facts.seed(base, carried)
        assert facts.summary().errors == base.errors
        for number, block in enumerate(script.blocks):
            facts.see(block, number)
        found = facts.summary()
        assert (found.goal, found.requests) == ("The whole task.", ("And now the second part of it.",))
        assert [commit.message for commit in found.commits] == ["one", "more"]
        assert [todo.text for todo in found.todos] == ["new"]
        assert (found.open_issues, found.files, found.decisions) == (base.open_issues, base.files, base.decisions)


@pytest.mark.parametrize("size", [50, 400])
def test_what_is_carried_does_not_grow(script: Any, size: int) -> None:
    script.user("Do very much, please.")
    for n in range(size):
        script.bash(f"make part{n}", f"Error: part {n} is broken", error=True)
        script.bash(f"cd /w && cat src/file{n}.py", "x")
        script.call("TaskCreate", {"subject": f"task {n}"}, f"Task #{n} created")
        script.said(f"The part {n} is not yet implemented. I decided to use part {n} because it is there.")
        script.call("Read", {"file_path": f"/w/src/file{n}.py"}, None)
    _, carried = over(script.blocks, [])
    assert len(json.dumps(carried)) < 60_000
