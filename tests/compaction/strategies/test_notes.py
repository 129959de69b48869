"""notes: entries for the file, and the summary that points there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxctl.compaction.notes import TYPES, Notes, entries_of
from ctxctl.compaction.options import CompactionOptions
from ctxctl.model.edits import SUMMARY, Note
from ctxctl.model.summary import Commit, DecisionFact, FileFact, SessionSummary, Todo
from ctxctl.model.summary import TestRun as Run

FACTS = SessionSummary(
    turns=(1, 40),
    goal="Make the parser fast",
    success_criteria=("parse 1 MB in under 1 s",),
    constraints=("Never touch the public API.",),
    requests=("now the writer",),
    decisions=(DecisionFact("use a table", "three times as fast", 7), DecisionFact("drop Python 3.8")),
    files=(FileFact("src/parse.py", "modified", ("edited",)), FileFact("src/read.py", "read")),
    todos=(Todo("measure", "done"), Todo("table", "doing"), Todo("docs", "planned", "writer")),
    tests=(Run("pytest -q", "passed", "41 passed"), Run("npm test", "failed", "2 failed")),
    commits=(Commit("Faster words", "abc1234"), Commit("More tests")),
    open_issues=("Unicode names are slow",),
    dead_ends=("tried mmap, failed because of Windows",),
    errors=("KeyError: 'x'",),
    learnings=("orjson refuses NaN",),
    next_steps=("write the table",),
    earlier=("from an earlier window",),
)


class Writer:
    """A model with one answer."""

    def __init__(self, text: str | None) -> None:
        self.text, self.asked = text, []

    def write(self, task: str, goal: str, material: str, most: int) -> str | None:
        self.asked.append((task, goal, material, most))
        return self.text


def long_session(session: Any) -> Any:
    session.facts = FACTS
    session.user("Make the parser fast")
    for n in range(40):
        session.say(f"step {n}", ("Bash", {"command": f"make {n}"}, f"out {n}\n" + "z" * 2_000))
    return session


def test_entries_are_what_the_facts_hold() -> None:
    assert entries_of(FACTS) == [
        Note("decision", "use a table (because: three times as fast)"),
        Note("decision", "drop Python 3.8"),
        Note("done", "measure"),
        Note("done", "commit abc1234: Faster words"),
        Note("done", "commit: More tests"),
        Note("done", "src/parse.py: edited"),
        Note("done", "pytest -q: passed, 41 passed"),
        Note("lesson", "orjson refuses NaN"),
        Note("lesson", "tried mmap, failed because of Windows"),
        Note("issue", "Unicode names are slow"),
        Note("issue", "KeyError: 'x'"),
        Note("issue", "npm test: failed, 2 failed"),
        Note("plan", "table (doing)"),
        Note("plan", "docs (planned) [writer]"),
        Note("plan", "next step: write the table"),
    ]
    assert {note.type for note in entries_of(FACTS)} == set(TYPES)
    assert entries_of(SessionSummary()) == []


def test_a_summary_takes_the_place_of_the_old_part(session: Any, carry_out: Callable[..., Any]) -> None:
    options = CompactionOptions(notes_file="docs/notes.md")
    scene = long_session(session).scene(0.3, options, recall="ctxctl recall s.db")
    edits = carry_out(Notes(), scene)
    assert edits.entries == entries_of(FACTS)
    (change,) = edits.replaces
    assert change.kind == SUMMARY
    assert change.text.split("\n") == [
        "[summary] turns 1-35; notes: docs/notes.md",
        "Success: parse 1 MB in under 1 s",
        "Constraint: Never touch the public API.",
        "Progress: 1 of 3 done",
        "Doing: table",
        "To do: docs [writer]",
        "Next: write the table",
        "Asked last: now the writer",
        "Open: Unicode names are slow",
        "Changed: src/parse.py: edited",
        "Earlier: from an earlier window",
        "Originals: ctxctl recall s.db",
    ]
    assert scene.over <= 0
    kept = [session.blocks[b].text for b in sorted(scene.window.entries)]
    assert kept[0] == "Make the parser fast" and kept[-1].startswith("out 39")


def test_the_goal_is_told_where_its_message_is_not_pinned(session: Any, carry_out: Callable[..., Any]) -> None:
    session.pinned = lambda block: None
    scene = long_session(session)
    session.user("and now?")
    scene = session.scene(0.3)
    edits = carry_out(Notes(), scene)
    assert "Goal: Make the parser fast" in edits.replaces[0].text


def test_a_second_pass_changes_and_notes_nothing(session: Any, carry_out: Callable[..., Any]) -> None:
    strategy, scene = Notes(), long_session(session).scene(0.3)
    assert carry_out(strategy, scene)
    assert not carry_out(strategy, scene).entries
    assert not Notes().plan(scene)


def test_what_was_noted_is_not_noted_again_in_a_live_session(
    session: Any, carry_out: Callable[..., Any], with_target: Callable[..., Any]
) -> None:
    strategy, scene = Notes(), long_session(session).scene(0.5)
    strategy.plan(scene)  # not carried out: nothing was noted
    assert len(carry_out(strategy, scene).entries) == 15
    more = SessionSummary(turns=(1, 40), learnings=("orjson refuses NaN", "tables win"))
    session.facts = more
    edits = carry_out(strategy, with_target(scene, 1_000))
    assert edits.entries == [Note("lesson", "tables win")]
    assert len(edits.replaces) == 1, "the earlier summary is merged"


def test_a_summary_keeps_to_its_room(session: Any, carry_out: Callable[..., Any]) -> None:
    todos = tuple(Todo(f"item {n} of the plan", "planned") for n in range(3_000))
    long_session(session).facts = SessionSummary(goal="g", todos=todos, constraints=("Always test.",))
    scene = session.scene(0.3)
    (change,) = carry_out(Notes(), scene).replaces
    assert change.tokens <= scene.target * 0.4
    assert "Always test." in change.text and "more in the notes)" in change.text
    assert change.text.count("To do:") > 100


def test_a_model_adds_entries_and_other_lines_are_left_out(session: Any, carry_out: Callable[..., Any]) -> None:
    text = (
        "Here they are:\n- Lesson: the table must be built once\n**decision**: keep regex\nissue:\nplan: docs\n# done"
    )
    writer = Writer(text)
    edits = carry_out(Notes(), long_session(session).scene(0.3, helper=writer))
    assert edits.entries[15:] == [
        Note("lesson", "the table must be built once"),
        Note("decision", "keep regex"),
        Note("plan", "docs"),
    ]
    ((task, goal, material, _),) = writer.asked
    assert (task, goal) == ("notes", "Make the parser fast")
    assert all(f"out {n}\n" in material and f"step {n}\n" in material for n in range(33))


def test_a_model_that_fails_changes_nothing(session: Any, carry_out: Callable[..., Any]) -> None:
    edits = carry_out(Notes(), long_session(session).scene(0.3, helper=Writer(None)))
    assert edits.entries == entries_of(FACTS)


def test_nothing_to_do(session: Any) -> None:
    session.user("hello")
    session.say("hi")
    assert not Notes().plan(session.scene(0.1))
    assert not Notes().plan(long_session(session).scene(1.0))
