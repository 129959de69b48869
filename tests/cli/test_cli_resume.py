"""`ctxctl resume` as users run it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOLD = ("task_goal", "constraints", "completed_subtasks", "current_subtask", "remaining_subtasks", "decisions", "tail")
STATE: dict[str, Any] = {
    "schema": "ctxctl.state/1",
    "state_version": 7,
    "window_id": 2,
    "task_goal": "Replace axios with fetch.\nKeep every public name.",
    "constraints": ["Never change vendor/"],
    "completed_subtasks": [{"id": "s1", "text": "Port the ledger", "status": "done"}],
    "current_subtask": {"id": "s2", "text": "Port the refunds", "status": "doing"},
    "remaining_subtasks": [{"id": "s3", "text": "Port the exports", "status": "planned"}],
    "saved_at": "2026-11-30T10:00:00+00:00",
}


@pytest.fixture
def state(tmp_path: Path) -> Callable[..., Path]:
    """Writes a state into the working folder."""

    def write(**more: Any) -> Path:
        path = tmp_path / "agent_state.json"
        path.write_text(json.dumps({**STATE, **more}))
        return path

    return write


def test_stdout_is_the_prompt_alone(ctxctl: Any, state: Any) -> None:
    state()
    done = ctxctl("resume")
    assert done.code == 0
    assert done.out.startswith("[CONTEXT_WINDOW_RESUME]\n")
    assert done.out.endswith("\n[/CONTEXT_WINDOW_RESUME]\n")
    assert "Current step (in progress, not finished): Port the refunds\n" in done.out
    assert "Next step: Port the exports\n" in done.out


def test_no_state_is_status_6_with_what_to_do(ctxctl: Any, tmp_path: Path) -> None:
    for arguments in ((), ("agent_state.json",), (".",), ("--state-dir", "elsewhere")):
        done = ctxctl("resume", *arguments)
        assert (done.code, done.out) == (6, "")
        assert "there is no state" in done.err
        assert "ctxctl checkpoint SESSION" in done.err
    assert not (tmp_path / "agent_audit.jsonl").exists()


def test_a_state_elsewhere(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    path = state().rename(folder / "agent_state.json")
    prompts = [
        ctxctl("resume", "--no-audit", "--state-dir", folder).out,
        ctxctl("resume", "--no-audit", folder).out,
        ctxctl("resume", "--no-audit", path).out,
        ctxctl("resume", "-", stdin=path.read_bytes()).out,
    ]
    *files, piped = prompts
    assert len(set(files)) == 1
    assert f", all of it in {path}." in files[0]
    assert piped == files[0].replace(f", all of it in {path}", "")  # there is no file to name
    assert "Port the refunds" in prompts[0]


@pytest.mark.parametrize(
    "data",
    [
        b'{"task_goal": "Port it", "remaining_subtasks": ["a"]}',
        b'\xef\xbb\xbf\n{\n "remaining_subtasks": ["a"],\n "task_goal": "Port it"}\n',
        json.dumps({"tail": ["x" * 9000] * 9, "remaining_subtasks": ["a"], "task_goal": "Port it"}, indent=1).encode(),
    ],
)
def test_a_plain_state_on_stdin_is_one_as_in_a_file(data: bytes, ctxctl: Any, tmp_path: Path) -> None:
    """Whatever its keys, its first line and its size are."""
    path = tmp_path / "plain.json"
    path.write_bytes(data)
    given = ctxctl("resume", "--no-audit", path)
    piped = ctxctl("resume", "-", stdin=data)
    assert (given.code, piped.code) == (0, 0)
    assert "Next step: a\n" in piped.out
    assert piped.out == given.out.replace(f", all of it in {path}", "")
    wrong = ctxctl("resume", "-", stdin=data.replace(b'"Port it"', b"3"))
    assert (wrong.code, wrong.out) == (3, "") and "error: -: not a state" in wrong.err and "task_goal" in wrong.err


@pytest.mark.parametrize(
    "name", ["axios-to-fetch.jsonl", "codex-rollout.jsonl", "anthropic-request.json", "mini-swe-agent.traj.json"]
)
def test_a_transcript_on_stdin_is_read_whole(name: str, ctxctl: Any, samples: Path) -> None:
    data = (samples / name).read_bytes()
    given = ctxctl("resume", "--no-audit", samples / name, "--json").result()["state"]
    for packed in (data, gzip.compress(data)):
        piped = ctxctl("resume", "-", "--json", stdin=packed).result()["state"]
        assert piped["transcript"]["size"] == len(data)
        assert [piped[key] for key in TOLD] == [given[key] for key in TOLD]


def test_a_writer_on_stdin_may_be_slow(tmp_path: Path, samples: Path) -> None:
    lines = (samples / "codex-rollout.jsonl").read_bytes()
    plain = b'{"task_goal": "Port it", "remaining_subtasks": ["a"]}'
    for data, goal in ((plain, "Port it"), (lines, None)):
        process = subprocess.Popen(
            [sys.executable, "-m", "ctxctl", "resume", "-", "--json"],
            cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(data[:1])
        process.stdin.flush()
        time.sleep(0.3)
        out, err = process.communicate(data[1:], timeout=60)
        assert process.returncode == 0, err
        found = json.loads(out)["result"]["state"]
        assert found["task_goal"] == goal if goal else found["transcript"]["size"] == len(data)


def test_json(ctxctl: Any, state: Any) -> None:
    state()
    found = ctxctl("resume", "--json")
    assert found.json()["schema"] == "ctxctl.resume/1"
    result = found.result()
    assert result["prompt"] == ctxctl("resume").out
    assert result["next_step"] == "Port the exports"
    assert 0 < result["tokens"] <= result["budget"] == 4000
    assert result["state"]["task_goal"] == STATE["task_goal"]
    assert {"name", "ok", "detail"} == set(result["environment"]["checks"][0])
    assert result["stale"] == []
    assert isinstance(result["warnings"], list)
    assert {"name", "source", "tokens", "cut"} == set(result["parts"][0])


def test_the_budget(ctxctl: Any, state: Any) -> None:
    state(open_issues=[f"issue {n} of many" for n in range(300)])
    result = ctxctl("resume", "--json", "--budget", "1k").result()
    assert 900 < result["tokens"] <= 1000
    small = ctxctl("resume", "--budget", "20")
    assert (small.code, small.out) == (5, "")
    assert "what is never cut takes" in small.err
    least = small.err.partition("--budget ")[2].split()[0]
    assert ctxctl("resume", "--budget", least).code == 0
    assert ctxctl("resume", "--budget", "0").code == 2
    assert ctxctl("resume", "--budget", "many").code == 2


def test_the_budget_of_the_settings(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    state(open_issues=[f"issue {n} of many" for n in range(300)])
    (tmp_path / ".ctxctl.yaml").write_text("cross_window:\n  resume_budget: 700\n")
    assert ctxctl("resume", "--json").result()["budget"] == 700
    assert ctxctl("resume", "--json").result()["tokens"] <= 700


def test_counting_for_a_model(ctxctl: Any, state: Any) -> None:
    state()
    plain = ctxctl("resume", "--json").result()["tokens"]
    claude = ctxctl("resume", "--json", "--model", "claude-opus-4-6").result()["tokens"]
    assert claude > plain
    assert "no tokenizer is known" in ctxctl("resume", "--model", "nobody-knows").err


def test_strict(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("new\n")
    file = {"path": "a.py", "role": "modified", "actions": ["edited"], "sha256": "ab" * 32, "size": 3, "mtime_ns": 1}
    state(environment={"cwd": str(tmp_path), "files": [file]})
    done = ctxctl("resume")
    assert done.code == 0
    assert "a.py" in done.err
    strict = ctxctl("resume", "--strict")
    assert strict.code == 1
    assert strict.out == done.out
    assert "changed since: re-read" in strict.out
    assert "read again:\n  a.py" in strict.err
    both = ctxctl("resume", "--strict", "--json")
    assert both.code == 1
    assert both.result()["stale"] == ["a.py"]
    assert ctxctl("resume", "-q").err == ""


@pytest.mark.parametrize("form", ["claude-code", "codex", "messages", "chat"])
def test_sessions_are_valid_and_hold_the_prompt(ctxctl: Any, state: Any, tmp_path: Path, form: str) -> None:
    state()
    prompt = ctxctl("resume").out
    names = {
        "claude-code": "6f1c2a9e-5b7d-4c3e-8f10-2d4b6a8c0e12.jsonl",
        "codex": "rollout-2026-11-30T10-00-00-6f1c2a9e-5b7d-4c3e-8f10-2d4b6a8c0e12.jsonl",
    }
    name = names.get(form, "body.json")
    done = ctxctl("resume", "--output-format", form, "-o", name)
    assert (done.code, done.out) == (0, "")
    path = tmp_path / name
    assert ctxctl("check", path).code == 0
    shown = ctxctl("resume", "--output-format", form)
    assert json.dumps(prompt, ensure_ascii=False)[1:-1] in shown.out
    if form in names:
        assert "6f1c2a9e-5b7d-4c3e-8f10-2d4b6a8c0e12" in path.read_text()
        assert "hint" not in done.err
    else:
        body = json.loads(path.read_text())
        assert body["messages"] == [{"role": "user", "content": prompt}]
    kinds = ctxctl("analyze", "--json", path).result()["composition"]["by_kind"]
    assert kinds["summary"]["blocks"] == 1
    again = ctxctl("resume", "--output-format", form, "-o", name)
    assert again.code == 2
    both = ctxctl("resume", "--output-format", form, "-o", name, "--force", "--json")
    assert name in both.result()["written"]


def test_the_form_follows_the_suffix(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    state()
    assert ctxctl("resume", "-o", "prompt.txt").code == 0
    assert (tmp_path / "prompt.txt").read_text() == ctxctl("resume").out
    assert ctxctl("resume", "-o", "result.json").code == 0
    assert json.loads((tmp_path / "result.json").read_text())["schema"] == "ctxctl.resume/1"
    wrong = ctxctl("resume", "-o", "rollout-x.jsonl")
    assert wrong.code == 2
    assert "--output-format codex" in wrong.err
    assert ctxctl("resume", "--json", "--output-format", "text").code == 2
    assert ctxctl("resume", "--json", "--output-format", "codex").code == 2
    assert ctxctl("resume", "-o", "agent_state.json", "--force").code == 2


def test_it_is_in_the_audit_trail(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    state()
    ctxctl("resume", "--no-audit")
    assert not (tmp_path / "agent_audit.jsonl").exists()
    assert ctxctl("resume", "--json").result()["written"] == ["agent_audit.jsonl"]
    record = json.loads((tmp_path / "agent_audit.jsonl").read_text())
    assert record["type"] == "resume"
    assert record["data"]["window_id"] == 2


def test_a_trail_that_cannot_be_written_is_a_warning(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    state()
    (tmp_path / "agent_audit.jsonl").mkdir()
    done = ctxctl("resume")
    assert done.code == 0
    assert done.out.startswith("[CONTEXT_WINDOW_RESUME]")
    assert "not in the audit trail" in done.err


def test_the_transcript_is_not_read(ctxctl: Any, state: Any, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    with session.open("wb") as file:
        file.truncate(300 << 20)
    position = {"id": "x", "path": str(session), "format": "claude-code", "offset": 300 << 20, "size": 300 << 20}
    state(transcript=position)
    before = os.stat(session).st_atime_ns
    done = ctxctl("resume")
    assert done.code == 0
    assert os.stat(session).st_atime_ns == before


def test_a_transcript_gives_a_prompt_and_nothing_is_written(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = ctxctl("resume", samples / "axios-to-fetch.jsonl")
    assert done.code == 0, done.err
    assert done.out.startswith("[CONTEXT_WINDOW_RESUME]\n")
    assert sorted(tmp_path.iterdir()) == before


def test_it_may_be_given_to_an_agent(ctxctl: Any, state: Any) -> None:
    """As `agent "$(ctxctl resume)"` does: the shell takes the last line end away."""
    state()
    prompt = ctxctl("resume").out
    echoed = subprocess.run(["sh", "-c", 'printf %s "$(cat)"'], input=prompt, capture_output=True, text=True).stdout
    assert echoed == prompt.rstrip("\n")


def test_a_broken_state_is_told(ctxctl: Any, tmp_path: Path) -> None:
    (tmp_path / "agent_state.json").write_text('{"task_goal": 3}')
    assert ctxctl("resume").code == 3
    (tmp_path / "agent_state.json").write_text('{"task_goal": "x"')
    done = ctxctl("resume")
    assert done.code == 3
    assert "Traceback" not in done.err
    assert ctxctl("resume", "no/such/thing.jsonl").code == 3
