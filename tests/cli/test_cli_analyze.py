"""`ctxctl analyze` on one input: forms, gates, streams and exit status."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def session(golden: Path) -> Path:
    return golden / "claude-code" / "split_lines.jsonl"


def test_text(ctxctl: Run, session: Path) -> None:
    done = ctxctl("analyze", session)
    assert done.code == 0 and done.err == ""
    assert "9,375 of 200,000 tokens" in done.out and "claude-sonnet-4-5" in done.out


def test_json(ctxctl: Run, session: Path) -> None:
    done = ctxctl("analyze", "--json", session)
    assert done.code == 0 and done.err == ""
    data = done.json()
    assert set(data) == {"schema", "ctxctl", "settings", "result"} and data["schema"] == "ctxctl.analyze/1"
    assert data["settings"]["pressure_thresholds"] == {"yellow": 0.5, "orange": 0.75, "red": 0.9}
    result = data["result"]
    assert result["usage"]["total"] == 9_103 + 265 + 9_375 + 12 and result["usage"]["requests"] == 2
    assert result["context"]["reported"] == 9_375 and result["context"]["with_output"] == 9_387
    assert result["context"]["order"] == ["u1", "a1", "a2", "a3", "u2", "a4"]
    assert [(r["turn"], r["tokens"]) for r in result["pressure"]] == [(1, 9_103), (2, 9_375)]
    assert "blocks" not in result


def test_blocks(ctxctl: Run, session: Path) -> None:
    result = ctxctl("analyze", "--json", "--blocks", session).result()
    assert [b["block"] for b in result["blocks"]] == ["2.0", "3.0", "4.0", "5.0", "6.0", "7.0"]
    by_kind = result["composition_all"]["by_kind"]
    for kind, share in by_kind.items():
        rows = [b["tokens"] for b in result["blocks"] if b["kind"] == kind]
        assert len(rows) == share["blocks"] and abs(sum(rows) - share["tokens"]) <= len(rows)


def test_jsonl_and_csv_and_markdown(ctxctl: Run, session: Path) -> None:
    line = ctxctl("analyze", "--output-format", "jsonl", session)
    assert line.out.count("\n") == 1 and json.loads(line.out)["path"] == str(session)
    rows = list(csv.DictReader(io.StringIO(ctxctl("analyze", "--output-format", "csv", session).out)))
    assert [(r["turn"], r["tokens"], r["level"]) for r in rows] == [("1", "9103", "green"), ("2", "9375", "green")]
    text = ctxctl("analyze", "--output-format", "markdown", session).out
    assert text.startswith("# ") and "| kind | blocks | tokens | share |" in text


def test_reported_alone(ctxctl: Run, samples: Path) -> None:
    path = samples / "axios-to-fetch.jsonl"
    quick = ctxctl("analyze", "--json", "--tokens", "reported", path)
    assert quick.code == 0
    found, whole = quick.result(), ctxctl("analyze", "--json", path).result()
    assert found["usage"] == whole["usage"]
    assert found["pressure"] == whole["pressure"] and found["peak"] == whole["peak"]
    assert found["context"]["reported"] == whole["context"]["reported"]
    for key in ("composition", "composition_all", "attention", "counter"):
        assert found[key] is None, key
    for key in ("records", "blocks", "exchanges", "messages"):
        assert found["transcript"][key] is None, key
    assert found["context"]["counted"] is None and found["context"]["overhead"] is None
    assert "lines_not_read" in [d["code"] for d in found["diagnostics"]]
    assert ctxctl("analyze", "--tokens", "reported", path).code == 0


def test_helpers_can_be_left_out(ctxctl: Run, samples: Path) -> None:
    path = samples / "axios-to-fetch.jsonl"
    both = ctxctl("analyze", "--json", path).result()
    alone = ctxctl("analyze", "--json", "--no-subagents", path).result()
    assert len(both["usage"]["by_thread"]) == 2 and list(alone["usage"]["by_thread"]) == ["main"]
    assert alone["usage"]["total"] == both["usage"]["by_thread"]["main"]["total"] < both["usage"]["total"]
    assert alone["transcript"]["messages"]["sidechain"] == 0 < both["transcript"]["messages"]["sidechain"]


@pytest.mark.parametrize("arguments", [("-",), ()])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_stdin(ctxctl: Run, session: Path, arguments: tuple[str, ...], pack: Callable[[bytes], bytes]) -> None:
    done = ctxctl("analyze", "--json", *arguments, stdin=pack(session.read_bytes()))
    assert done.code == 0
    assert done.result()["transcript"]["path"] == "-" and done.result()["peak"]["tokens"] == 9_375


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 6, "empty"),
        (b"\n \n", 6, "empty"),
        (b"[]", 6, "0 messages"),
        (b'{"broken\n{"too\n', 3, "2 bad lines"),
        (b"plain text\n", 3, "no usable record"),
        (b'{"a": 1}\n', 3, "not a transcript format"),
        (b"PK\x03\x04", 3, "zip"),
        (b"\x00\x00\x00\n", 3, "NUL"),
    ],
)
def test_inputs_that_can_not_be_read(ctxctl: Run, tmp_path: Path, data: bytes, code: int, words: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    done = ctxctl("analyze", "x.jsonl")
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: x.jsonl") and words in done.err and "Traceback" not in done.err


def test_gates(ctxctl: Run, session: Path) -> None:
    passed = ctxctl("analyze", "--json", "--max-tokens", "9375", "--max-peak", "9_375", session)
    assert passed.code == 0 and [g["ok"] for g in passed.result()["gates"]] == [True, True]
    failed = ctxctl("analyze", "--json", "--max-tokens", "9374", "--window", "10k", "--fail-on", "red", session)
    assert failed.code == 1
    assert [(g["name"], g["ok"]) for g in failed.result()["gates"]] == [("fail-on", False), ("max-tokens", False)]
    assert failed.err.count("failed: ") == 2 and "9,374" in failed.err
    quiet = ctxctl("analyze", "-q", "--max-tokens", "1", session)
    assert quiet.code == 1 and quiet.err == "failed: max-tokens 1: it is 9,375\n"
    assert "failed: max-tokens 1: it is 9,375" in quiet.out  # a saved report says so too


@pytest.mark.parametrize(("share", "code"), [("93.75%", 0), ("0.9375", 0), ("93.74%", 1)])
def test_max_utilization(ctxctl: Run, session: Path, share: str, code: int) -> None:
    assert ctxctl("analyze", "--window", "10_000", "--max-utilization", share, session).code == code


def test_a_gate_that_can_not_be_checked_does_not_pass(ctxctl: Run, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    (tmp_path / "x.json").write_text(json.dumps(chat), encoding="utf-8")
    done = ctxctl("analyze", "--json", "--max-utilization", "0.9", "x.json")
    assert done.code == 1 and done.result()["gates"][0]["value"] is None
    assert "could not be checked" in done.err and "--window" in done.err
    reported = ctxctl("analyze", "--tokens", "reported", "--max-tokens", "1", "x.json")
    assert reported.code == 1


def test_damage_is_told_on_stderr_and_is_no_failure(ctxctl: Run, golden: Path) -> None:
    path = golden / "claude-code" / "damage.jsonl"
    done = ctxctl("analyze", "--json", path)
    assert done.code == 0 and done.result()["transcript"]["complete"] is False
    assert f"warning: {path}:5: " in done.err and "[torn_tail]" in done.err
    assert len(done.result()["diagnostics"]) >= 7
    assert ctxctl("analyze", "--json", "-q", path).err == ""
    assert ctxctl("analyze", "--fail-on", "damage", path).code == 1
    assert "torn_tail" in ctxctl("analyze", path).out


def test_output_files(ctxctl: Run, tmp_path: Path, session: Path) -> None:
    done = ctxctl("analyze", session, "-o", "r.json")
    assert (done.code, done.out) == (0, "") and "wrote r.json" in done.err
    assert json.loads((tmp_path / "r.json").read_bytes())["schema"] == "ctxctl.analyze/1"
    again = ctxctl("analyze", session, "-o", "r.json")
    assert again.code == 2 and "r.json exists" in again.err and "--force" in again.err
    assert ctxctl("analyze", session, "-o", "r.json", "--force", "-q").code == 0
    for name, start in (("r.md", b"# "), ("r.csv", b"path,turn"), ("r.jsonl", b'{"path"'), ("r.txt", b"/")):
        assert ctxctl("analyze", session, "-o", name).code == 0
        assert (tmp_path / name).read_bytes().startswith(start), name
    assert ctxctl("analyze", session, "-o", "no/such/folder/r.json").code == 3
    assert ctxctl("analyze", session, "-o", ".", "--json").code == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == [".git", "r.csv", "r.json", "r.jsonl", "r.md", "r.txt"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_an_output_file_is_no_more_open_than_its_source(ctxctl: Run, tmp_path: Path, session: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(session.read_bytes())
    secret.chmod(0o600)
    assert ctxctl("analyze", secret, "-o", "r.json").code == 0
    assert (tmp_path / "r.json").stat().st_mode & 0o077 == 0


def test_the_input_is_left_alone(ctxctl: Run, tmp_path: Path, session: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(session.read_bytes())
    ctxctl("analyze", "x.jsonl")
    assert (tmp_path / "x.jsonl").read_bytes() == session.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".git", "x.jsonl"]


def test_from(ctxctl: Run, tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    (tmp_path / "x.json").write_text(json.dumps({"messages": chat}), encoding="utf-8")
    assert ctxctl("analyze", "--json", "x.json").result()["transcript"]["format"] == "openai-chat"
    forced = ctxctl("analyze", "--json", "--from", "anthropic-messages", "x.json")
    assert forced.result()["transcript"]["format"] == "anthropic-messages"


def test_window_beats_everything(ctxctl: Run, tmp_path: Path, session: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("max_context_tokens: 50000\n", encoding="utf-8")
    assert ctxctl("analyze", "--json", session).result()["window"] == {"tokens": 50_000, "source": "config"}
    assert ctxctl("analyze", "--json", "--window", "1m", session).result()["window"]["tokens"] == 1_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
def test_on_a_terminal(tmp_path: Path, samples: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    arguments = [sys.executable, "-m", "ctxctl", "analyze", str(samples / "codex-rollout.jsonl")]
    child = subprocess.Popen(arguments, stdout=slave, stderr=subprocess.PIPE, cwd=tmp_path, env=environment)
    os.close(slave)
    data = b""
    while True:
        try:
            piece = os.read(master, 65_536)
        except OSError:
            break
        if not piece:
            break
        data += piece
    os.close(master)
    assert child.wait(60) == 0 and child.stderr is not None
    assert child.stderr.read() == b""
    text = data.decode("utf-8")
    assert "\x1b[" in text
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "")
    assert max(len(line.rstrip()) for line in bare.split("\n")) <= 80


def test_progress_is_never_on_stdout(ctxctl: Run, tmp_path: Path) -> None:
    filler = json.dumps({"type": "mode", "sessionId": "s", "x": "y" * 200_000}) + "\n"
    start = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "hi"}}
    (tmp_path / "x.jsonl").write_text(json.dumps(start) + "\n" + filler * 100, encoding="utf-8")
    done = ctxctl("analyze", "--json", "--window", "1k", "x.jsonl")
    assert done.code == 0 and done.err == "" and done.result()["transcript"]["records"] == 101


@pytest.mark.parametrize("name", ["report.txt", "report.md", "report.csv", "report.json"])
def test_a_file_gets_no_colour(ctxctl: Run, samples: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert ctxctl("analyze", samples / "axios-to-fetch.jsonl", "-o", out, FORCE_COLOR="1").code == 0
    assert b"\x1b" not in out.read_bytes() and out.stat().st_size > 500
    done = ctxctl("analyze", samples / "axios-to-fetch.jsonl", FORCE_COLOR="1")
    assert "\x1b" in done.out


def test_fail_on_takes_a_list(ctxctl: Run, samples: Path) -> None:
    path = samples / "axios-to-fetch.jsonl"
    for arguments in (("--fail-on", "red,spike"), ("--fail-on", "red", "--fail-on", " Spike ")):
        done = ctxctl("analyze", path, "--json", *arguments)
        assert done.code == 1 and "fail-on spike" in done.err
        assert [gate["ok"] for gate in done.result()["gates"]] == [True, False]


def test_damage_that_is_not_listed_one_by_one_counts(ctxctl: Run, golden: Path, tmp_path: Path) -> None:
    lines = (golden / "claude-code" / "split_lines.jsonl").read_bytes()
    (tmp_path / "x.jsonl").write_bytes(lines + b"broken {\n" * 120)
    done = ctxctl("analyze", "x.jsonl", "--json", "--fail-on", "damage")
    assert done.code == 1
    assert [gate["value"] for gate in done.result()["gates"]] == [120]


def test_a_wrong_tokenizer_in_the_environment_is_a_wrong_setting(ctxctl: Run, samples: Path) -> None:
    done = ctxctl("analyze", samples / "axios-to-fetch.jsonl", CTXCTL_TOKENIZER="spacy")
    assert (done.code, done.out) == (4, "")
    assert "'spacy' in CTXCTL_TOKENIZER" in done.err and "splintr" in done.err


def test_usage_alone_lists_no_branches(ctxctl: Run, golden: Path) -> None:
    path = golden / "claude-code" / "rewound_branch.jsonl"
    assert ctxctl("analyze", "--json", path).result()["transcript"]["branches"]
    assert ctxctl("analyze", "--json", "--tokens", "reported", path).result()["transcript"]["branches"] is None


def test_what_waits_behind_the_newest_answer_is_in_the_window_now(
    ctxctl: Run, saved: Run, samples: Path, tmp_path: Path
) -> None:
    lines = (samples / "axios-to-fetch.jsonl").read_bytes()
    before = saved(tmp_path / "t.jsonl", lines)
    newest = [json.loads(line) for line in lines.splitlines() if b'"isSidechain":false' in line][-1]
    note = {**newest, "parentUuid": newest["uuid"], "uuid": "tail", "type": "user"}
    note["message"] = {"role": "user", "content": "Read all of this. " * 20_000}
    after = saved(tmp_path / "t.jsonl", lines + json.dumps(note).encode() + b"\n")
    assert before["context"]["pending"] == 0 and before["context"]["tokens"] == before["context"]["reported"]
    now = after["context"]
    assert (now["reported"], now["with_output"]) == (before["context"]["reported"], before["context"]["with_output"])
    assert now["pending"] > 70_000 and now["tokens"] == now["with_output"] + now["pending"]
    assert after["pressure"] == before["pressure"] and after["usage"] == before["usage"]
    done = ctxctl("analyze", "--max-tokens", "50k", tmp_path / "t.jsonl")
    assert done.code == 1 and "not sent yet" in done.out


def test_the_forecast_leaves_the_first_request_out(ctxctl: Run, golden: Path, samples: Path) -> None:
    result = ctxctl("analyze", "--json", "--window", "1m", samples / "axios-to-fetch.jsonl").result()
    last = result["pressure"][-5:]
    assert result["forecast"]["velocity"] == pytest.approx(sum(row["added"] for row in last) / 5)
    assert result["forecast"]["turns"] == int(
        (1_000_000 - result["context"]["tokens"]) / result["forecast"]["velocity"]
    )
    result = ctxctl("analyze", "--json", golden / "claude-code" / "split_lines.jsonl").result()
    grown = [row["added"] for row in result["pressure"][1:]]
    assert grown and result["forecast"]["velocity"] == pytest.approx(sum(grown) / len(grown))


def test_damage_can_not_be_told_from_usage_alone(ctxctl: Run, golden: Path) -> None:
    path = golden / "claude-code" / "split_lines.jsonl"
    done = ctxctl("analyze", "--json", "--tokens", "reported", "--fail-on", "damage", path)
    assert done.code == 1 and "does not read every line" in done.err
    assert done.result()["transcript"]["damaged"] is None and done.result()["transcript"]["complete"] is None
    assert ctxctl("analyze", "--fail-on", "damage", path).code == 0


def test_a_report_never_replaces_its_transcript(ctxctl: Run, golden: Path, tmp_path: Path) -> None:
    data = (golden / "claude-code" / "split_lines.jsonl").read_bytes()
    (tmp_path / "t.jsonl").write_bytes(data)
    (tmp_path / "link.jsonl").symlink_to("t.jsonl")
    for target in ("t.jsonl", "link.jsonl"):
        done = ctxctl("analyze", "t.jsonl", "-o", target, "--force")
        assert (done.code, done.out) == (2, "") and "is an input" in done.err
    assert (tmp_path / "t.jsonl").read_bytes() == data
