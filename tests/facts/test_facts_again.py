"""Facts of a session that was compacted before: what its summary told holds, and what shrank adds nothing untrue."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.facts import noted
from ctxctl.facts.parse import parse, tales
from ctxctl.facts.summary import render
from ctxctl.model.summary import Commit, FileFact, LeftOut, SessionSummary, TestRun, Todo

RICH = SessionSummary(
    turns=(1, 40),
    goal="Migrate to fetch.\n\nKeep the API.",
    constraints=("Never touch src/legacy.", "Always run the linter."),
    files=tuple(FileFact(f"src/f{n}.py", "modified", ("edited",)) for n in range(9)),
    todos=(Todo("first", "doing"), Todo("theirs", "planned", "helper"), Todo("zero", "done")),
    open_issues=("Windows is not tested",),
)

TALES = """
## What was said
- I begin with the parser of the client.
## Lines that may be needed again
- turn 3, Read README.md:
## Goal
> not the goal
- [ ] not a task
## Something else"""


def test_what_is_told_is_no_fact() -> None:
    text = render(RICH, len, 10**6)
    assert parse(text + TALES) == parse(text)
    assert tales(text + TALES) == [
        ("What was said", ["- I begin with the parser of the client."]),
        (
            "Lines that may be needed again",
            ["- turn 3, Read README.md:", "## Goal", "> not the goal", "- [ ] not a task", "## Something else"],
        ),
    ]
    assert tales(text) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[summary] turns 3-9: Fix it -> It is fixed", ["Fix it -> It is fixed"]),
        (
            "[summary] turns 3-9: search and read, 9 calls\nQuestion: where?\n- Read a.py: x",
            ["search and read, 9 calls", "Question: where?", "- Read a.py: x"],
        ),
        ("[summary] turns 1-4\n> User: hello\n- Called Read", ["> User: hello", "- Called Read"]),
    ],
)
def test_short_heads(text: str, lines: list[str]) -> None:
    found = parse(text)
    assert found is not None
    assert found == SessionSummary(turns=found.turns) and found.turns[1]
    assert [line for _, told in tales(text) for line in told] == lines


def test_the_form_with_a_notes_file_reads_back() -> None:
    lines = "\n".join(noted.lines_of(RICH, False))
    found = parse(f"[summary] turns 1-40; notes: agent_notes.md\n{lines}\n(3 more in the notes)\nOriginals: x")
    assert found is not None
    assert found.turns == (1, 40) and found.goal == RICH.goal
    assert found.constraints == RICH.constraints and found.open_issues == RICH.open_issues
    assert set(found.todos) == {t for t in RICH.todos if t.status != "done"}
    assert {(f.path, f.actions) for f in found.files} == {(f.path, f.actions) for f in RICH.files}
    assert "\n".join(noted.lines_of(found, False)).replace("Progress: 0 of 2", "Progress: 1 of 3") == lines


def test_what_had_no_place_stays_counted() -> None:
    text = render(RICH, len, 180, omit_goal=True)
    found = parse(text)
    assert found is not None and found.left_out
    again = render(found, len, 10**6, omit_goal=True)
    had = sum(item.count for item in found.left_out)
    back = parse(again)
    assert back is not None and sum(item.count for item in back.left_out) == had
    assert LeftOut("", 3) in (parse("[summary] turns 1-2\n## Constraints\n- a\n(left out: 3)") or RICH).left_out


def test_shrunk_results_add_nothing(script: Any) -> None:
    told = SessionSummary(
        turns=(1, 30),
        tests=(TestRun("pytest -q", "failed", "3 failed, 2 passed in 0.1s"),),
        commits=(Commit("Move it", "abc1234"),),
        errors=("Bash make all: no rule to make it",),
    )
    script.add("summary", "user", render(told, len, 10**6))
    script.bash("pytest -q", "[summary] turn 7, tool_result Bash pytest -q:\nsome line", error=True)
    script.bash("git commit -m 'Move it'", "[cleared: Bash git commit, 900 tokens]")
    script.bash("make all", "[summary] turn 9, tool_result Bash make all:\nerror: other words", error=True)
    found = script.summary()
    assert [(r.command, r.outcome, r.detail) for r in found.tests] == [
        ("pytest -q", "failed", "3 failed, 2 passed in 0.1s")
    ]
    assert [(c.id, c.message) for c in found.commits] == [("abc1234", "Move it")]
    assert found.errors == told.errors
    assert "[summary]" not in render(found, len, 10**6).removeprefix("[summary]")
    script.bash("make all", "done")
    assert script.summary().errors == ()


def test_an_amended_commit_is_gone(script: Any) -> None:
    script.add("summary", "user", render(SessionSummary(turns=(1, 3), commits=(Commit("A", "aaaaaaa"),)), len, 10**6))
    script.bash("git commit --amend -m B", "[main bbbbbbb] B\n 1 file changed")
    assert [c.id for c in script.summary().commits] == ["bbbbbbb"]


def test_a_task_whose_call_is_still_there_is_one(script: Any) -> None:
    told = SessionSummary(turns=(1, 3), todos=(Todo("Write it", "done", "main", "1"),))
    script.add("summary", "user", render(told, len, 10**6))
    script.call("TaskCreate", {"subject": "Write it"}, "Task #1 created")
    assert script.summary().todos == told.todos
