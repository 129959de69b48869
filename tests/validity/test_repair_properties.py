"""Whatever is broken: a repaired file is valid, a second repair changes nothing, and what was said stays.

The judge here is written from the rules alone and shares no code with ctxctl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.validity.check import check
from ctxctl.validity.repair import repair

HEAVY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

ids = st.sampled_from(["a", "b", "c", "d"])
text = st.sampled_from(["hello", "go on", "", "  \n", "\N{SNOWMAN} done", "x" * 50])


# -- chat --------------------------------------------------------------------------------------------------------------


def chat_call(names: list[str], said: str | None) -> dict[str, Any]:
    calls = [{"id": n, "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in names]
    return {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}


chat_message = st.one_of(
    st.builds(lambda t: {"role": "user", "content": t}, text),
    st.builds(chat_call, st.lists(ids, max_size=3), st.one_of(st.none(), text)),
    st.builds(lambda i, t: {"role": "tool", "tool_call_id": i, "content": t}, ids, text),
    st.builds(lambda t: {"role": "system", "content": t}, text),
)


def judge_chat(messages: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.discard(message["tool_call_id"])
            continue
        assert not waiting, "a call that is not answered right behind it"
        for call in message.get("tool_calls", ()):
            assert call["id"] not in seen
            seen.add(call["id"])
            waiting.add(call["id"])
        assert message.get("content") or message.get("tool_calls") or message["role"] == "system"
        if isinstance(message.get("content"), str) and message["role"] == "user":
            assert message["content"].strip()


def said(messages: list[dict[str, Any]]) -> list[str]:
    """What people and the model said, in order."""
    texts = [m.get("content") for m in messages if m["role"] in ("user", "assistant")]
    return [t for t in texts if isinstance(t, str) and t.strip() and not t.startswith("[")]


def mended(path: Path, name: str) -> bytes | None:
    """The bytes of a repaired file, after it was checked and repaired again."""
    before = path.read_bytes()
    try:
        with repair(str(path), format_name=name) as done:
            data = Path(done.path).read_bytes()
            assert done.after.valid, [f for f in done.after.findings if f.level == "error"]
            assert bool(done.repairs) == (data != before)
    except InputError as error:
        assert "nothing" in error.message or "no usable" in error.message
        return None
    assert path.read_bytes() == before
    again = path.with_name("again" + path.suffix)
    again.write_bytes(data)
    assert check(str(again), format_name=name).valid
    with repair(str(again), format_name=name) as second:
        assert second.repairs == () and Path(second.path).read_bytes() == data
    return data


@HEAVY
@given(st.lists(chat_message, min_size=1, max_size=12))
def test_chat_lines(tmp_path: Path, messages: list[dict[str, Any]]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(json.dumps(m).encode() + b"\n" for m in messages))
    data = mended(path, "openai-chat-message")
    if data is not None:
        kept = [json.loads(line) for line in data.splitlines()]
        judge_chat(kept)
        assert said(kept) == said(messages)


@HEAVY
@given(st.lists(st.lists(chat_message, min_size=1, max_size=8), min_size=1, max_size=3), st.booleans())
def test_chat_conversations(tmp_path: Path, conversations: list[Any], bare: bool) -> None:
    path = tmp_path / "t.jsonl"
    records = [c if bare else {"id": "x", "messages": c, "extra": 1.5} for c in conversations]
    path.write_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in records))
    data = mended(path, "openai-chat")
    if data is not None:
        for line, given_ in zip(data.splitlines(), conversations, strict=True):
            record = json.loads(line)
            kept = record if bare else record["messages"]
            judge_chat(kept)
            assert said(kept) == said(given_)
            assert bare or record["extra"] == 1.5


# -- content blocks ----------------------------------------------------------------------------------------------------

block_of_model = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, text),
    st.builds(lambda i: {"type": "tool_use", "id": i, "name": "f", "input": {}}, ids),
    st.builds(lambda s: {"type": "thinking", "thinking": s or "cut", "signature": s}, st.sampled_from(["", "sig"])),
)
block_of_user = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, text),
    st.builds(lambda i, t: {"type": "tool_result", "tool_use_id": i, "content": t}, ids, text),
)
messages_message = st.one_of(
    st.builds(lambda c: {"role": "assistant", "content": c}, st.lists(block_of_model, max_size=3)),
    st.builds(lambda c: {"role": "user", "content": c}, st.one_of(text, st.lists(block_of_user, max_size=3))),
)


def judge_blocks(messages: list[dict[str, Any]]) -> None:
    """Neighbours of one role are one message, as the provider has it."""
    merged: list[tuple[str, list[Any]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], list(blocks)))
    if merged:
        assert merged[0][0] == "user"
    seen: set[str] = set()
    waiting: list[str] = []
    for position, (role, blocks) in enumerate(merged, 1):
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if role == "user":
            # while nothing else has come in, parallel calls may still get theirs
            open_end = position == len(merged) and len(results) == len(blocks) < len(waiting)
            assert set(results) <= set(waiting) if open_end else sorted(results) == sorted(waiting)
            assert [b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results)
            waiting = []
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert len(set(calls)) == len(calls) and not seen & set(calls)
        seen |= set(calls)
        waiting = waiting + calls
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "thinking" or block["signature"]


@HEAVY
@given(st.lists(messages_message, min_size=1, max_size=10), st.sampled_from([None, 1, "\t"]))
def test_messages_document(tmp_path: Path, messages: list[dict[str, Any]], indent: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"system": "s", "max_tokens": 9, "messages": messages}, indent=indent))
    data = mended(path, "anthropic-messages")
    if data is not None:
        kept = json.loads(data)["messages"]
        judge_blocks(kept)
        if indent is not None:
            assert data.count(b"\n") > 3


# -- Claude Code -------------------------------------------------------------------------------------------------------


@st.composite
def sessions(draw: Any) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for n, message in enumerate(draw(st.lists(messages_message, min_size=1, max_size=10))):
        uuid = f"00000000-0000-4000-8000-{n:012d}"
        parent: Any = records[-1]["uuid"] if records else None
        fault = draw(st.integers(0, 30))
        if fault == 0:
            parent = "99999999-0000-4000-8000-000000000000"
        elif fault == 1:
            parent = uuid
        elif fault == 2 and records:
            uuid = records[0]["uuid"]
        response = {"id": f"m{n if draw(st.booleans()) else n - 1}"} if message["role"] == "assistant" else {}
        records.append(
            {
                "parentUuid": parent,
                "isSidechain": draw(st.integers(0, 12)) == 0,
                "type": message["role"],
                "message": {**message, **response},
                "uuid": uuid,
                "sessionId": "s",
                "timestamp": f"2026-01-01T00:00:{n:02d}Z",
            }
        )
    return records


@HEAVY
@given(sessions())
def test_claude_sessions(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in records))
    data = mended(path, "claude-code")
    if data is None:
        return
    kept = [json.loads(line) for line in data.splitlines()]
    known = {r["uuid"] for r in kept}
    assert all(r["parentUuid"] is None or r["parentUuid"] in known for r in kept)
    assert len(known) == len(kept) or len({r["uuid"] for r in records}) < len(records)
    chain: list[dict[str, Any]] = []
    for record in kept:
        assert record["parentUuid"] != record["uuid"]
        chain.append(record)
    rewound = len({r["parentUuid"] for r in chain}) < len(chain)
    if not rewound and not any(r["isSidechain"] for r in kept):
        judge_blocks(in_one_message(kept))


def in_one_message(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as they are sent: a call of a response that is written on several lines stands on the last of them."""
    sent: list[dict[str, Any]] = []
    for record in records:
        message = dict(record["message"])
        shown = {b["id"] for b in message["content"] if b["type"] == "tool_use"} if "id" in message else set()
        for earlier in sent:
            if earlier.get("id") is not None and earlier.get("id") == message.get("id"):
                earlier["content"] = [b for b in earlier["content"] if b.get("id") not in shown]
        sent.append(message)
    return sent


