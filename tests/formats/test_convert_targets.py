"""Conversions case by case: what a target's file looks like, and what is said to be lost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import NothingFoundError, UsageError
from ctxctl.formats import read
from ctxctl.formats.convert.run import Converted, convert

NOW = "2026-05-01T08:00:00.000Z"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SAMPLES = Path(__file__).parents[2] / "sample_transcripts"

REQUEST = {
    "model": "claude-x",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}],
    "messages": [
        {"role": "user", "content": "look at a.py"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I read it.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "cmVk"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py", "big": 2**70}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no path", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "print(1)"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    ],
                },
                {"type": "text", "text": "go on"},
            ],
        },
        {"role": "assistant", "content": "Done."},
    ],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST))
    return path


def done(path: Path, target: str, **more: Any) -> Converted:
    return convert(str(path), target, now=NOW, cwd="/w", **more)


def records(found: Converted) -> list[dict[str, Any]]:
    assert found.data.endswith(b"\n")
    return [json.loads(line) for line in found.data.decode("utf-8", "strict").splitlines()]


def saved(tmp_path: Path, lines: list[Any], name: str = "in.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_chat_has_results_behind_their_calls_and_arguments_as_text(source: Path) -> None:
    (request,) = records(found := done(source, "openai-chat"))
    roles = [m["role"] for m in request["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user", "assistant"]
    calls = request["messages"][2]["tool_calls"]
    assert [c["id"] for c in calls] == ["toolu_1", "toolu_2"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"path": "a.py", "big": 2**70}
    assert [m["tool_call_id"] for m in request["messages"][3:5]] == ["toolu_1", "toolu_2"]
    assert request["messages"][2]["reasoning_content"] == "I read it."
    assert request["tools"][0]["function"] == {
        "name": "read",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {}},
    }
    assert found.losses["signatures of thinking"] == 2
    assert found.losses["images in tool results"] == 1


def test_messages_to_messages_keeps_all_of_it(source: Path) -> None:
    (request,) = records(found := done(source, "anthropic-messages"))
    assert request["system"] == REQUEST["system"]
    assert request["tools"] == REQUEST["tools"]
    assert request["messages"][1] == REQUEST["messages"][1]  # type: ignore[index]
    results = request["messages"][2]["content"]
    assert [(r["tool_use_id"], r.get("is_error")) for r in results] == [("toolu_1", None), ("toolu_2", True)]
    assert results[0]["content"][1]["source"]["data"] == PIXEL
    assert request["messages"][3] == {"role": "user", "content": "go on"}
    assert found.losses == {}


def test_claude_code_has_the_whole_envelope(source: Path) -> None:
    lines = records(done(source, "claude-code", session="0b0e9c2e-0000-4000-8000-000000000001"))
    seen: set[str | None] = {None}
    for line in lines:
        assert line["parentUuid"] in seen
        seen.add(line["uuid"])
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", line["uuid"])
        assert line["sessionId"] == "0b0e9c2e-0000-4000-8000-000000000001"
        assert (line["cwd"], line["isSidechain"], line["userType"]) == ("/w", False, "external")
        assert line["version"] and "gitBranch" in line and line["timestamp"]
        assert line["message"]["role"] == line["type"]
    assert len({line["uuid"] for line in lines}) == len(lines)
    assert [a["parentUuid"] for a in lines[1:]] == [b["uuid"] for b in lines[:-1]]
    times = [line["timestamp"] for line in lines]
    assert times == sorted(times)
    assert lines[0]["isMeta"] is True
    answer = [line for line in lines if line["type"] == "assistant"][:5]
    assert len({line["message"]["id"] for line in answer}) == 1
    assert len({line["requestId"] for line in answer}) == 1
    assert answer[0]["message"]["content"] == [{"type": "thinking", "thinking": "I read it.", "signature": "c2ln"}]
    results = [line for line in lines if isinstance(line["message"]["content"], list) and line["type"] == "user"]
    assert all(len(line["message"]["content"]) == 1 for line in results)
    callers = {line["message"]["content"][0].get("id"): line["uuid"] for line in answer}
    for line in results:
        assert line["sourceToolAssistantUUID"] == callers[line["message"]["content"][0]["tool_use_id"]]


def test_codex_has_meta_items_events_and_usage(tmp_path: Path) -> None:
    lines = records(done(SAMPLES / "axios-to-fetch.jsonl", "codex"))
    assert lines[0]["type"] == "session_meta"
    assert lines[0]["payload"]["id"] and lines[0]["payload"]["cwd"]
    assert {line["type"] for line in lines} == {"session_meta", "response_item", "event_msg", "turn_context"}
    prompts = [line["payload"]["message"] for line in lines if line["payload"].get("type") == "user_message"]
    assert prompts
    counts = [line["payload"]["info"] for line in lines if line["payload"].get("type") == "token_count"]
    total = sum(c["last_token_usage"]["total_tokens"] for c in counts)
    assert counts[-1]["total_token_usage"]["total_tokens"] == total > 0
    original = read(str(SAMPLES / "axios-to-fetch.jsonl"), companions=False)
    spent = {(u.input, u.output, u.cache_read, u.cache_write) for u in original.usage}
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(done(SAMPLES / "axios-to-fetch.jsonl", "codex").data)
    back = read(str(path))
    assert {(u.input, u.output, u.cache_read, u.cache_write) for u in back.usage} <= spent


def test_codex_patches_stay_free_text(tmp_path: Path) -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "patch it"}},
        {
            "type": "response_item",
            "payload": {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        },
        {"type": "response_item", "payload": {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}},
    ]
    path = saved(tmp_path, [{"timestamp": NOW, **line} for line in lines])
    chat = done(path, "openai-chat")
    (request,) = records(chat)
    assert json.loads(request["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"input": "*** Begin Patch"}
    assert sum("no JSON object" in what for what in chat.losses) == 1
    middle = tmp_path / "chat.jsonl"
    middle.write_bytes(chat.data)
    again = [line["payload"] for line in records(done(middle, "codex"))]
    call = next(p for p in again if p.get("type") == "custom_tool_call")
    assert (call["name"], call["input"]) == ("apply_patch", "*** Begin Patch")
    assert any(p.get("type") == "custom_tool_call_output" for p in again)


def test_encrypted_reasoning_is_carried_to_codex_alone(tmp_path: Path) -> None:
    reasoning = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAAx"}
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hi"}},
        {"type": "response_item", "payload": reasoning},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "hello"}},
    ]
    path = saved(tmp_path, [{"timestamp": NOW, **line} for line in lines])
    assert reasoning in [line["payload"] for line in records(done(path, "codex"))]
    for target in ("openai-chat", "anthropic-messages", "claude-code"):
        assert done(path, target).losses["encrypted reasoning"] == 1


def test_unsigned_thinking_is_left_out_where_the_provider_refuses_it(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    path = saved(tmp_path, [{"messages": [{"role": "user", "content": "ok?"}, message]}])
    found = done(path, "anthropic-messages")
    assert found.losses["thinking without a signature"] == 1
    assert records(found)[0]["messages"][1] == {"role": "assistant", "content": "yes"}


@pytest.mark.parametrize("target", ["anthropic-messages", "openai-chat", "codex", "claude-code"])
def test_pictures_of_the_user_are_carried(tmp_path: Path, target: str) -> None:
    url = f"data:image/png;base64,{PIXEL}"
    content = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    path = saved(tmp_path, [{"messages": [{"role": "user", "content": content}]}])
    found = done(path, target)
    assert found.data.count(PIXEL.encode()) == 1
    out = tmp_path / "out.jsonl"
    out.write_bytes(found.data)
    assert [b.kind for b in read(str(out), format_name=target).blocks] == ["user_message", "image"]


def test_documents_are_carried_or_named(tmp_path: Path) -> None:
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}}
    body = {"max_tokens": 1, "system": "s", "messages": [{"role": "user", "content": [pdf]}]}
    path = saved(tmp_path, [body])
    assert b"data:application/pdf;base64,JVBERi0xLjQK" in done(path, "openai-chat").data
    found = done(path, "codex")
    assert found.losses["documents"] == 1
    assert b"[document omitted]" in found.data


def test_missing_and_repeated_ids_are_made_unique(tmp_path: Path) -> None:
    def call(arguments: str, id_: str | None) -> dict[str, Any]:
        call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [{**call, "id": id_} if id_ else call]}

    messages = [
        {"role": "user", "content": "go"},
        call("{}", None),
        {"role": "tool", "content": "first"},
        call('{"n":1}', "x"),
        {"role": "tool", "tool_call_id": "x", "content": "second"},
        call('{"n":2}', "x"),
        {"role": "tool", "tool_call_id": "x", "content": "third"},
    ]
    found = done(saved(tmp_path, [{"messages": messages}]), "openai-chat")
    (request,) = records(found)
    ids = [c["id"] for m in request["messages"] for c in m.get("tool_calls", [])]
    assert len(set(ids)) == 3
    assert [m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"] == ids
    assert [m["content"] for m in request["messages"] if m["role"] == "tool"] == ["first", "second", "third"]


def test_ids_and_names_that_a_provider_refuses(tmp_path: Path) -> None:
    call = {"id": "functions.run:0", "type": "function", "function": {"name": "mcp.run", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.run:0", "content": "ok"},
    ]
    (request,) = records(done(saved(tmp_path, [{"messages": messages}]), "anthropic-messages"))
    use, result = request["messages"][1]["content"][0], request["messages"][2]["content"][0]
    assert use["id"] == result["tool_use_id"] == "functions_run_0"
    assert use["name"] == "mcp_run"


def test_unanswered_calls_and_orphans(tmp_path: Path) -> None:
    def call(id_: str) -> dict[str, Any]:
        body = {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [body]}

    messages = [
        {"role": "user", "content": "go"},
        {"role": "tool", "tool_call_id": "gone", "content": "from before"},
        call("a"),
        {"role": "user", "content": "stop"},
        call("b"),
    ]
    found = done(saved(tmp_path, [{"messages": messages}]), "openai-chat")
    (request,) = records(found)
    assert [m["role"] for m in request["messages"]] == ["user", "user", "assistant", "tool", "user", "assistant"]
    assert request["messages"][1]["content"] == "from before"
    assert request["messages"][-1]["tool_calls"][0]["id"] == "b"  # pending: whoever goes on answers it
    assert {what: n for what, n in found.losses.items() if "result" in what} == {
        "results without their call: carried as user messages": 1,
        "calls without a result: answered with a note": 1,
    }


def test_a_chat_that_starts_with_the_model_gets_a_first_user_message(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "assistant", "content": "Hello, how can I help?"}]
    found = done(saved(tmp_path, [{"messages": messages}]), "anthropic-messages")
    (request,) = records(found)
    assert [m["role"] for m in request["messages"]] == ["user", "assistant"]
    assert found.losses["no user message at the start: one was added"] == 1


def test_text_only_agents_keep_their_observations_as_user_messages() -> None:
    (request,) = records(done(SAMPLES / "mini-swe-agent.traj.json", "openai-chat"))
    roles = [m["role"] for m in request["messages"]]
    assert roles[:2] == ["system", "user"]
    assert set(roles[2::2]) == {"assistant"} and set(roles[3::2]) == {"user"}


def test_the_window_is_converted_not_what_left_it() -> None:
    original = read(str(SAMPLES / "axios-to-fetch.jsonl"), companions=False)
    found = done(SAMPLES / "axios-to-fetch.jsonl", "openai-chat")
    assert found.losses["blocks that had left the window"] == len(original.blocks) - len(original.live)
    assert found.losses["files of sub-agents"] == 1


def test_several_conversations(tmp_path: Path) -> None:
    path = SAMPLES / "support-chat.jsonl"
    count = len(read(str(path)).conversations)
    assert len(records(done(path, "anthropic-messages"))) == count > 1
    with pytest.raises(UsageError, match="conversations"):
        done(path, "codex")
    one = done(path, "claude-code", conversation=2)
    assert one.losses["other conversations of the file"] == count - 1
    with pytest.raises(UsageError, match="no conversation 9"):
        done(path, "codex", conversation=9)


def test_nothing_to_convert(tmp_path: Path) -> None:
    path = saved(tmp_path, [{"type": "summary", "summary": "a title", "leafUuid": "u"}])
    with pytest.raises(NothingFoundError):
        done(path, "openai-chat")


def test_unknown_target(source: Path) -> None:
    with pytest.raises(UsageError, match="openai-chatt"):
        done(source, "openai-chatt")


def test_the_same_input_gives_the_same_bytes(source: Path) -> None:
    for target in ("claude-code", "codex", "openai-chat"):
        assert done(source, target).data == done(source, target).data


def test_cleared_results_are_carried_as_the_model_sees_them(tmp_path: Path) -> None:
    base = {"isSidechain": False, "sessionId": "s", "cwd": "/w", "version": "2.1.0", "timestamp": NOW}
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    lines = [
        {**base, "type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "go"}},
        {
            **base,
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": {"role": "assistant", "id": "m", "content": [use]},
        },
        {
            **base,
            "type": "user",
            "uuid": "3",
            "parentUuid": "2",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "long"}]},
        },
        {
            **base,
            "type": "system",
            "subtype": "microcompact_boundary",
            "uuid": "4",
            "parentUuid": "3",
            "microcompactMetadata": {"trigger": "auto", "compactedToolIds": ["t1"]},
        },
    ]
    (request,) = records(done(saved(tmp_path, lines), "openai-chat"))
    assert request["messages"][2]["content"] == "[Old tool result content cleared]"


def test_a_second_text_that_begins_like_the_first_is_no_snapshot(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "Look"}, {"type": "text", "text": "Look closer"}]
    body = {"max_tokens": 1, "system": "s", "messages": [{"role": "user", "content": "x"}]}
    body["messages"].append({"role": "assistant", "content": content})  # type: ignore[attr-defined]
    out = tmp_path / "out.jsonl"
    out.write_bytes(done(saved(tmp_path, [body]), "claude-code").data)
    back = read(str(out))
    assert [back.blocks[n].text for n in back.live] == ["s", "x", "Look", "Look closer"]
