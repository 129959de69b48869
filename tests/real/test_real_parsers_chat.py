"""langchain_core reads compacted chats and Messages requests, with the calls that were written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

langchain = pytest.importorskip("langchain_core.messages", reason="SKIPPED: langchain_core is not installed")
SAMPLES = Path(__file__).parents[2] / "sample_transcripts"


def conversations(path: Path) -> list[list[dict[str, Any]]]:
    text = path.read_text(encoding="utf-8")
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in text.split("\n") if line]
    return [d["messages"] if isinstance(d, dict) else d for d in documents]


@pytest.mark.parametrize("name", ["support-chat.jsonl", "anthropic-request.json"])
@pytest.mark.parametrize("target", ["80%", "65%"])
def test_calls_are_those_that_were_written(name: str, target: str, tmp_path: Path) -> None:
    out = tmp_path / name
    command = ["compact", "--to", target, "--window", "200k", "--no-recall", "-q", "-o", str(out), str(SAMPLES / name)]
    done = subprocess.run([sys.executable, "-m", "ctxctl", *command], capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    calls = 0
    for messages in conversations(out):
        read = langchain.convert_to_messages(messages)
        assert len(read) == len(messages)
        asked = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
        parts = [p for m in messages if isinstance(m["content"], list) for p in m["content"]]
        asked += [p["id"] for p in parts if p["type"] == "tool_use"]
        found = [c["id"] for m in read for c in getattr(m, "tool_calls", None) or ()]
        held = [p for m in read if isinstance(m.content, list) for p in m.content if isinstance(p, dict)]
        found += [p["id"] for p in held if p.get("type") == "tool_use" and p["id"] not in found]
        assert found == asked
        calls += len(asked)
    assert calls or target != "80%", "something was compared"
