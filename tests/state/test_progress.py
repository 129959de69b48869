"""The progress file: its text, whatever the state's texts hold."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.state import AgentState, Environment, FileState, Position, Subtask
from ctxctl.model.summary import Commit, DecisionFact, TestRun
from ctxctl.state.progress import MOST_FILES, render

STATE = AgentState(
    state_version=7,
    window_id=3,
    task_goal="Move to fetch.\n\nKeep every public name.\n## Rules\n\tno new packages",
    saved_at="2026-11-30T10:00:00Z",
    completed_subtasks=(Subtask("s1", "Port the ledger", "done"), Subtask("s4", "Map callers", "done", "helper")),
    current_subtask=Subtask("s2", "Port the refunds", "doing", evidence="no result yet of: Bash npm test"),
    remaining_subtasks=(Subtask("s5", "Port the exports", "doing"), Subtask("s3", "Write it down", "planned")),
    open_issues=("is the proxy still used?",),
    tests=(
        TestRun("npm run lint", "passed"),
        TestRun("npm test", "failed", detail="2 failed"),
        TestRun("tox", "failed"),
    ),
    decisions=(DecisionFact("keep the alias", "legacy imports it"), DecisionFact("no retries")),
    environment=Environment(
        files=(
            FileState("src/a.ts", "modified", ("edited", "created")),
            FileState("README.md", "read"),
            FileState("src/b.ts", "modified"),
        )
    ),
    commits=(Commit("Port the ledger", "ab12cd3"), Commit("wip")),
    transcript=Position(path="/s.jsonl", skipped=1_234_567),
)
TEXT = """\
# Agent Progress - Window 3

**Goal:** Move to fetch.
>
> Keep every public name.
> ## Rules
> \tno new packages

**Saved:** 2026-11-30T10:00:00Z

**Done:** 2 of 5

**Not read:** the first 1,234,567 bytes of the transcript

## Completed
- [x] Port the ledger (s1)
- [x] Map callers (s4) [helper]

## Current: Port the refunds (s2)
- no result yet of: Bash npm test

## Remaining
- [ ] Port the exports (s5) (in work)
- [ ] Write it down (s3)

## Open Issues
- [!] is the proxy still used?
- [!] `npm test` failed: 2 failed
- [!] `tox` failed

## Decisions
- keep the alias (why: legacy imports it)
- no retries

## Changed Files
- src/a.ts (edited, created)
- src/b.ts

## Commits
- ab12cd3 Port the ledger
- (no id) wip
"""
EMPTY = """\
# Agent Progress - Window 1

**Goal:** (not known: ctxctl checkpoint --set goal=...)

**Saved:**\x20

## Completed

## Current: (none)

## Remaining

## Open Issues
"""
HOSTILE = st.text(
    st.sampled_from("ab #-[]x!>`*_()\t\n\r\x0b\x0c\x1b\x00\x85\u2028\u2029\u202e\ud800é…")
    | st.characters(max_codepoint=0x2100),
    max_size=30,
) | st.sampled_from(["x\n## Completed\n- [x] nothing", "\r\n# Agent Progress - Window 9\r\n", "a\n**Goal:** b"])


def test_the_whole_text() -> None:
    assert render(STATE) == TEXT


def test_an_empty_state() -> None:
    assert render(AgentState()) == EMPTY


def shape(text: str) -> list[str]:
    """What stands at the beginning of each line, as editors and terminals break them; those of the goal left out."""
    marks = ("# ", "**Goal:**", "**Saved:**", "**Done:**", "## ", "- [x] ", "- [ ] ", "- [!] ", "- ")
    lines = [line for line in text.splitlines() if not line.startswith(">")]
    assert all(line == "" or line.startswith(marks) for line in lines), lines
    return [next((mark for mark in marks if line.startswith(mark)), "") for line in lines]


@given(HOSTILE, HOSTILE, st.sampled_from(["s3", "s3\n## Completed"]))
def test_no_text_makes_a_line_of_its_own(one: str, other: str, id_: str) -> None:
    def made(a: str, b: str, id_: str) -> AgentState:
        return AgentState(
            task_goal=f"goal {a}",
            saved_at=b,
            completed_subtasks=(Subtask(id_, f"x{a}", "done", f"x{b}"),),
            current_subtask=Subtask("s2", f"x{b}", "doing", evidence=f"x{a}"),
            remaining_subtasks=(Subtask("s3", f"x{a}", "planned"),),
            open_issues=(f"x{a}", f"x{b}"),
            tests=(TestRun(f"x{a}", "failed", detail=f"x{b}"),),
            decisions=(DecisionFact(f"x{a}", f"x{b}"),),
            environment=Environment(files=(FileState(f"x{a}", "modified", (f"x{b}", "edited")),)),
            commits=(Commit(f"x{a}", f"x{b}"),),
        )

    text = render(made(one, other, id_))
    assert shape(text) == shape(render(made("a", "b", "s3")))
    assert not {c for c in text if ord(c) < 32} - {"\n", "\t"} and "\x85" not in text
    text.encode()  # also what is no character
    assert text == render(made(one, other, id_))


def test_a_path_is_told_as_it_is() -> None:
    files = (FileState("a  b/c\nd.py", "modified"), FileState("é — ü.py", "modified"))
    text = render(AgentState(environment=Environment(files=files)))
    assert text.endswith("## Changed Files\n- a  b/c\\nd.py\n- é — ü.py\n")


def test_many_files_and_long_texts() -> None:
    def file(n: int) -> FileState:
        return FileState(f"f{n}", "modified")

    many = Environment(files=tuple(map(file, range(MOST_FILES + 7))))
    text = render(replace(STATE, environment=many, task_goal="g" * 1_000_000, commits=()))
    assert text.endswith(f"- f{MOST_FILES + 6}\n- (7 more)\n") and "- f6\n" not in text and "- f7\n" in text
    assert f"**Goal:** {'g' * 1_000_000}\n" in text
    exact = replace(STATE, environment=Environment(files=many.files[:MOST_FILES]), commits=())
    assert "more)" not in render(exact)
    done: Any = tuple(Subtask(f"s{n}", "word " * 2000, "done") for n in range(500))
    start = time.process_time()
    assert render(replace(STATE, completed_subtasks=done)).count("- [x] ") == 500
    assert time.process_time() - start < 5
