"""Real sessions come back byte for byte, and a line that is written anew looks as its agent writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import real_readers as readers

import ctxctl
from ctxctl.errors import InputError
from ctxctl.formats.base import FORMATS

TRANSCRIPTS = readers.TRANSCRIPTS
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the handed transcripts are not here")

READ = ("claude-code", "codex", "openai-chat", "message-per-line", "mini-swe-agent", "gemini", "openhands")
FILES = [p for folder in READ for p in readers.paths(folder)]
# Written by a person or by a test's own generator: not in the compact form of the agent.
BY_HAND = (
    "edge_cases",
    "truncated",
    "tool_call_pending",
    "queued_system",
    "sample_session",
    "agent-test",
    "session-alpha",
)
BY_AGENT = [p for folder in ("claude-code", "codex") for p in readers.paths(folder) if p.suffix == ".jsonl"]
BY_AGENT = [p for p in BY_AGENT if not p.name.startswith((*BY_HAND, "function_calls", "standard_session"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name[:40])
def test_an_unchanged_transcript_keeps_its_bytes(path: Path) -> None:
    try:
        transcript = ctxctl.read(str(path))
    except InputError:
        assert path.parent.name in ("gemini", "openhands", "claude-code")
        return
    data = path.read_bytes()
    assert b"".join(ctxctl.write(transcript)) == data
    assert [raw.line for raw in transcript.raw] == list(range(1, len(transcript.raw) + 1))


@pytest.mark.parametrize("path", BY_AGENT, ids=lambda p: p.name[:40])
def test_a_record_is_written_as_its_agent_writes_it(path: Path) -> None:
    format_ = path.parent.name
    encode = FORMATS.get(format_).encode
    lines = 0
    for line in path.read_bytes().split(b"\n"):
        if not line:
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # two records on a line
        assert encode(record) == line
        lines += 1
    assert lines > 0


@pytest.mark.parametrize("path", BY_AGENT[:4], ids=lambda p: p.name[:40])
def test_a_changed_line_leaves_the_others_alone(path: Path) -> None:
    transcript = ctxctl.read(str(path))
    lines = path.read_bytes().split(b"\n")
    changed = json.loads(lines[1])
    changed["note"] = "größer"
    written = b"".join(ctxctl.write(transcript, {2: changed, 3: None})).split(b"\n")
    assert written[0] == lines[0] and written[2:] == lines[3:]
    assert json.loads(written[1]) == changed and "größer".encode() in written[1]


def test_a_changed_document_keeps_its_form() -> None:
    path = min(readers.paths("mini-swe-agent"), key=lambda p: p.stat().st_size)
    transcript = ctxctl.read(str(path))
    record = json.loads(path.read_bytes())
    same = b"".join(ctxctl.write(transcript, {1: record}))
    assert json.loads(same) == record
    assert same.count(b"\n") == path.read_bytes().count(b"\n")
