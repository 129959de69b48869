"""The contract gate, with real commands and real files, and its ledger."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ctxctl.state import ledger
from ctxctl.state.contract import Checked, check_contract
from ctxctl.state.contract_options import Artifact, ContractOptions, Validator

PYTHON = sys.executable
WINDOW = ["Goal: no axios.\nDecision: use fetch", "ticket PROJ-12, commit a1b2c3d4", "x = 1\nretry = 3\n"]


def check(tmp_path: Path, *clauses: Artifact | Validator, **more: Any) -> list[Checked]:
    artifacts = tuple(c for c in clauses if isinstance(c, Artifact))
    validators = tuple(c for c in clauses if isinstance(c, Validator))
    return check_contract(ContractOptions(artifacts, validators), WINDOW, tmp_path, **more)


def one(tmp_path: Path, clause: Artifact | Validator, **more: Any) -> Checked:
    (found,) = check(tmp_path, clause, **more)
    return found


@pytest.mark.parametrize(
    ("clause", "detail"),
    [
        ({"text": "Decision: use fetch"}, ""),
        ({"text": "no axios.\nDecision: use fetch\n"}, ""),
        ({"text": "Decision: use axios"}, "not in the window: 'Decision: use axios'"),
        ({"text": "no axios.\nDecision: use got"}, "not in the window: 'no axios....'"),
        ({"text": "fetch\nticket"}, "not in the window: 'fetch...'"),
        ({"regex": r"^retry = \d$"}, ""),
        ({"regex": r"^retry = [a-z]"}, "nothing in the window fits '^retry = [a-z]'"),
        ({"id": "PROJ-12"}, ""),
        ({"id": "a1b2c3d4"}, ""),
        ({"id": "PROJ-1"}, "not in the window: PROJ-1"),
        ({"id": "toolu_9"}, ""),
        ({"file": "src/a.ts"}, ""),
        ({"file": "src"}, ""),
        ({"file": "src/b.ts"}, "src/b.ts is not there"),
        ({"file": "src/a.ts", "sha256": hashlib.sha256(b"a").hexdigest().upper()}, ""),
        (
            {"file": "src/a.ts", "sha256": "0" * 64},
            "src/a.ts was changed: its SHA-256 is " + hashlib.sha256(b"a").hexdigest(),
        ),
        ({"file": "src", "sha256": "0" * 64}, "src can't be read: Is a directory"),
        ({"file": "dangling"}, "dangling can't be read: No such file or directory"),
    ],
    ids=str,
)
def test_artifacts(tmp_path: Path, clause: dict[str, str], detail: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.ts").write_bytes(b"a")
    (tmp_path / "dangling").symlink_to("nowhere")
    found = one(tmp_path, Artifact("it", **clause), ids={"toolu_9"})
    assert (found.name, found.kind, found.required) == ("it", next(iter(clause)), True)
    assert (found.detail, found.ok) == (detail, not detail)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ({}, "needs one of file, text, regex, id, not none"),
        ({"file": "a", "id": "b"}, "not file and id"),
        ({"text": " \n"}, "text is empty"),
        ({"regex": "("}, "no regular expression"),
        ({"file": "a", "sha256": "12"}, "64 hex digits"),
        ({"text": "a", "sha256": "0" * 64}, "goes with file"),
    ],
)
def test_artifacts_that_are_none(clause: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Artifact("it", **clause)


def test_names_are_told_apart() -> None:
    with pytest.raises(ValueError, match="validators: the name 'a' stands twice"):
        ContractOptions(validators=(Validator("a", "true"), Validator("a", "false")))
    assert not ContractOptions() and ContractOptions(validators=(Validator("a", "true"),))


@pytest.mark.parametrize(
    ("command", "ok", "detail"),
    [
        (("true",), True, ""),
        ("exit 0", True, ""),
        (("echo", "$HOME * ; ls"), True, "$HOME * ; ls"),
        ("printf a; printf b >&2; exit 3", False, "exit status 3\nab"),
        (("nosuchcommand-7", "x"), False, "no such command: nosuchcommand-7"),
        (("./data",), False, "./data can't be run: Permission denied"),
        ((PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"), False, "ended by SIGKILL"),
        ((PYTHON, "-c", "print(input())"), False, None),
        ("cat data", True, "content"),
        ((PYTHON, "-c", "print('\\n'.join(map(str, range(50))))"), True, "\n".join(map(str, range(40, 50)))),
        ((PYTHON, "-c", "import sys; sys.stdout.buffer.write(b'\\xff\\x1b[31m')"), True, "\ufffd [31m"),
    ],
    ids=str,
)
def test_validators(tmp_path: Path, command: Any, ok: bool, detail: str | None) -> None:
    (tmp_path / "data").write_text("content\n")
    found = one(tmp_path, Validator("it", command, required=False))
    assert (found.name, found.kind, found.required, found.ok) == ("it", "validator", False, ok)
    if detail is not None:
        assert found.detail == detail


def test_a_shell_says_what_it_did_not_find(tmp_path: Path) -> None:
    found = one(tmp_path, Validator("it", "nosuchcommand-7 x"))
    assert not found.ok and found.detail.startswith("exit status 127\n") and "nosuchcommand-7" in found.detail


def test_a_validator_knows_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    show = Validator("it", 'echo "${CTXCTL_OUTPUT-unset}"; pwd')
    (tmp_path / "work").mkdir()
    assert one(tmp_path / "work", show, output="small.jsonl").detail.split("\n") == [
        str(tmp_path / "small.jsonl"),
        str(tmp_path / "work"),
    ]
    assert one(tmp_path, show).detail.split("\n")[0] == "unset"


def test_a_validator_may_run_ctxctl(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    line = f'HOME=home XDG_CONFIG_HOME=home "{PYTHON}" -m ctxctl config show > shown'
    found = one(tmp_path, Validator("it", line), output="small.jsonl")
    assert found.ok, found.detail


@pytest.mark.parametrize(
    "command",
    [("sleep", "30"), "sleep 30 & sleep 30", "trap '' TERM; sleep 30 & wait", "echo said; sleep 30"],
    ids=str,
)
def test_time_is_limited(tmp_path: Path, command: Any) -> None:
    start = time.monotonic()
    found = one(tmp_path, Validator("slow", command, timeout=0.3))
    assert not found.ok and time.monotonic() - start < 8
    assert found.detail.startswith("not done after 0.3 s, so that it was ended")
    assert ("said" in found.detail) == ("said" in command)
    assert 0.3 <= found.seconds < 8


def test_what_a_validator_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    start = time.monotonic()
    found = one(tmp_path, Validator("it", "sleep 5 & echo done"))
    assert found.ok and found.detail == "done" and time.monotonic() - start < 3


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    found = one(tmp_path / "no", Validator("it", ("true",)))
    assert not found.ok and "working folder" in found.detail


@pytest.mark.parametrize("command", ["", " ", (), ("", "x"), ("a\x00",)])
def test_commands_that_are_none(command: Any) -> None:
    with pytest.raises(ValueError, match="command"):
        Validator("it", command)


def test_texts_are_taken_once_and_only_when_needed(tmp_path: Path) -> None:
    asked = []

    def texts() -> list[str]:
        asked.append(1)
        return WINDOW

    check_contract(ContractOptions((Artifact("f", file="x"),)), texts, tmp_path)
    assert not asked
    options = ContractOptions((Artifact("a", text="fetch"), Artifact("b", id="PROJ-12")))
    assert all(c.ok for c in check_contract(options, texts, tmp_path)) and len(asked) == 1
    assert all(c.ok for c in check_contract(options, iter(WINDOW), tmp_path))


def test_the_ledger(tmp_path: Path) -> None:
    path, source = tmp_path / "state" / "agent_ledger.jsonl", tmp_path / "t.jsonl"
    source.touch(0o600)
    found = check(
        tmp_path, Artifact("goal", text="no axios"), Validator("tests", "echo caf\u00e9; exit 2", required=False)
    )
    ledger.append(path, [], now="2026-11-30T10:15:00Z")
    assert not path.exists()
    ledger.append(
        path,
        found,
        now="2026-11-30T10:15:00Z",
        transcript_id="s1",
        recall_id="r1",
        output="/w/small.jsonl",
        mode_of=str(source),
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    ledger.append(path, found[:1], now="2026-11-30T10:16:00Z")
    assert path.read_bytes().startswith(before)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["schema"] for row in rows} == {"ctxctl.ledger/1"}
    assert [(row["name"], row["kind"], row["ok"], row["required"]) for row in rows] == [
        ("goal", "text", True, True),
        ("tests", "validator", False, False),
        ("goal", "text", True, True),
    ]
    assert [rows[1][k] for k in ("time", "transcript", "recall_id", "output", "detail")] == [
        "2026-11-30T10:15:00Z",
        "s1",
        "r1",
        "/w/small.jsonl",
        "exit status 2\ncaf\u00e9",
    ]
    assert rows[2]["transcript"] is None


def test_a_torn_ledger_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"schema":"ctxctl.ledger/1","na')
    ledger.append(path, [Checked("a", "id", True, True, "\ud83d", 0.0)], now="2026-11-30T10:15:00Z")
    assert path.read_bytes().count(b"\n") == 2
    assert json.loads(path.read_bytes().split(b"\n")[1])["name"] == "a"


def test_several_writers_of_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    code = """
import sys
from pathlib import Path
from ctxctl.state import ledger
from ctxctl.state.contract import Checked
for n in range(50):
    rows = [Checked(f"{sys.argv[2]} {n} {k}", "text", True, True, "x" * 3000, 0.0) for k in range(3)]
    ledger.append(Path(sys.argv[1]), rows, now="2026-11-30T10:15:00Z")
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)], env=os.environ) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    names = [json.loads(line)["name"] for line in path.read_text().splitlines()]
    assert len(names) == len(set(names)) == 600
    assert all(names[i][:-1] == names[i + 1][:-1] == names[i + 2][:-1] for i in range(0, 600, 3))
