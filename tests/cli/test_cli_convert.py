"""`ctxctl convert` as users run it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_stdout_carries_the_transcript_and_stderr_what_is_lost(ctxctl: Callable[..., Any], samples: Path) -> None:
    done = ctxctl("convert", samples / "axios-to-fetch.jsonl", "--to", "openai-chat")
    assert done.code == 0
    (line,) = done.out.splitlines()
    assert {m["role"] for m in json.loads(line)["messages"]} == {"user", "assistant", "tool"}
    assert "not carried: signatures of thinking: 2" in done.err
    assert ctxctl("convert", samples / "axios-to-fetch.jsonl", "--to", "openai-chat", "-q").err == ""


def test_a_file_is_written_once_and_never_over_an_input(
    ctxctl: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "0b0e9c2e-0000-4000-8000-000000000001.jsonl"
    first = ctxctl("convert", samples / "codex-rollout.jsonl", "--to", "claude-code", "-o", out)
    assert (first.code, first.out) == (0, "")
    assert json.loads(out.read_text().splitlines()[0])["sessionId"] == out.stem
    again = ctxctl("convert", samples / "codex-rollout.jsonl", "--to", "claude-code", "-o", out)
    assert again.code == 2 and "--force" in again.err
    onto = ctxctl("convert", out, "--to", "codex", "-o", out, "--force")
    assert onto.code == 2 and "is an input" in onto.err
    assert ctxctl("analyze", "--json", out).result()["transcript"]["format"] == "claude-code"


def test_json_tells_losses_and_writes_only_what_is_named(
    ctxctl: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    done = ctxctl("convert", samples / "codex-rollout.jsonl", "--to", "openai-chat", "--json")
    assert done.json()["schema"] == "ctxctl.convert/1"
    result = done.result()
    assert {"what": "encrypted reasoning", "count": 3} in result["losses"]
    assert (result["output"], result["written"], result["conversations"]) == (None, [], 1)
    out = tmp_path / "chat.jsonl"
    result = ctxctl("convert", samples / "codex-rollout.jsonl", "--to", "openai-chat", "--json", "-o", out).result()
    assert result["written"] == [str(out)]
    assert result["bytes"] == out.stat().st_size


def test_a_pipe_is_read(ctxctl: Callable[..., Any], samples: Path) -> None:
    data = (samples / "anthropic-request.json").read_bytes()
    done = ctxctl("convert", "--to", "openai-chat-message", stdin=data)
    assert done.code == 0
    assert json.loads(done.out.splitlines()[0])["role"] == "system"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--to", "openai-chta"], "did you mean"),
        ([], "known: anthropic-messages"),
        (["--to", "codex"], "--conversation 1 to 3"),
        (["--to", "codex", "--conversation", "7"], "no conversation 7"),
    ],
)
def test_wrong_arguments_are_told(ctxctl: Callable[..., Any], samples: Path, arguments: list[str], hint: str) -> None:
    done = ctxctl("convert", samples / "support-chat.jsonl", *arguments)
    assert (done.code, done.out) == (2, "")
    assert hint in done.err


def test_a_folder_and_a_missing_file(ctxctl: Callable[..., Any], samples: Path, tmp_path: Path) -> None:
    assert ctxctl("convert", samples, "--to", "codex").code == 2
    missing = ctxctl("convert", tmp_path / "none.jsonl", "--to", "codex")
    assert missing.code == 3 and "no such file" in missing.err


def test_the_output_is_no_more_readable_than_the_input(
    ctxctl: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes((samples / "codex-rollout.jsonl").read_bytes())
    os.chmod(source, 0o600)
    assert ctxctl("convert", source, "--to", "openai-chat", "-o", out).code == 0
    assert out.stat().st_mode & 0o777 == 0o600
