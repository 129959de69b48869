"""The state's file: both ways, upgraded from plain lists, refused with the key that is wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import CtxctlError, InputError, NothingFoundError
from ctxctl.model.state import AgentState, Environment, FileState, Position, Service, Subtask, TailBlock, WorkingFile
from ctxctl.model.summary import Commit, DecisionFact, TestRun, Todo
from ctxctl.state import record
from ctxctl.state.by_hand import ByHand
from ctxctl.state.options import StateOptions
from ctxctl.state.saving import Wish, checkpoint

SAMPLE = Path(__file__).parents[2] / "sample_transcripts" / "axios-to-fetch.jsonl"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
TEXT = st.text(max_size=30)
STATUS = st.sampled_from(["planned", "doing", "done"])
EXTRA = st.dictionaries(st.sampled_from(["mine", "x_1", "extra"]), st.integers() | TEXT, max_size=2)
SUBTASK = st.builds(
    Subtask, st.just(""), TEXT, STATUS, TEXT, st.sampled_from(["transcript", "hand", "note"]), st.none() | TEXT,
    st.integers(1, 9), TEXT, st.none() | STATUS, EXTRA,
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
        extra=EXTRA,
    ),
    tail=st.lists(st.builds(TailBlock, st.integers(1, 9), TEXT, TEXT, TEXT), max_size=2).map(tuple),
    todos=st.lists(st.builds(Todo, TEXT, STATUS), max_size=2).map(tuple),
    working_set=st.lists(st.builds(WorkingFile, TEXT, st.none() | TEXT), max_size=2).map(tuple),
    commits=st.lists(st.builds(Commit, TEXT), max_size=2).map(tuple),
    tests=st.lists(st.builds(TestRun, TEXT, st.just("failed")), max_size=2).map(tuple),
    transcript=st.builds(Position, st.none() | TEXT, TEXT, carry=st.just({"open": [["x", 1]], "n": 3})),
    extra=EXTRA,
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


KEPT: dict[str, Any] = {
    "task_goal": "x",
    "environment": {"cwd": "/w", "container": {"image": "node:22"}, "extra": [1], "git_head": "ab"},
    "completed_subtasks": [{"text": "a", "status": "done", "owner": "Kim", "extra": None}, "b"],
    "current_subtask": {"text": "c", "points": 3},
    "remaining_subtasks": [{"text": "d", "due": "2026-12-24"}],
}


def test_unknown_keys_of_the_environment_and_of_subtasks_are_kept() -> None:
    state = record.from_json(KEPT)
    assert state.environment.extra == {"container": {"image": "node:22"}, "extra": [1]}
    assert [s.extra for s in state.subtasks] == [
        {"owner": "Kim", "extra": None}, {}, {"points": 3}, {"due": "2026-12-24"},
    ]  # fmt: skip
    written = json.loads(record.dumps(state))
    assert written["environment"]["container"] == {"image": "node:22"} and written["environment"]["extra"] == [1]
    done, plain = written["completed_subtasks"]
    assert (done["owner"], done["extra"], done["text"]) == ("Kim", None, "a")
    assert "extra" not in plain
    assert written["current_subtask"]["points"] == 3
    assert written["remaining_subtasks"][0]["due"] == "2026-12-24"
    assert record.from_json(written) == state
    assert KEPT["current_subtask"] == {"text": "c", "points": 3}, "what is given is not changed"


def test_unknown_keys_outlive_a_checkpoint(tmp_path: Path) -> None:
    """All that a checkpoint does to a subtask and to the environment: marked, moved, observed, a task added."""
    path = tmp_path / "agent_state.json"
    path.write_text(json.dumps({**KEPT, "team": "blue", "environment": {**KEPT["environment"], "cwd": str(tmp_path)}}))
    by_hand = ByHand(done=("c",), doing=("d",), planned=("a",), todos=("e",), services=(Service("db", 5432),))
    for wish in (Wish(by_hand=by_hand), Wish(by_hand=ByHand(sets=(("cwd", str(tmp_path)),))), Wish(from_notes=True)):
        checkpoint(wish, tmp_path, StateOptions(), NOW)
    written = json.loads(path.read_bytes())
    found = {s.text: dict(s.extra) for s in record.from_json(written).subtasks}
    assert found == {
        "a": {"owner": "Kim", "extra": None}, "b": {}, "c": {"points": 3}, "d": {"due": "2026-12-24"}, "e": {},
    }  # fmt: skip
    assert (written["team"], written["environment"]["container"]) == ("blue", {"image": "node:22"})
    assert written["environment"]["services"] == [{"name": "db", "port": 5432, "command": None}]


def test_unknown_keys_outlive_what_a_transcript_says(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    shutil.copy(SAMPLE, session)
    checkpoint(Wish(str(session)), tmp_path, StateOptions(), NOW)
    path = tmp_path / "agent_state.json"
    value = json.loads(path.read_bytes())
    for subtask in (*value["completed_subtasks"], *value["remaining_subtasks"]):
        subtask["ticket"] = subtask["id"]
    value["environment"]["container"] = "node:22"
    assert value["completed_subtasks"]
    path.write_text(json.dumps(value))
    for force in (False, True):  # read on; read anew
        checkpoint(Wish(str(session), force=force), tmp_path, StateOptions(), NOW)
        again = json.loads(path.read_bytes())
        assert [s["ticket"] for s in again["completed_subtasks"]] == [s["id"] for s in value["completed_subtasks"]]
        assert again["environment"]["container"] == "node:22"


def test_a_subtask_of_unknown_keys_can_be_hashed() -> None:
    one, other = (Subtask("s1", "a", "planned", extra={"n": n}) for n in ([1], [2]))
    assert hash(one) == hash(other) and one != other
