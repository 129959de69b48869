"""Notes as facts: nothing told twice, nothing done that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.compaction.notes import entries_of
from ctxctl.model.edits import Note
from ctxctl.model.summary import Commit, DecisionFact, FileFact, SessionSummary, TestRun, Todo
from ctxctl.state.noted import Notebook, facts_of, kind_of, with_notes
from ctxctl.state.notes import append_notes, read_notes

NOW = "2026-11-30T10:15:00Z"
SESSION = SessionSummary(
    turns=(1, 9),
    goal="migrate",
    decisions=(DecisionFact("use fetch", "node has it"), DecisionFact("two queues")),
    files=(FileFact("src/a.ts", "modified", ("created", "edited")), FileFact("b.ts", "modified")),
    todos=(Todo("one", "done"), Todo("two", "doing"), Todo("three", "planned", "helper")),
    tests=(TestRun("npm test", "passed", "12 passing"), TestRun("npm run lint", "failed")),
    commits=(Commit("Use fetch", "abc1234"), Commit("later")),
    open_issues=("is 429 retried?",),
    dead_ends=("tried ky, failed because of streams",),
    errors=("Bash npm run lint: 3 errors",),
    learnings=("retries need a fresh body",),
    next_steps=("Next: the services",),
)


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("decision", "decision"),
        ("ARCH_DECISION", "decision"),
        ("Design Decision", "decision"),
        ("api-decision", "decision"),
        ("STEP_DONE", "done"),
        ("LESSONS", "lesson"),
        ("NEXT", "plan"),
        ("TODO", "plan"),
        ("KNOWN_BUG", "issue"),
        ("DONE_LATER", "lesson"),
        ("UNDONE", "lesson"),
        ("NOTE", "lesson"),
        ("???", "lesson"),
    ],
)
def test_types(type_: str, kind: str) -> None:
    assert kind_of(type_) == kind


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("use fetch", "use fetch", ""),
        ("use fetch because node has it", "use fetch", "node has it"),
        ("use fetch, because node has it", "use fetch", "node has it"),
        ("use fetch\n\nBecause: node has it", "use fetch", "node has it"),
        ("use fetch (because: node has it)", "use fetch", "node has it"),
        ("keep x because a because b", "keep x", "a because b"),
        ("because", "because", ""),
        ("the becausebar", "the becausebar", ""),
    ],
)
def test_reasons(text: str, what: str, why: str) -> None:
    assert facts_of([Note("decision", text)]).decisions == (DecisionFact(what, why),)


def test_each_type_has_its_place() -> None:
    notes = [Note("done", "one"), Note("plan", "two"), Note("lesson", "l"), Note("issue", "i"), Note("REMARK", "r")]
    found = facts_of(notes)
    assert found.todos == (Todo("one", "done"), Todo("two", "planned"))
    assert (found.learnings, found.open_issues) == (("l", "r"), ("i",))
    assert facts_of([]) == SessionSummary() == facts_of([Note("done", " \n")])


def test_done_marks_what_was_planned_in_the_same_words_only() -> None:
    notes = [Note("plan", "migrate billing"), Note("plan", "migrate billing tests"), Note("done", "migrate\n billing")]
    assert facts_of(notes).todos == (Todo("migrate billing", "done"), Todo("migrate billing tests", "planned"))
    notes = [Note("plan", "migrate billing"), Note("done", "Migrate billing."), Note("done", "migrate")]
    assert facts_of(notes).todos[0] == Todo("migrate billing", "planned")


def test_what_was_planned_again_is_planned() -> None:
    assert facts_of([Note("done", "one"), Note("plan", "one")]).todos == (Todo("one", "planned"),)


def test_credentials_are_taken_out() -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    found = facts_of([Note("lesson", f"the token is {key}"), Note("decision", f"use {key} because it works")])
    assert key not in repr(found)


def test_what_a_compaction_wrote_reads_back_as_it_was() -> None:
    found = facts_of(entries_of(SESSION))
    assert found.decisions == SESSION.decisions
    assert found.files == SESSION.files
    assert sorted(found.todos, key=str) == sorted(SESSION.todos, key=str)
    assert sorted(found.tests, key=str) == sorted(SESSION.tests, key=str)
    assert found.commits == SESSION.commits and found.next_steps == ()
    assert set(found.learnings) == {*SESSION.learnings, *SESSION.dead_ends}
    assert set(found.open_issues) == {*SESSION.open_issues, *SESSION.errors}


def book(tmp_path: Path, *notes: Note) -> Notebook:
    path = tmp_path / "agent_notes.md"
    append_notes(path, notes, NOW)
    return Notebook("agent_notes.md", read_notes(path))


def test_its_own_notes_add_nothing_to_a_session(tmp_path: Path) -> None:
    found = with_notes(SESSION, book(tmp_path, *entries_of(SESSION)), {"Bash"})
    assert found.learnings == SESSION.learnings and found.open_issues == SESSION.open_issues
    assert set(found.decisions) == set(SESSION.decisions) and len(found.decisions) == 2
    assert sorted(found.todos, key=str) == sorted(SESSION.todos, key=str)
    assert set(found.files) == set(SESSION.files) and set(found.commits) == set(SESSION.commits)
    assert set(found.tests) == set(SESSION.tests) and found.next_steps == SESSION.next_steps
    assert (found.goal, found.turns, found.errors) == (SESSION.goal, SESSION.turns, SESSION.errors)


def test_they_are_not_written_again(tmp_path: Path) -> None:
    notebook = book(tmp_path, Note("decision", "use fetch because node has it"), Note("plan", "two (doing)"))
    fresh = notebook.untold([*entries_of(SESSION), Note("done", "two")])
    assert Note("decision", "use fetch (because: node has it)") not in fresh
    assert Note("plan", "two (doing)") not in fresh
    assert Note("done", "two") in fresh and Note("decision", "two queues") in fresh
    assert book(tmp_path, *fresh).untold(fresh) == []


def test_the_session_says_how_things_stand_now(tmp_path: Path) -> None:
    early = SessionSummary(
        todos=(Todo("one", "doing"), Todo("gone", "planned")), errors=("Bash npm test: 2 failing", "Read x: no such")
    )
    hand = [Note("plan", "by hand"), Note("issue", "Bash is slow"), Note("issue", "who owns: billing?")]
    found = with_notes(SESSION, book(tmp_path, *entries_of(early), *hand), {"Bash", "Read"})
    texts = {todo.text: todo.status for todo in found.todos}
    assert texts == {"one": "done", "two": "doing", "three": "planned", "by hand": "planned"}
    assert found.open_issues == ("Bash is slow", "who owns: billing?", "is 429 retried?")


def test_of_next_steps_the_newest_is_told(tmp_path: Path) -> None:
    notebook = book(tmp_path, *entries_of(SESSION), *entries_of(SessionSummary(next_steps=("run the tests",))))
    assert with_notes(SessionSummary(), notebook).next_steps == ("run the tests",)
    assert with_notes(SESSION, notebook).next_steps == SESSION.next_steps


def test_without_a_plan_of_its_own_the_noted_one_holds(tmp_path: Path) -> None:
    notebook = book(tmp_path, *entries_of(SESSION))
    found = with_notes(SessionSummary(turns=(1, 2)), notebook)
    assert sorted(found.todos, key=str) == sorted(SESSION.todos, key=str)
