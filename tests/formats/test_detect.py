"""The format is told from the content; what is known by sight but not read is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from ctxctl.errors import InputError, NothingFoundError, UsageError
from ctxctl.formats import FORMATS

USER = {"type": "user", "message": {"role": "user", "content": "hi"}}
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}
CALL = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}
TOOL_USE = [{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}]


def written(path: Path, *records: Any) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return str(path)


def test_the_formats_that_are_read() -> None:
    assert [name for name, _ in FORMATS] == [
        "anthropic-messages",
        "claude-code",
        "codex",
        "mini-swe-agent",
        "openai-chat",
        "openai-chat-message",
    ]


@pytest.mark.parametrize(
    ("expected", "records"),
    [
        ("codex", [{"timestamp": "t", "type": "session_meta", "payload": {"id": "c1"}}]),
        ("codex", [{"timestamp": "t", "type": "event_msg", "payload": {"type": "task_started"}}]),
        ("codex", [{"id": "c1", "timestamp": "t", "instructions": None}, {"type": "message", "role": "user"}]),
        ("codex", [{"record_type": "state"}, CALL]),
        ("claude-code", [{**USER, "uuid": "u1", "sessionId": "s"}]),
        ("claude-code", [{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}]),
        ("claude-code", [{"type": "summary", "summary": "t", "leafUuid": "u1"}]),
        ("claude-code", [SNAPSHOT]),
        ("claude-code", [USER]),
        ("mini-swe-agent", [{"trajectory_format": "mini-swe-agent-1.1", "messages": CHAT, "info": {}}]),
        ("anthropic-messages", [{"model": "m", "messages": TOOL_USE}]),
        ("anthropic-messages", [{"system": "s", "max_tokens": 5, "messages": CHAT}]),
        ("anthropic-messages", [TOOL_USE]),
        ("openai-chat", [{"messages": CHAT}]),
        ("openai-chat", [CHAT]),
        ("openai-chat", [{"custom_id": "r1", "body": {"messages": CHAT}}]),
        ("openai-chat", [{"input": {"messages": CHAT[:1]}, "preferred_output": CHAT[1:]}]),
        ("openai-chat-message", CHAT),
        ("openai-chat-message", [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}]),
    ],
)
def test_detected(tmp_path: Path, expected: str, records: list[Any]) -> None:
    assert ctxctl.read(written(tmp_path / "x.jsonl", *records)).format == expected


def test_a_bare_list_is_a_trajectory_by_its_name_alone(tmp_path: Path) -> None:
    assert ctxctl.read(written(tmp_path / "a.traj.json", CHAT)).format == "mini-swe-agent"
    assert ctxctl.read(written(tmp_path / "a.json", CHAT)).format == "openai-chat"


def test_the_first_records_may_say_nothing(tmp_path: Path) -> None:
    filler = [{"type": "a-type-of-the-future", "n": n} for n in range(40)]
    assert ctxctl.read(written(tmp_path / "x.jsonl", *filler, {**USER, "uuid": "u1", "sessionId": "s"})).records == 41


def test_names_lie(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    path.write_text(json.dumps({"messages": CHAT}, indent=2), encoding="utf-8")
    assert ctxctl.read(str(path)).format == "openai-chat"
    lines = tmp_path / "x.json"
    assert ctxctl.read(written(lines, {**USER, "uuid": "u1", "sessionId": "s"})).format == "claude-code"


UNREAD = {
    "codex exec": [{"type": "thread.started", "thread_id": "t"}, {"type": "item.completed", "item": {}}],
    "stream-json": [{"type": "system", "subtype": "init", "session_id": "s"}, {**USER, "session_id": "s"}],
    "web export": [{"loglines": [USER]}],
    "Gemini": [{"sessionId": "g1", "projectHash": "ab12", "startTime": "t", "kind": "main"}],
    "Gemini CLI": [{"sessionId": "g1", "projectHash": "ab12", "messages": []}],
    "pi session": [{"type": "session", "version": 3, "id": "p", "cwd": "/w"}, {"type": "message", "message": CHAT[0]}],
    "opencode": [{"info": {"id": "ses_1"}, "messages": [{"info": {"id": "msg_1", "role": "user"}, "parts": []}]}],
    "opencode export": [[{"info": {"id": "msg_1", "role": "user"}, "parts": []}]],
    "ATIF": [{"schema_version": "ATIF-v1.7", "steps": []}],
    "SWE-agent": [{"trajectory": [], "history": [{"role": "user", "content": "x", "agent": "main"}], "info": {}}],
    "OpenHands": [{"instance_id": "i", "history": [{"action": "message", "args": {}}], "test_result": {}}],
    "Inspect": [{"version": 2, "status": "success", "eval": {}, "samples": []}],
    "tau-bench": [[{"task_id": 1, "reward": 1.0, "info": {}, "traj": CHAT, "trial": 0}]],
    "Cline SDK": [{"version": 1, "agent": "a", "sessionId": "s", "messages": []}],
    "LangChain": [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": {"content": "hello"}}],
    "LangChain message": [{"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": {}}],
    "OpenTelemetry": [{"name": "chat", "attributes": {"gen_ai.input.messages": "[]"}}],
    "ShareGPT": [{"conversations": [{"from": "human", "value": "hi"}]}],
    "Goose": [{"working_dir": "/w", "message_count": 2}, {"role": "user", "created": 1, "content": []}],
}


@pytest.mark.parametrize("word", UNREAD)
def test_what_is_known_by_sight_is_named(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError) as caught:
        ctxctl.read(written(tmp_path / "x.jsonl", *UNREAD[word]))
    assert word in caught.value.message and "does not read" in caught.value.message
    assert caught.value.hint is not None and "--from" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "x"}]}]),
        json.dumps({"model": "m", "instructions": "i", "input": [{"type": "message", "role": "user", "content": []}]}),
        json.dumps({"rows": [1, 2, 3]}),
        "# aider chat started at 2026-01-01 10:00:00\n\n#### hello  \n\nanswer\n",
        "just some text\n",
        "a,b\n1,2\n",
    ],
    ids=["gemini-checkpoint", "responses-request", "other-json", "aider", "prose", "csv"],
)
def test_what_is_unknown_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        ctxctl.read(str(path))
    assert caught.value.path == str(path)


def test_a_foreign_line_among_sound_records_does_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    record = json.dumps({**USER, "uuid": "u1", "sessionId": "s"})
    path.write_text(f"{record}\n# aider chat started at \n{record}\n", encoding="utf-8")
    assert ctxctl.read(str(path)).format == "claude-code"


def test_the_keys_that_were_seen_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"keys seen: alpha, beta"):
        ctxctl.read(written(tmp_path / "x.jsonl", {"beta": 1, "alpha": 2}))


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", {"input": CHAT, "messages": CHAT, "system": "s", "max_tokens": 1})
    assert ctxctl.read(path).format == "anthropic-messages"
    assert ctxctl.read(path, format_name="openai-chat").format == "openai-chat"


def test_batch_results_can_be_forced(tmp_path: Path) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": {"prompt_tokens": 3}}
    path = written(tmp_path / "x.jsonl", {"custom_id": "r1", "response": {"body": body}})
    t = ctxctl.read(path, format_name="openai-chat")
    assert [b.text for b in t.blocks] == ["hi"]
    assert [u.input for u in t.usage] == [3]


def test_an_unknown_format_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        ctxctl.read(written(tmp_path / "x.jsonl", USER), format_name="claude-cod")
    assert caught.value.hint == "did you mean 'claude-code'?"


@pytest.mark.parametrize("data", [b"", b"\n\n  \n", b"\xef\xbb\xbf"])
def test_nothing_in_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(NothingFoundError, match="empty"):
        ctxctl.read(str(path))


@pytest.mark.parametrize("data", [b"[]", b"[]\n", b"[\n]\n"])
def test_an_empty_list(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(NothingFoundError):
        ctxctl.read(str(path))


def test_nothing_usable_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"broken\n{"too"\n')
    with pytest.raises(InputError, match="no usable record") as caught:
        ctxctl.read(str(path))
    assert caught.value.line == 1 and "2 bad lines" in caught.value.message


def test_a_cut_document_is_told_from_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"messages": CHAT * 3}, indent=2)[:-40], encoding="utf-8")
    with pytest.raises(InputError, match="damaged JSON document"):
        ctxctl.read(str(path))
