"""The state's file: both ways, upgraded from plain lists, refused with the key that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import CtxctlError, InputError, NothingFoundError
from ctxctl.model.state import AgentState, Environment, FileState, Position, Service, Subtask, TailBlock, WorkingFile
from ctxctl.model.summary import Commit, DecisionFact, TestRun, Todo
from ctxctl.state import record

TEXT = st.text(max_size=30)
STATUS = st.sampled_from(["planned", "doing", "done"])
SUBTASK = st.builds(
    Subtask, st.just(""), TEXT, STATUS, TEXT, st.sampled_from(["transcript", "hand", "note"]), st.none() | TEXT,
    st.integers(1, 9), TEXT, st.none() | STATUS,
)  # fmt: skip
FILE = st.builds(FileState, TEXT, st.sampled_from(["read", "modified"]), st.lists(TEXT, max_size=2).map(tuple))
STATE = st.builds(
    AgentState,
    state_version=st.integers(0, 1 << 40),
    window_id=st.integers(1, 1000),
    task_goal=TEXT,
    constraints=st.lists(TEXT, max_size=3).map(tuple),
    completed_subtasks=st.lists(SUBTASK, max_size=3).map(tuple),
    current_subtask=st.none() | SUBTASK,
    remaining_subtasks=st.lists(SUBTASK, max_size=3).map(tuple),
    decisions=st.lists(st.builds(DecisionFact, TEXT, TEXT, st.none() | st.integers(1, 9)), max_size=3).map(tuple),
    environment=st.builds(
        Environment,
        st.none() | TEXT,
        files=st.lists(FILE, max_size=2).map(tuple),
        services=st.lists(st.builds(Service, TEXT, st.none() | st.integers(1, 65535)), max_size=2).map(tuple),
    ),
    tail=st.lists(st.builds(TailBlock, st.integers(1, 9), TEXT, TEXT, TEXT), max_size=2).map(tuple),
    todos=st.lists(st.builds(Todo, TEXT, STATUS), max_size=2).map(tuple),
    working_set=st.lists(st.builds(WorkingFile, TEXT, st.none() | TEXT), max_size=2).map(tuple),
    commits=st.lists(st.builds(Commit, TEXT), max_size=2).map(tuple),
    tests=st.lists(st.builds(TestRun, TEXT, st.just("failed")), max_size=2).map(tuple),
    transcript=st.builds(Position, st.none() | TEXT, TEXT, carry=st.just({"open": [["x", 1]], "n": 3})),
    extra=st.dictionaries(st.just("mine") | st.just("x_1"), st.integers() | TEXT, max_size=2),
)


@given(STATE)
def test_what_is_written_is_what_is_read(state: AgentState) -> None:
    data = record.dumps(state)
    again = record.from_json(json.loads(data))
    assert again.extra == state.extra
    assert [s.text for s in again.subtasks] == [s.text for s in state.subtasks]
    assert record.from_json(json.loads(record.dumps(again))) == again
    assert replace(again, completed_subtasks=(), current_subtask=None, remaining_subtasks=(), next_id=0) == replace(
        state, completed_subtasks=(), current_subtask=None, remaining_subtasks=(), next_id=0
    )


@given(STATE)
def test_every_subtask_has_an_id_of_its_own(state: AgentState) -> None:
    found = record.from_json(json.loads(record.dumps(state)))
    ids = [s.id for s in found.subtasks]
    assert len(set(ids)) == len(ids) and all(ids)
    assert f"s{found.next_id}" not in ids


def test_a_plain_file_is_upgraded() -> None:
    plain = {
        "task_goal": "Move to fetch",
        "completed_subtasks": ["client", "auth"],
        "current_subtask": "retries",
        "remaining_subtasks": ["docs"],
        "decisions": ["use fetch"],
        "open_issues": ["is the proxy used?"],
        "environment": {"files": {"a.py": "ab12"}, "services": ["db"]},
        "team": {"lead": "Kim"},
    }
    state = record.from_json(plain)
    assert [(s.id, s.text, s.status) for s in state.subtasks] == [
        ("s1", "client", "done"),
        ("s2", "auth", "done"),
        ("s3", "retries", "doing"),
        ("s4", "docs", "planned"),
    ]
    assert state.next_id == 5
    assert state.decisions == (DecisionFact("use fetch"),)
    assert state.environment.files[0].sha256 == "ab12"
    assert state.extra == {"team": {"lead": "Kim"}}
    assert json.loads(record.dumps(state))["team"] == {"lead": "Kim"}


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"task_goal": 3}, "$.task_goal"),
        ({"task_goal": "x", "decisions": 4}, "$.decisions"),
        ({"task_goal": "x", "window_id": "two"}, "$.window_id"),
        (
            {"task_goal": "x", "completed_subtasks": [{"text": "a", "status": "finished"}]},
            "$.completed_subtasks[0].status",
        ),
        ({"task_goal": "x", "schema": "ctxctl.state/9"}, "ctxctl.state/9"),
        ({"task_goal": "x", "schema": "other/1"}, "other/1"),
    ],
)
def test_a_wrong_shape_names_its_key(value: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as raised:
        record.from_json(value, path="agent_state.json")
    assert part in str(raised.value) and "agent_state.json" in str(raised.value)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", NothingFoundError),
        (b" \n\x00", NothingFoundError),
        (b'{"task_goal": "x"', InputError),
        (b"[1]", InputError),
        (b'{"a": 1}', InputError),
        (b"\xff\xfe", InputError),
    ],
)
def test_what_is_no_state_is_refused(tmp_path: Path, data: bytes, error: type[CtxctlError]) -> None:
    path = tmp_path / "agent_state.json"
    path.write_bytes(data)
    with pytest.raises(error):
        record.load(path)


def test_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError):
        record.load(tmp_path / "agent_state.json")


def test_lone_surrogates_are_written(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(record.dumps(AgentState(task_goal="a\ud800b")))
    assert record.load(path).task_goal == "a\ufffdb"


def test_a_position_that_was_changed_by_hand_is_not_read_on_from() -> None:
    position = Position("id", "/a.jsonl", "codex", 100, 3, carry={"n": 1}, reading={"offset": 7}, mark="ab")
    value = json.loads(record.dumps(AgentState(task_goal="x", transcript=position)))
    assert record.from_json(value).transcript == position
    for key, changed in (("offset", 99), ("carry", {"n": 2}), ("reading", {}), ("seal", "")):
        found = record.from_json({**value, "transcript": {**value["transcript"], key: changed}}).transcript
        assert (found.mark, found.carry, found.reading, found.id) == ("", {}, {}, "id")
