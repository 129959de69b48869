"""`ctxctl checkpoint` as a process: what it prints where, its status, and what it writes."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
COMPANIONS = ["agent_audit.jsonl", "agent_progress.md", "agent_state.json"]
KEYS = (
    *("schema", "state_version", "window_id", "task_goal", "success_criteria"),
    *("constraints", "completed_subtasks", "current_subtask", "remaining_subtasks", "decisions"),
    *("open_issues", "environment", "learnings", "compaction_summary", "saved_at"),
    *("tail", "todos", "working_set", "memory_index", "transcript"),
)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in (".git", "home", "xdg"))


def state(folder: Path) -> Any:
    return json.loads((folder / "agent_state.json").read_text(encoding="utf-8"))


def test_a_session_and_then_by_hand(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = samples / "axios-to-fetch.jsonl"
    done = ctxctl("checkpoint", session, COLUMNS="80")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 110 and "Migrate the direct axios users" in done.out
    assert "ctxctl resume agent_state.json" in done.out
    assert files(tmp_path) == COMPANIONS
    done = ctxctl("checkpoint", "--add-todo", "Tell the others", "--set", "goal=Other", "--set", "issue=who?", "--json")
    result = done.result()
    assert [key for key in KEYS if key not in result] == []
    assert (result["state_version"], result["task_goal"]) == (2, "Other")
    assert result["remaining_subtasks"][-1]["text"] == "Tell the others" and result["open_issues"][-1] == "who?"
    assert [Path(name).name for name in result["written"]] == [
        "agent_state.json",
        "agent_progress.md",
        "agent_audit.jsonl",
    ]
    name = result["remaining_subtasks"][-1]["id"]
    issues = len(result["open_issues"])
    assert (
        ctxctl("checkpoint", "-q", "--doing", name, "--close", issues, "--service", "web=8080", "--no-audit").code == 0
    )
    assert state(tmp_path)["current_subtask"]["id"] == name and len(state(tmp_path)["open_issues"]) == issues - 1
    assert ctxctl("checkpoint", "-q", "--done", name, "--if-version", 3).code == 0
    assert state(tmp_path)["completed_subtasks"][-1]["id"] == name
    done = ctxctl("checkpoint", "--drop", name, "--dry-run")
    assert done.code == 0 and state(tmp_path)["state_version"] == 4
    done = ctxctl("checkpoint")
    assert done.code == 0 and done.err.startswith("note: ") and str(session) in done.err
    assert state(tmp_path)["task_goal"] == "Other"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 6, "there is no state"),
        (("--done", "s1"), 2, "no subtask 's1'"),
        (("--add-todo", " "), 2, "the text is empty"),
        (("--set", "gaol=x"), 2, "did you mean 'goal'?"),
        (("--service", "web"), 2, "NAME=PORT"),
        (("--no-such",), 2, "No such option"),
        (("none.jsonl",), 3, "none.jsonl"),
        (("empty.jsonl",), 6, "the file is empty"),
        (("binary.jsonl",), 3, "binary.jsonl"),
        (("--state-dir", "nowhere", "--add-todo", "x"), 3, "no such folder"),
    ],
)
def test_what_is_refused_writes_nothing(
    arguments: tuple[str, ...], code: int, said: str, ctxctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)) * 9)
    before = files(tmp_path)
    done = ctxctl("checkpoint", *arguments)
    assert (done.code, done.out) == (code, "") and said in done.err and "Traceback" not in done.err
    assert files(tmp_path) == before


def test_a_version_that_moved_on(ctxctl: Run, tmp_path: Path) -> None:
    ctxctl("checkpoint", "-q", "--add-todo", "x")
    before = (tmp_path / "agent_state.json").read_bytes()
    done = ctxctl("checkpoint", "--json", "--add-todo", "y", "--if-version", 0)
    assert (done.code, done.out) == (1, "")
    assert json.loads(done.err)["error"]["code"] == "refused"
    assert (tmp_path / "agent_state.json").read_bytes() == before


def test_stdin_and_permissions(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    data = (samples / "codex-rollout.jsonl").read_bytes()
    assert ctxctl("checkpoint", "-q", "-", stdin=data).code == 0
    private = tmp_path / "private" / "s.jsonl"
    private.parent.mkdir()
    private.write_bytes(data)
    private.chmod(0o600)
    assert ctxctl("checkpoint", "-q", private, "--state-dir", private.parent).code == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in private.parent.glob("agent_*")}
    assert set(modes.values()) == {0o600} and sorted(modes) == COMPANIONS


def test_the_notes(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = samples / "axios-to-fetch.jsonl"
    assert ctxctl("checkpoint", "-q", "--notes", session).code == 0
    noted = (tmp_path / "agent_notes.md").read_text(encoding="utf-8")
    assert "DECISION" in noted and "DONE" in noted
    assert ctxctl("checkpoint", "-q", "--notes", session).code == 0
    assert (tmp_path / "agent_notes.md").read_text(encoding="utf-8") == noted
    ctxctl("notes", "add", "plan", "Tell the others")
    assert ctxctl("checkpoint", "-q", "--from-notes").code == 0
    assert [s["text"] for s in state(tmp_path)["remaining_subtasks"]] == ["Tell the others"]


def test_clean_or_not(ctxctl: Run, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".git").rmdir()
    git("init")
    (tmp_path / "a.py").write_text("1\n")
    git("add", "a.py")
    git("commit", "-m", "one")
    ctxctl("checkpoint", "-q", "--add-todo", "x")
    done = ctxctl("checkpoint", "--require-clean")
    assert done.code == 0 and "clean: nothing is left undone" in done.err
    assert state(tmp_path)["state_version"] == 1
    (tmp_path / "a.py").write_text("2\n")
    (tmp_path / "agent_progress.md").write_text("# Agent Progress - Window 0\n")
    done = ctxctl("checkpoint", "--require-clean", "--json")
    assert done.code == 1
    assert {u["code"] for u in done.result()["unclean"]} == {"uncommitted", "progress_outdated"}
