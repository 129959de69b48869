"""What is wrong with a state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ctxctl.model.state import AgentState, Environment, FileState, Position, Subtask, TailBlock
from ctxctl.state.checks import verify
from ctxctl.state.validate import validate

GOOD = AgentState(
    task_goal="migrate billing",
    completed_subtasks=(Subtask("s1", "survey", "done"),),
    current_subtask=Subtask("s2", "convert", "doing"),
    remaining_subtasks=(Subtask("s3", "test", "planned"), Subtask("s4", "helper's", "doing", agent="h")),
)


def codes(state: AgentState) -> list[tuple[str, str]]:
    return [(warning.code, warning.level) for warning in validate(state)]


def test_a_good_state() -> None:
    assert validate(GOOD) == ()


@pytest.mark.parametrize("goal", ["", " \n\t"])
def test_missing_goal(goal: str) -> None:
    assert codes(replace(GOOD, task_goal=goal)) == [("missing_goal", "error")]


@pytest.mark.parametrize("window", [0, -3])
def test_invalid_window(window: int) -> None:
    assert codes(replace(GOOD, window_id=window)) == [("invalid_window", "error")]


def test_remaining_work_without_a_current_item() -> None:
    state = replace(GOOD, current_subtask=None)
    (warning,) = validate(state)
    assert (warning.code, warning.level) == ("no_current", "warning")
    assert "2 subtasks remain" in warning.message and "--doing s3" in warning.hint
    assert codes(replace(state, remaining_subtasks=())) == []


def test_an_id_that_stands_twice() -> None:
    assert codes(replace(GOOD, remaining_subtasks=(Subtask("s1", "again", "planned"),))) == [("duplicate_id", "error")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("completed_subtasks", (Subtask("s1", "survey", "planned"),)),
        ("completed_subtasks", (Subtask("s1", "survey", "doing"),)),
        ("current_subtask", Subtask("s2", "convert", "done")),
        ("current_subtask", Subtask("s2", "convert", "planned")),
        ("remaining_subtasks", (Subtask("s3", "test", "done"),)),
    ],
)
def test_planned_and_done_are_never_mixed_up(key: str, value: object) -> None:
    assert codes(replace(GOOD, **{key: value})) == [("misplaced_status", "error")]  # type: ignore[arg-type]


def test_stale_files_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("new")
    files = (FileState("a", "modified", (), "0" * 64, 3), FileState("b", "read", (), "1" * 64, 3))
    state = replace(GOOD, environment=Environment(files=files))
    (warning,) = validate(state, verify(state, tmp_path))
    assert (warning.code, warning.paths) == ("stale_files", ("a", "b"))
    assert warning.message == "changed since the checkpoint: a; gone since the checkpoint: b"


def test_a_transcript_that_went_on_or_away(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("xxxx")
    state = replace(GOOD, transcript=Position(path=str(path), size=1, turn=2))
    found = validate(state, verify(state, tmp_path))
    assert [w.code for w in found] == ["transcript_newer", "tail_missing"]
    assert str(path) in found[0].hint
    path.unlink()
    found = validate(state, verify(state, tmp_path))
    assert [(w.code, w.level) for w in found] == [("transcript_missing", "info"), ("tail_missing", "info")]


def test_implicit_state_comes_last_and_looks_at_the_disk(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "there.py").write_text("")
    calls = tuple(
        TailBlock(3, "tool_call", "assistant", f'Bash {{"command":"python {name}"}}', "Bash", f"python {name}")
        for name in ("tools/there.py", "tools/gone.py")
    )
    state = replace(GOOD, task_goal="", tail=calls)
    found = validate(state, verify(state, tmp_path))
    assert [w.code for w in found] == ["missing_goal", "implicit_state"]
    assert "tools/gone.py" in found[1].message
    assert len(validate(state)) == 3


def test_the_most_serious_come_first() -> None:
    state = AgentState(transcript=Position(turn=1), remaining_subtasks=(Subtask("s1", "x", "planned"),))
    assert [level for _, level in codes(state)] == ["error", "warning", "info"]