# -- bytes -------------------------------------------------------------------------------------------------------------


def damage(data: bytes, kind: int, at: int) -> bytes:
    at = at % max(1, len(data))
    piece = [b"\x00" * 5, b"\xff", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"}{", b"\\ud83d", b"17\n", b""][kind % 9]
    return data[:at] if kind == 8 else data[:at] + piece + data[at:]


@HEAVY
@given(
    st.lists(chat_message, min_size=2, max_size=6),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2000)), max_size=4),
)
def test_damaged_bytes(tmp_path: Path, messages: list[dict[str, Any]], faults: list[tuple[int, int]]) -> None:
    data = b"".join(json.dumps(m).encode() + b"\n" for m in messages)
    for kind, at in faults:
        data = damage(data, kind, at)
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    try:
        check(str(path), format_name="openai-chat-message")
    except InputError:
        return
    except Exception as error:  # an empty file
        assert type(error).__name__ == "NothingFoundError", error
        return
    fixed = mended(path, "openai-chat-message")
    if fixed is not None:
        assert fixed.endswith(b"\n") and b"\r" not in fixed and b"\x00" not in fixed
        for line in fixed.decode("utf-8", "strict").split("\n")[:-1]:
            assert isinstance(json.loads(line), dict)


def test_a_valid_file_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"role":"user","content":"hi"}\n{ "role":"assistant", "content":"yes" }\n')
    assert mended(path, "openai-chat-message") == path.read_bytes()


def test_nothing_would_be_left(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"role":"tool","tool_call_id":"x","content":"r"}\n')
    with pytest.raises(InputError, match="nothing"), repair(str(path)):
        pass
