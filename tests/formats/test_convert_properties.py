"""Conversions over generated conversations: what is there afterwards, and whether it may be sent."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.errors import NothingFoundError
from ctxctl.formats import read
from ctxctl.formats.convert.run import convert

TARGETS = ("anthropic-messages", "openai-chat", "openai-chat-message", "claude-code", "codex", "mini-swe-agent")
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20).filter(lambda t: t.strip() != "")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    """A Messages request that may be sent."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXT)}]
    count = 0
    for _ in range(draw(st.integers(1, 5))):
        blocks: list[dict[str, Any]] = []
        if draw(st.booleans()):
            blocks.append({"type": "thinking", "thinking": draw(TEXT), "signature": "c2ln"})
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            count += 1
            arguments = draw(st.dictionaries(TEXT, JSON, max_size=3))
            calls.append({"type": "tool_use", "id": f"call-{count}", "name": draw(NAME), "input": arguments})
        if not calls or draw(st.booleans()):
            blocks.append({"type": "text", "text": draw(TEXT)})
        messages.append({"role": "assistant", "content": [*blocks, *calls]})
        answers: list[dict[str, Any]] = []
        for call in calls:
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call["id"]}
            result["content"] = draw(TEXT)
            if draw(st.booleans()):
                result["is_error"] = True
            answers.append(result)
        if not calls or draw(st.booleans()):
            answers.append({"type": "text", "text": draw(TEXT)})
        messages.append({"role": "user", "content": answers})
    return {"max_tokens": 1, "system": [{"type": "text", "text": draw(TEXT)}], "messages": messages}


def converted(data: bytes, target: str, source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("in.traj.json" if source == "mini-swe-agent" else "in.jsonl")
        path.write_bytes(data)
        return convert(str(path), target, now="2026-05-01T08:00:00.000Z", format_name=source).data


SAID = {"memory_injection": "user_message", "summary": "user_message"}


def blocks_of(data: bytes, name: str) -> list[tuple[str, Any, str | None]]:
    """Kind, text (of a call its name and arguments) and call id of each block, without thinking."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("in.traj.json" if name == "mini-swe-agent" else "in.jsonl")
        path.write_bytes(data)
        found = read(str(path), format_name=name)
    rows: list[tuple[str, Any, str | None]] = []
    for block in found.blocks:
        text: Any = block.text
        if block.kind == "thinking":
            continue
        if block.kind == "tool_call":
            assert block.tool_name is not None
            text = (block.tool_name, json.loads(block.text.removeprefix(block.tool_name)))
        rows.append((SAID.get(block.kind, block.kind), text, block.call_id))
    return rows


def roles_of(rows: list[tuple[str, Any, str | None]], target: str) -> list[tuple[str, Any, str | None]]:
    """Rows as a target reads back: Claude Code has no system prompt, mini-swe-agent no later user."""
    if target == "claude-code":
        return [("user_message" if kind == "system" else kind, text, id_) for kind, text, id_ in rows]
    if target == "mini-swe-agent":
        kinds = {"tool_result": "user_message"}
        return [(kinds.get(kind, kind) if id_ is None else kind, text, id_) for kind, text, id_ in rows]
    return rows


@pytest.mark.parametrize("target", TARGETS)
@SLOW
@given(request_=conversations())
def test_what_is_written_reads_back_as_the_same_blocks(target: str, request_: dict[str, Any]) -> None:
    data = json.dumps(request_).encode()
    there = converted(data, target, "anthropic-messages")
    assert roles_of(blocks_of(there, target), target) == roles_of(blocks_of(data, "anthropic-messages"), target)


@pytest.mark.parametrize("target", TARGETS)
@SLOW
@given(request_=conversations())
def test_there_and_back(target: str, request_: dict[str, Any]) -> None:
    data = json.dumps(request_).encode()
    back = converted(converted(data, target, "anthropic-messages"), "anthropic-messages", target)
    one, other = (roles_of(blocks_of(d, "anthropic-messages"), target) for d in (data, back))
    if target == "mini-swe-agent":  # later users are observations there, and come back as users
        one, other = ([(("user_message" if i is None else k), t, i) for k, t, i in rows] for rows in (one, other))
    assert one == other


@pytest.mark.parametrize("target", ["claude-code", "anthropic-messages"])
@SLOW
@given(request_=conversations())
def test_signed_thinking_is_kept_as_it_is(target: str, request_: dict[str, Any]) -> None:
    data = json.dumps(request_).encode()
    back = converted(converted(data, target, "anthropic-messages"), "anthropic-messages", target)

    def thinking(request: dict[str, Any]) -> list[Any]:
        contents = [m["content"] for m in request["messages"] if isinstance(m["content"], list)]
        return [b for content in contents for b in content if b["type"] == "thinking"]

    assert thinking(json.loads(back)) == thinking(request_)


# -- validity: written from the rules V1-V7 of valid chats, not from the writers ---------------------------------------

WILD_CALL = st.fixed_dictionaries({"name": st.sampled_from(["run", "bad.name", ""])}).map(
    lambda d: {**d, "arguments": "{}"}
)


@st.composite
def wild_chats(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chat messages in any order, with ids that are missing, repeated, unknown or odd."""
    ids = st.sampled_from([None, "a", "b", "c:0", "c_0"])
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 8))):
        role = draw(st.sampled_from(["system", "user", "assistant", "tool"]))
        message: dict[str, Any] = {"role": role, "content": draw(st.sampled_from(["", " \n", "text", "more", None]))}
        if role == "tool":
            message["tool_call_id"] = draw(ids)
        if role == "assistant":
            message["tool_calls"] = [
                {"id": draw(ids), "type": "function", "function": draw(WILD_CALL)}
                for _ in range(draw(st.integers(0, 3)))
            ]
            message["reasoning_content"] = draw(st.sampled_from([None, "hm"]))
        messages.append(message)
    return messages


