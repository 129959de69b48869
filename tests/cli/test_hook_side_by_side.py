"""Two sessions at work in one project at the same time: neither takes the other's state."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

A, B = "aaaaaaaa-1111-4000-8000-000000000001", "bbbbbbbb-2222-4000-8000-000000000002"


class Project:
    def __init__(self, folder: Path, ctxctl: Callable[..., Any], sample: Path) -> None:
        self.folder, self._ctxctl = folder, ctxctl
        self.sessions = folder.parent / f"{folder.name}-sessions"
        self.sessions.mkdir()
        for id_ in (A, B):
            shutil.copyfile(sample, self.path(id_))
            text = self.path(id_).read_text(encoding="utf-8").replace("7d78d02b-90c3-4287-b634-1dae72af4a17", id_)
            self.path(id_).write_text(text, encoding="utf-8")

    def path(self, id_: str) -> Path:
        return self.sessions / f"{id_}.jsonl"

    def hook(self, event: str, id_: str, **fields: Any) -> str:
        given = {"session_id": id_, "transcript_path": str(self.path(id_)), "cwd": str(self.folder), **fields}
        data = json.dumps({"hook_event_name": event, **given}).encode()
        done = self._ctxctl("hook", "run", "claude-code", stdin=data, CTXCTL_HOOK_LOG="off")
        assert (done.code, done.err) == (0, "")
        return str(done.out)

    def go_on(self, id_: str, *, ago: float = 0) -> None:
        """The session's agent writes one line more."""
        last = json.loads(self.path(id_).read_text(encoding="utf-8").splitlines()[-1])
        record = {**last, "uuid": f"{id_[:8]}-9999-4000-8000-{int(time.time() * 1e6):012d}"[:36]}
        with open(self.path(id_), "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        os.utime(self.path(id_), (time.time() - ago,) * 2)

    def state(self, name: str = "agent_state.json") -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path: Path, ctxctl: Callable[..., Any], samples: Path) -> Project:
    return Project(tmp_path, ctxctl, samples / "axios-to-fetch.jsonl")


def test_a_session_beside_one_at_work_gets_a_state_of_its_own(project: Project) -> None:
    project.hook("PreCompact", A)
    project.go_on(A)
    before = (project.folder / "agent_state.json").read_bytes()
    project.hook("PreCompact", B)
    assert (project.folder / "agent_state.json").read_bytes() == before
    assert project.state("agent_state.bbbbbbbb222240008000000000000002.json")["transcript"]["id"] == B
    assert (project.folder / "agent_progress.bbbbbbbb222240008000000000000002.md").is_file()
    # and it keeps that, whatever the other one does
    os.utime(project.path(A), (0, 0))
    project.hook("PreCompact", B)
    assert project.state("agent_state.bbbbbbbb222240008000000000000002.json")["state_version"] == 2
    assert "transcript bbbbbbbb" in project.hook("SessionStart", B, source="compact")


@pytest.mark.parametrize("ago", [0.0, 5000.0])
def test_a_session_after_one_that_is_over_goes_on_with_its_state(project: Project, ago: float) -> None:
    project.hook("PreCompact", A)
    if ago:
        project.go_on(A, ago=ago)
    project.hook("PreCompact", B)
    assert project.state()["transcript"]["id"] == B
    assert not (project.folder / "agent_state.bbbbbbbb222240008000000000000002.json").exists()


def test_ids_that_begin_alike_are_two_sessions(project: Project) -> None:
    """The first eight characters of an id of Codex are the time, to about a minute."""
    one, other = "01a17720-ca00-7000-8000-000000000003", "01a17720-f0f0-7000-8000-000000000004"
    for id_ in (one, other):
        shutil.copyfile(project.path(A), project.path(id_))
    project.hook("PreCompact", A)
    project.go_on(A)
    project.hook("PreCompact", one)
    project.hook("PreCompact", other)
    assert len(list(project.folder.glob("agent_state.*.json"))) == 2


def test_sessions_of_two_days_lie_beside_each_other(project: Project) -> None:
    for id_, day in ((A, "2026/11/29"), (B, "2026/11/30")):
        (project.sessions / day).mkdir(parents=True)
        shutil.move(project.path(id_), project.sessions / day)
    project.path = lambda id_: project.sessions / f"2026/11/{29 if id_ == A else 30}/{id_}.jsonl"  # type: ignore[method-assign]
    project.hook("PreCompact", A)
    project.go_on(A)
    project.hook("PreCompact", B)
    assert project.state()["transcript"]["id"] == A


def at(record: str, time_: str) -> str:
    value = json.loads(record)
    if "timestamp" in value:
        value["timestamp"] = time_
    return json.dumps(value)


def set_time(path: Path, time_: str) -> None:
    """All that a session says was said then."""
    lines = [at(line, time_) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


OWN_OF_B = "agent_state.bbbbbbbb222240008000000000000002.json"


@pytest.mark.parametrize("event", ["PreCompact", "Stop", "SessionEnd"])
def test_a_session_that_is_older_than_the_state_gets_its_own(project: Project, event: str) -> None:
    """Both run, and the first was saved later than the second said its last word."""
    set_time(project.path(A), "2026-11-30T12:00:00.000Z")
    set_time(project.path(B), "2026-11-30T11:00:00.000Z")
    project.hook("PreCompact", A)
    before = (project.folder / "agent_state.json").read_bytes()
    project.hook(event, B)
    assert (project.folder / "agent_state.json").read_bytes() == before
    assert project.state(OWN_OF_B)["transcript"]["id"] == B
    project.hook("PreCompact", B)
    assert project.state(OWN_OF_B)["state_version"] == 2


def test_an_old_copy_of_the_session_itself_is_refused_and_nothing_made(project: Project) -> None:
    set_time(project.path(A), "2026-11-30T12:00:00.000Z")
    project.hook("PreCompact", A)
    before = (project.folder / "agent_state.json").read_bytes()
    set_time(project.path(A), "2026-11-30T11:00:00.000Z")
    project.hook("PreCompact", A)
    assert (project.folder / "agent_state.json").read_bytes() == before
    assert list(project.folder.glob("agent_state.*.json")) == []


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_a_session_that_goes_on_never_gets_the_task_of_another(project: Project, source: str) -> None:
    project.hook("PreCompact", A)
    assert project.hook("SessionStart", B, source=source) == ""
    assert project.hook("SessionStart", A, source=source) != ""
    project.go_on(A)
    project.hook("PreCompact", B)
    assert "transcript bbbbbbbb" in project.hook("SessionStart", B, source=source)
    assert "transcript aaaaaaaa" in project.hook("SessionStart", A, source=source)


@pytest.mark.parametrize("source", ["startup", "clear"])
def test_a_session_that_begins_gets_what_the_project_has(project: Project, source: str) -> None:
    project.hook("PreCompact", A)
    value = {**project.state(), "remaining_subtasks": [{"text": "one thing more", "status": "planned"}]}
    (project.folder / "agent_state.json").write_text(json.dumps(value), encoding="utf-8")
    assert "one thing more" in project.hook("SessionStart", B, source=source)
