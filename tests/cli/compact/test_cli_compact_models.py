"""`ctxctl compact --llm`: real commands that answer, fail, say nothing, say too much or never end."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STEPS = ("--to", "20%", "-s", "conversation")
FAILING = {
    "fails": ("echo 'Error generating summary: 429' >&2; exit 1", "exit status 1"),
    "fails with words": ("echo 'Error generating summary: 429'; exit 1", "exit status 1"),
    "says nothing": ("cat >/dev/null", "empty"),
    "says blank": ("cat >/dev/null; printf ' \\n\\n'", "empty"),
    "is not there": ("/no/such/summariser", "exit status 127"),
    "says too much": ("cat; cat /etc/services 2>/dev/null; seq 1 20000", "are allowed"),
    "is killed": ("kill -9 $$", "signal 9"),
}


@pytest.fixture
def options(folder: Path) -> tuple[str, ...]:
    """No retries, so that a failure is seen at once."""
    (folder / ".ctxctl.yaml").write_text("compaction:\n  llm: {retries: 0, timeout: 1.5}\n")
    return STEPS


def test_a_command_writes_the_summary(
    compact: Any, session: Any, folder: Path, texts: Any, options: Any, tmp_path: Path
) -> None:
    path = session()
    asked = tmp_path / "prompt"
    found = compact(*options, "--llm", f"cat > {asked}; echo 'The ferret is warm.'", "-o", "o.jsonl", "--json", path)
    result = found.result()
    assert found.code == 0 and found.err == ""
    assert result["llm"]["calls"] == 1 and result["llm"]["failures"] == 0 and result["llm"]["fallback"] is False
    assert result["steps"][0]["fallback"] is None
    (summary,) = [text for text in texts(folder / "o.jsonl") if text.startswith("[summary]")]
    assert "The ferret is warm." in summary
    prompt = asked.read_text()
    assert "Make the parser fast" in prompt and "compute_0(0)" in prompt  # the goal and the complete material


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_falls_back_to_the_extract(
    name: str, compact: Any, session: Any, folder: Path, texts: Any, options: Any
) -> None:
    command, said = FAILING[name]
    path = session()
    original = path.read_bytes()
    done = compact(*options, "--llm", command, "-o", "o.jsonl", "--json", path)
    found = done.result()
    assert done.code == 0 and found["target_met"] is True
    (step,) = found["steps"]
    assert step["fallback"] and said in step["fallback"]
    assert found["llm"]["failures"] == found["llm"]["calls"] >= 1
    assert done.err.startswith(f"warning: {path}: conversation used the extractive summary: ") and said in done.err
    assert path.read_bytes() == original and b"Error generating" not in (folder / "o.jsonl").read_bytes()
    without = compact(*options, "-o", "plain.jsonl", path)
    assert without.code == 0
    assert [t for t in texts(folder / "o.jsonl") if "[summary]" in t] == [
        t.replace("plain.jsonl", "o.jsonl") for t in texts(folder / "plain.jsonl") if "[summary]" in t
    ]
    text = compact(*options, "--llm", command, "--dry-run", path)
    assert text.code == 0 and "the extractive summary was used" in text.out


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_can_fail_the_command(name: str, compact: Any, session: Any, snapshot: Any, options: Any) -> None:
    command, said = FAILING[name]
    path = session()
    before = snapshot()
    for way in (("-o", "o.jsonl"), ("--in-place",), ("-o", "-"), ("-o", "o.jsonl", "--json")):
        done = compact(*options, "--llm", command, "--on-llm-failure", "fail", *way, path)
        assert (done.code, done.out) == (5, "")
        assert "summary" in done.err and said in done.err and "--on-llm-failure extractive" in done.err
        if "--json" in way:
            error = json.loads(done.err.strip().splitlines()[-1])["error"]
            assert error["code"] == "summary_failed"
        after = snapshot()
        assert after.pop("agent_audit.jsonl") and after == before  # the refusal alone is recorded


def test_a_command_that_hangs_is_ended(compact: Any, session: Any, folder: Path, options: Any, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()
    done = compact(*options, "--llm", f"echo $$ > {pid}; sleep 60; echo late", "-o", "o.jsonl", "--json", session())
    assert time.monotonic() - started < 20
    assert done.code == 0 and "no answer within 1.5 s" in done.result()["steps"][0]["fallback"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_after_three_failures_it_is_not_asked_again(compact: Any, session: Any, options: Any, tmp_path: Path) -> None:
    asked = tmp_path / "calls"
    command = f"echo x >> {asked}; exit 1"
    done = compact("--to", "20%", "-s", "tool-results", "--llm", command, "--dry-run", "--json", session(rounds=9))
    found = done.result()
    assert asked.read_text() == "x\n" * 3
    assert found["llm"] | {"seconds": 0} == {"calls": 3, "failures": 3, "fallback": True, "seconds": 0}
    assert found["steps"][0]["fallback"]


def test_the_settings_name_the_command(compact: Any, session: Any, folder: Path, texts: Any) -> None:
    (folder / ".ctxctl.yaml").write_text(
        "compaction:\n  llm:\n    command: [sh, -c, 'cat >/dev/null; echo By rule.']\n"
    )
    assert compact(*STEPS, "-o", "o.jsonl", session()).code == 0
    assert any("By rule." in text for text in texts(folder / "o.jsonl"))
    done = compact(*STEPS, "--llm", "cat >/dev/null; echo By hand.", "-o", "p.jsonl", folder / "s.jsonl")
    assert done.code == 0 and any("By hand." in text for text in texts(folder / "p.jsonl"))


def test_secrets_reach_neither_the_model_nor_the_summary(
    compact: Any, session: Any, folder: Path, options: Any, tmp_path: Path
) -> None:
    key = "AKIA" + "Q3EGRIJQK5EXAMPL"
    data = session().read_bytes().replace(b"value_2_1 ", f"{key} ".encode())
    asked = tmp_path / "prompt"
    path = session(data=data)
    found = compact(*options, "--llm", f"cat > {asked}; grep -m3 value_2 {asked}", "-o", "o.jsonl", "--json", path)
    assert found.code == 0 and key not in asked.read_text() and key not in (folder / "o.jsonl").read_text()
    assert "[credential-redacted]" in asked.read_text() and found.result()["sanitized"]["secrets"] >= 1


def test_an_interrupt_leaves_nothing(session: Any, folder: Path, snapshot: Any, tmp_path: Path) -> None:
    path = session()
    before = snapshot()
    flag = tmp_path / "flag"
    command = [sys.executable, "-m", "ctxctl", "compact", *STEPS, "--llm", f"touch {flag}; sleep 60", "--in-place"]
    process = subprocess.Popen([*command, str(path)], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while not flag.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(2)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out == b"" and b"Traceback" not in err
    assert snapshot() == before


class Model(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that always says the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "The endpoint has spoken."}
        body = json.dumps(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_an_endpoint(compact: Any, session: Any, folder: Path, texts: Any, endpoint: str) -> None:
    pytest.importorskip("openai")
    options = ("--llm-endpoint", endpoint, "--llm-model", "m")
    done = compact(*STEPS, *options, "-o", "o.jsonl", session())
    assert done.code == 0, done.err
    assert any("The endpoint has spoken." in text for text in texts(folder / "o.jsonl"))


def test_a_model_without_an_endpoint(compact: Any, session: Any) -> None:
    done = compact(*STEPS, "--llm-model", "m", "--dry-run", session())
    assert (done.code, done.out) == (2, "") and "--llm-endpoint URL" in done.err
