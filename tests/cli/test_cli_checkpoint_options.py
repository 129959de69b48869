"""The options of `ctxctl checkpoint`, each as a process: what it changes in the files, and what it says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
WRITTEN = ["agent_audit.jsonl", "agent_progress.md", "agent_state.json"]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def state(folder: Path) -> Any:
    return json.loads((folder / "agent_state.json").read_bytes())


@pytest.mark.parametrize(
    ("given", "key", "found"),
    [
        ("goal=a = b", "task_goal", "a = b"),
        ("TASK_GOAL=x", "task_goal", "x"),
        ("criterion=c", "success_criteria", ["c"]),
        ("constraint=k", "constraints", ["k"]),
        ("issue=i", "open_issues", ["i"]),
        ("learning=l", "learnings", ["l"]),
        ("summary=s", "compaction_summary", "s"),
        ("decision=keep the alias because of legacy", "decisions", [{"what": "keep the alias", "why": "legacy"}]),
        ("cwd=/nowhere", "environment", {"cwd": "/nowhere"}),
        ("current=now", "current_subtask", {"id": "s1", "text": "now", "status": "doing", "by": "hand"}),
    ],
)
def test_each_key_of_set(given: str, key: str, found: Any, ctxctl: Run, tmp_path: Path) -> None:
    done = ctxctl("checkpoint", "--set", given)
    assert (done.code, done.err) == (0, "")
    saved = state(tmp_path)[key]
    if isinstance(found, dict):
        assert {k: saved[k] for k in found} == found
    elif found and isinstance(found[0], dict):
        assert [{k: item[k] for k in found[0]} for item in saved] == found
    else:
        assert saved == found
    again = state(tmp_path)
    assert ctxctl("checkpoint", "-q", "--set", given).code == 0
    assert len(state(tmp_path)["open_issues"]) == len(again["open_issues"])
    assert state(tmp_path)["next_id"] == again["next_id"], "said twice is there once"


def test_subtasks_by_hand(ctxctl: Run, tmp_path: Path) -> None:
    def shown() -> dict[str, str]:
        saved = state(tmp_path)
        subtasks = [*saved["completed_subtasks"], *saved["remaining_subtasks"], saved["current_subtask"]]
        return {s["text"]: s["status"] for s in subtasks if s is not None}

    assert ctxctl("checkpoint", "--add-todo", "a", "--add-todo", "b", "--add-todo", "c").code == 0
    assert shown() == {"a": "planned", "b": "planned", "c": "planned"}
    assert ctxctl("checkpoint", "--doing", "s2", "--done", "A").code == 0
    assert shown() == {"a": "done", "b": "doing", "c": "planned"}
    assert ctxctl("checkpoint", "--planned", "s2", "--planned", "s1", "--drop", "c").code == 0
    assert shown() == {"a": "planned", "b": "planned"}
    assert ctxctl("checkpoint", "--add-todo", "d").code == 0
    assert state(tmp_path)["remaining_subtasks"][-1]["id"] == "s4", "ids are not given twice"
    before = files(tmp_path)
    done = ctxctl("checkpoint", "--doing", "s1", "--done", "s1")
    assert (done.code, done.out) == (2, "") and "two things at once" in done.err
    assert files(tmp_path) == before


def test_services(ctxctl: Run, tmp_path: Path) -> None:
    done = ctxctl("checkpoint", "--service", "web=tcp:80", "--service", "db=pg_isready -q", "--service", "x=cmd:y")
    assert done.code == 0
    assert ctxctl("checkpoint", "--service", "web=8080").code == 0
    found = {s["name"]: (s["port"], s["command"]) for s in state(tmp_path)["environment"]["services"]}
    assert found == {"web": (8080, None), "db": (None, "pg_isready -q"), "x": (None, "y")}
    before = files(tmp_path)
    for wrong, said in (
        ("web=99999", "no TCP port"),
        ("=80", "NAME=PORT"),
        ("a=curl -H 'Authorization: Bearer sk-ant-api03-abcdefghijklmnopqrstuvwx1234567890abcdef'", "a credential"),
    ):
        done = ctxctl("checkpoint", "--service", wrong)
        assert (done.code, done.out) == (2, "") and said in done.err
        assert "sk-ant" not in done.err
    assert files(tmp_path) == before


def test_a_dry_run_shows_what_would_be_written(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = samples / "codex-rollout.jsonl"
    text = ctxctl("checkpoint", "--dry-run", session)
    assert text.code == 0 and "nothing was written to agent_state.json" in text.out
    shown = ctxctl("checkpoint", "--dry-run", "--json", session, "--add-todo", "x").result()
    assert shown["written"] == [] and files(tmp_path) == {}
    assert ctxctl("checkpoint", "-q", session, "--add-todo", "x").code == 0
    saved = state(tmp_path)
    for key in saved.keys() - {"saved_at", "environment", "working_set"}:  # git and the hour may differ
        assert shown[key] == saved[key], key
    before = files(tmp_path)
    for more in (("--add-todo", "y"), ("--new",), ("--notes",), ()):
        assert ctxctl("checkpoint", "--dry-run", *more).code == 0
    assert files(tmp_path) == before


def test_the_same_state_on_stdout_and_on_disk(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    done = ctxctl("checkpoint", "--json", samples / "axios-to-fetch.jsonl")
    assert done.json()["schema"] == "ctxctl.checkpoint/1"
    assert done.json()["settings"]["cross_window"]["state_file"] == "agent_state.json"
    result = done.result()
    told = {result.pop("written")[0], *result.pop("told")}
    assert told == {"agent_state.json"}
    assert result == state(tmp_path)
    progress = (tmp_path / "agent_progress.md").read_text(encoding="utf-8")
    assert progress.startswith(f"# Agent Progress - Window {result['window_id']}\n\n**Goal:** ")
    assert progress.count("- [x] ") == len(result["completed_subtasks"])


def test_another_task(ctxctl: Run, tmp_path: Path) -> None:
    ctxctl("checkpoint", "-q", "--set", "goal=One", "--add-todo", "a")
    before = (tmp_path / "agent_state.json").read_bytes()
    done = ctxctl("checkpoint", "--new", "--set", "goal=Two", "--add-todo", "b")
    assert done.code == 0 and "agent_state.window-1.json" in done.err
    assert (tmp_path / "agent_state.window-1.json").read_bytes() == before
    saved = state(tmp_path)
    assert (saved["task_goal"], saved["window_id"], saved["state_version"]) == ("Two", 2, 2)
    assert [s["id"] for s in saved["remaining_subtasks"]] == ["s2"]
    assert "note:" not in ctxctl("checkpoint", "-q", "--new", "--set", "goal=Three").err


def test_no_audit_elsewhere_and_other_names(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("cross_window:\n  state_file: s.json\n  progress_file: p.md\n")
    (tmp_path / "d").mkdir()
    given = ("--config", tmp_path / "own.yaml", "--state-dir", "d", "--no-audit")
    done = ctxctl("checkpoint", "--add-todo", "x", *given, "--json")
    assert done.result()["written"] == ["d/s.json", "d/p.md"]
    assert sorted(files(tmp_path / "d")) == ["p.md", "s.json"] and sorted(files(tmp_path)) == ["own.yaml"]
    done = ctxctl("checkpoint", "--config", "none.yaml", "--add-todo", "x")
    assert (done.code, done.out) == (4, "") and "none.yaml" in done.err
    assert sorted(files(tmp_path)) == ["own.yaml"]


def test_the_format_by_name(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = samples / "codex-rollout.jsonl"
    for name, code, said in (("claude-code", 3, "reads as claude-code"), ("nope", 2, "unknown format 'nope'")):
        done = ctxctl("checkpoint", session, "--from", name)
        assert (done.code, done.out) == (code, "") and said in done.err
    assert files(tmp_path) == {}
    assert ctxctl("checkpoint", "-q", session, "--from", "codex").code == 0
    assert state(tmp_path)["transcript"]["format"] == "codex"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"nope", "no JSON"),
        (b"[1]", "no state of a task"),
        (b'{"schema": "ctxctl.state/9", "task_goal": "x"}', "a newer state"),
        (b'{"task_goal": 3}', "`$.task_goal`"),
        (b'{"task_goal": "x", "current_subtask": {"text": 5}}', "`$.current_subtask.text`"),
    ],
)
def test_a_state_that_cannot_be_read(data: bytes, said: str, ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent_state.json"
    path.write_bytes(data)
    session = samples / "codex-rollout.jsonl"
    for given in (("--add-todo", "y"), (), (session,), ("--new", "--add-todo", "y")):
        done = ctxctl("checkpoint", *given)
        assert (done.code, done.out) == (3, "") and said in done.err
        assert done.err.startswith("error: agent_state.json:") and "\nhint: " in done.err
    error = json.loads(ctxctl("checkpoint", session, "--json").err)["error"]
    assert (error["code"], error["path"]) == ("input", "agent_state.json")
    assert files(tmp_path) == {"agent_state.json": data}
    done = ctxctl("checkpoint", session, "--force")
    assert done.code == 0 and "it is kept as agent_state.bak.json" in done.err
    assert (tmp_path / "agent_state.bak.json").read_bytes() == data
    assert state(tmp_path)["state_version"] == 1


def test_a_shorter_session_is_refused_until_forced(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    data = (samples / "codex-rollout.jsonl").read_bytes()
    session.write_bytes(data)
    assert ctxctl("checkpoint", "-q", session).code == 0
    session.write_bytes(b"".join(data.splitlines(keepends=True)[:-8]))
    before = {name: data for name, data in files(tmp_path).items() if name != "agent_audit.jsonl"}
    done = ctxctl("checkpoint", session)
    assert (done.code, done.out) == (1, "") and "--force" in done.err
    after = files(tmp_path)
    assert {name: after[name] for name in before} == before
    assert ctxctl("checkpoint", "-q", "--force", session).code == 0
    assert state(tmp_path)["state_version"] == 2


def test_a_folder_is_no_transcript(ctxctl: Run, tmp_path: Path) -> None:
    done = ctxctl("checkpoint", ".")
    assert (done.code, done.out) == (3, "") and "this is a folder" in done.err
    assert files(tmp_path) == {}


def test_quiet_says_only_the_payload(ctxctl: Run, samples: Path) -> None:
    ctxctl("checkpoint", "-q", samples / "axios-to-fetch.jsonl")
    loud, quiet = ctxctl("checkpoint"), ctxctl("checkpoint", "-q")
    assert "the transcript that the state came from" in loud.err
    assert quiet.err == "" and quiet.out.startswith("agent_state.json")
    assert ctxctl("checkpoint", "-v").code == 0


def test_help_shows_every_option(ctxctl: Run) -> None:
    done = ctxctl("checkpoint", "--help", COLUMNS="80", _TYPER_FORCE_DISABLE_TERMINAL="1")
    assert (done.code, done.err) == (0, "")
    for name in ("--set", "--add-todo", "--done", "--doing", "--planned", "--drop", "--close", "--service", "--new"):
        assert name in done.out