def check_chat(messages: list[dict[str, Any]]) -> None:
    spoken = [m for m in messages if m["role"] != "system"]
    assert spoken[0]["role"] == "user"
    seen: set[str] = set()
    answered: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            assert message["tool_call_id"] not in answered
            answered.add(message["tool_call_id"])
            continue
        assert not waiting, "a call is not answered right behind it"
        calls = [c["id"] for c in message.get("tool_calls", [])]
        assert len(set(calls)) == len(calls) and not seen & set(calls)
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
        seen |= set(calls)
        waiting = calls
        content = message["content"]
        if not calls and not message.get("reasoning_content"):
            assert content and (not isinstance(content, str) or content.strip())
    assert not waiting or messages[-1].get("tool_calls")


def check_request(request: dict[str, Any]) -> None:
    messages = request["messages"]
    assert messages[0]["role"] == "user"
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert blocks
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert results == waiting, number
        assert not results or message["role"] == "user"
        assert all(b["text"].strip() for b in blocks if b["type"] == "text")
        calls = [b for b in blocks if b["type"] == "tool_use"]
        assert not calls or message["role"] == "assistant"
        for call in calls:
            assert call["id"].replace("-", "").replace("_", "").isalnum() and call["id"] not in seen
            assert isinstance(call["input"], dict)
            assert call["name"] and all(c.isalnum() or c in "_-" for c in call["name"])
            seen.add(call["id"])
        waiting = [c["id"] for c in calls]
    assert not waiting or messages[-1]["role"] == "assistant"


@SLOW
@given(messages=wild_chats())
def test_whatever_comes_in_a_valid_chat_goes_out(messages: list[dict[str, Any]]) -> None:
    data = json.dumps({"messages": messages}).encode()
    try:
        chat = converted(data, "openai-chat", "openai-chat")
    except NothingFoundError:
        return
    check_chat(json.loads(chat)["messages"])
    check_request(json.loads(converted(data, "anthropic-messages", "openai-chat")))
    assert converted(chat, "openai-chat", "openai-chat") == chat


@SLOW
@given(messages=wild_chats())
def test_sessions_of_agents_are_chats_too(messages: list[dict[str, Any]]) -> None:
    data = json.dumps({"messages": messages}).encode()
    for target in ("claude-code", "codex"):
        try:
            session = converted(data, target, "openai-chat")
            check_request(json.loads(converted(session, "anthropic-messages", target)))
        except NothingFoundError:
            continue
        lines = [json.loads(line) for line in session.splitlines()]
        assert all(isinstance(line, dict) for line in lines)


def test_parsers_of_others_read_what_is_written(tmp_path: Path) -> None:
    """`langchain_core` takes chat and Messages apart into the calls that were written."""
    try:
        from langchain_core.messages import convert_to_messages
    except ImportError:
        print("SKIPPED: langchain_core is not installed")
        pytest.skip("langchain_core is not installed")
    sample = Path(__file__).parents[2] / "sample_transcripts" / "axios-to-fetch.jsonl"
    for target in ("openai-chat", "anthropic-messages"):
        request = json.loads(convert(str(sample), target, now="2026-05-01T08:00:00.000Z").data)
        written = []
        for message in request["messages"]:
            for call in message.get("tool_calls") or []:
                body = call["function"]
                written.append((call["id"], body["name"], json.loads(body["arguments"])))
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] == "tool_use":
                    written.append((block["id"], block["name"], block["input"]))
        found = convert_to_messages(request["messages"])
        calls = [(c["id"], c["name"], c["args"]) for m in found for c in getattr(m, "tool_calls", [])]
        if target == "openai-chat":
            assert calls == written
        else:  # its Messages blocks stay in the content
            blocks = [b for m in found if isinstance(m.content, list) for b in m.content if b["type"] == "tool_use"]
            assert calls == written or [(b["id"], b["name"], b["input"]) for b in blocks] == written
