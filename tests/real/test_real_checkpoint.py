"""The state that `ctxctl checkpoint` makes of real sessions, against an extraction of its own (real_extraction)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_extraction import READERS, Found, extract
from real_readers import TRANSCRIPTS, paths

from ctxctl.cli.app import run
from ctxctl.errors import ExitCode

NOT_ONE = "tau-airline-60.jsonl"
"""Sixty sessions in one file."""


def checkpoint(folder: Path, *arguments: Any, status: int = 0) -> Any:
    """Take a checkpoint in a folder; the state, read by the standard library."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        done = run(["checkpoint", "--json", *map(str, arguments)])
    said = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert done == status, said
    if status:
        return said
    data = (folder / "agent_state.json").read_bytes()
    state = json.loads(data.decode("utf-8", "strict"))
    printed = json.loads(out.buffer.getvalue())["result"]  # type: ignore[attr-defined]
    assert {key: printed[key] for key in state} == state, "what is printed is what is saved"
    return state


def quiet(folder: Path, path: Path) -> int:
    """Take a checkpoint in a folder; the exit status."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return int(run(["checkpoint", "-q", str(path)]))


@pytest.fixture(scope="module")
def states(transcripts: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any, Found]]:
    """(name, state, what the session did) of each session that can be read."""
    made = []
    for path in sorted(transcripts.glob("*/*")):
        if path.name == NOT_ONE:
            continue
        folder = tmp_path_factory.mktemp("state")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            done = run(["checkpoint", "-q", str(path)])
        if done in (ExitCode.INPUT, ExitCode.NOTHING):
            assert not list(folder.iterdir()), f"{path.name}: what can't be read leaves nothing"
            continue
        assert done == 0, (path.name, err.getvalue())
        state = json.loads((folder / "agent_state.json").read_bytes())
        made.append((f"{path.parent.name}/{path.name}", state, extract(READERS[state["transcript"]["format"]](path))))
    assert len(made) > 60
    return made


def subtasks(state: Any) -> Iterator[tuple[str, str]]:
    current = [state["current_subtask"]] if state["current_subtask"] else []
    for subtask in (*state["completed_subtasks"], *current, *state["remaining_subtasks"]):
        if subtask["agent"] == "main" and subtask["id"] != "now":  # that one is the request that is being worked on
            yield subtask["text"], subtask["status"]


def test_changed_files(states: list[tuple[str, Any, Found]]) -> None:
    for name, state, found in states:
        changed = [f["path"] for f in state["environment"]["files"] if f["role"] == "modified"]
        assert len(changed) == len(set(changed)), name
        assert set(changed) == {path.removeprefix("./") for path in found.changed}, name


def test_the_newest_list(states: list[tuple[str, Any, Found]]) -> None:
    for name, state, found in states:
        todos = [(todo["text"], todo["status"]) for todo in state["todos"] if todo["agent"] == "main"]
        assert todos == (found.todos or []), name


def test_planned_doing_and_done(states: list[tuple[str, Any, Found]]) -> None:
    """Each item has the status that the newest list with it on says; none that was finished is lost."""
    seen = 0
    for name, state, found in states:
        last = {text: status for items in found.lists for text, status in items}
        told = list(subtasks(state))
        assert len(told) == len(dict(told)), f"{name}: each once"
        newest = dict(found.todos or [])
        for text, status in told:
            assert status == last[text], (name, text)
        for text, status in last.items():
            if status == "done" or text in newest:
                assert (text, status) in told, (name, text)
        assert all(s["status"] == "done" for s in state["completed_subtasks"]), name
        assert all(s["status"] != "done" for s in state["remaining_subtasks"]), name
        doing = [text for text, status in told if status == "doing"]
        current = state["current_subtask"]
        assert current["text"] == doing[0] if doing else current is None or current["id"] == "now", name
        seen += len(told)
    assert seen > 40


def test_commits_and_tests(states: list[tuple[str, Any, Found]]) -> None:
    for name, state, found in states:
        assert [(c["id"], c["message"]) for c in state["commits"]] == found.commits[-500:], name
        outcomes = {tuple(run["command"].split()): run["outcome"] for run in state["tests"]}
        assert len(outcomes) == min(50, len(found.tests)), name


GROWING = [*paths("claude-code"), *paths("codex"), *paths("message-per-line")]


@pytest.mark.parametrize("path", [p for p in GROWING if p.suffix == ".jsonl"], ids=lambda p: p.name[:24])
def test_in_one_step_and_in_five(path: Path, transcripts: Path, tmp_path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True) if b"\r" not in path.read_bytes() else None
    if lines is None or len(lines) < 10 or path.stat().st_size > 1_500_000:
        pytest.skip("too short to grow, or left to the slow test")
    one_step_and_many(path, tmp_path, 5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("path", [p for p in GROWING if p.suffix == ".jsonl"], ids=lambda p: p.name[:24])
def test_in_one_step_and_in_many(path: Path, seed: int, transcripts: Path, tmp_path: Path) -> None:
    if path.read_bytes().count(b"\n") < 5 or path.name == NOT_ONE:
        pytest.skip("too short to grow")
    one_step_and_many(path, tmp_path, 12, seed=seed, torn=True)


def one_step_and_many(path: Path, tmp_path: Path, steps: int, *, seed: int, torn: bool = False) -> None:
    """The same file read at once, and while it grew to lines chosen by chance (torn: sometimes into the next one).

    Ids are given, and what is finished is listed, in the order in which checkpoints saw it: both may differ.
    """
    chance = random.Random(seed)
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10][:-1]
    folder = tmp_path / "w"
    folder.mkdir()
    session = tmp_path / path.name
    cuts = sorted(chance.sample(ends, min(steps - 1, len(ends))))
    taken = 0
    for cut in cuts:
        more = chance.randrange(1, 200) if torn and chance.random() < 0.5 else 0
        session.write_bytes(data[: cut + more])
        status = quiet(folder, session)
        assert status in (0, ExitCode.INPUT, ExitCode.NOTHING), "the first lines may say nothing yet"
        taken += status == 0
    session.write_bytes(data)
    many = checkpoint(folder, session)
    for path in folder.iterdir():
        path.unlink()
    once = checkpoint(folder, session)
    assert many.pop("state_version") == taken + 1 and once.pop("state_version") == 1
    assert sorted(map(str, plain(many.pop("completed_subtasks")))) == sorted(
        map(str, plain(once["completed_subtasks"]))
    )
    for key in sorted({*many} - {"saved_at", "next_id"}):
        assert plain(many[key]) == plain(once[key]), key


def plain(value: Any) -> Any:
    """A value without ids, which are given in the order of the checkpoints, and what its reader remembers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in ("id", "carry", "seal")}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_an_unchanged_file_changes_nothing(transcripts: Path, tmp_path: Path) -> None:
    for path in [*paths("claude-code")[:6], *paths("codex"), *paths("mini-swe-agent")[:4], *paths("openai-chat")[:3]]:
        if path.name == NOT_ONE:
            continue
        folder = tmp_path / path.name
        folder.mkdir()
        if quiet(folder, path) != 0:
            continue
        first = json.loads((folder / "agent_state.json").read_bytes())
        second = checkpoint(folder, path)
        assert second["state_version"] - first["state_version"] in (0, 1)
        changed = [k for k in first if plain(first[k]) != plain(second[k]) and k not in ("state_version", "saved_at")]
        assert changed == [], (path.name, changed)


def test_a_session_that_shrank_is_refused(transcripts: Path, tmp_path: Path) -> None:
    path = next(p for p in paths("claude-code") if p.name == "medium-conversation.jsonl")
    session = tmp_path / "t.jsonl"
    shutil.copy(path, session)
    os.chmod(session, 0o644)
    checkpoint(tmp_path, session)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p != session}
    data = path.read_bytes()
    session.write_bytes(data[: data.rindex(b"\n", 0, len(data) // 2) + 1])
    said = checkpoint(tmp_path, session, status=1)
    assert "t.jsonl" in said and "hint" in said, said
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p != session} == before
    checkpoint(tmp_path, session, "--force")


def test_the_folder_is_there() -> None:
    assert not TRANSCRIPTS.is_dir() or len(GROWING) > 20
