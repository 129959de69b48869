"""Any value in any place: a reader reports what it can't use and goes on, whatever format it reads."""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from ctxctl.errors import CtxctlError

FORMATS = ("anthropic-messages", "claude-code", "codex", "mini-swe-agent", "openai-chat", "openai-chat-message")
WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    [],
    {},
    [None],
    [[]],
    {"type": None},
    {"type": []},
    {"": {}},
]


def claude_lines(claude: Any) -> list[Any]:
    session = claude()
    session.user("the task")
    session.call("toolu_1", "Read", {"file_path": "/a"})
    session.result("toolu_1", [{"type": "text", "text": "one"}])
    session.assistant([{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "so"}])
    session.boundary(metadata={"preservedMessages": {"uuids": [session.uuid(4)]}, "preTokens": 90})
    session.summary("it was done")
    session.envelope("attachment", attachment={"type": "queued_command", "prompt": "soon"})
    session.user("next")
    session.put({"type": "last-prompt", "lastPrompt": "next", "leafUuid": session.leaf, "sessionId": "s"})
    return [json.loads(line) for line in session.lines]


def codex_lines(codex: Any) -> list[Any]:
    rollout = codex(base_instructions={"text": "be brief"})
    rollout.write("turn_context", {"model": "gpt-5-codex"})
    rollout.message("user", "the task")
    rollout.write("response_item", {"type": "reasoning", "summary": [{"text": "hm"}], "encrypted_content": "gAAA"})
    rollout.write("response_item", {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"})
    rollout.write("response_item", {"type": "function_call_output", "call_id": "c1", "output": "ok"})
    rollout.tokens((900, 100, 50), (900, 100, 50))
    rollout.write("compacted", {"message": "", "replacement_history": [{"type": "message", "role": "user"}]})
    rollout.write("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    return [json.loads(line) for line in rollout.lines]


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "done"},
]
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
TURNS = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
]


@pytest.fixture
def good(claude: Any, codex: Any) -> dict[str, list[Any]]:
    """The records of a small file of each format."""
    run = {"info": {"config": {"model": {"model_name": "m"}}}, "trajectory_format": "mini-swe-agent-1"}
    spent = {"role": "assistant", "content": "ls", "extra": {"response": {"usage": USAGE, "model": "m"}, "cost": 0.1}}
    return {
        "anthropic-messages": [
            {"model": "m", "max_tokens": 9, "system": "s", "tools": [{"name": "f"}], "messages": TURNS}
        ],
        "claude-code": claude_lines(claude),
        "codex": codex_lines(codex),
        "mini-swe-agent": [
            {**run, "messages": [*CHAT[:2], spent, {"role": "user", "content": "<returncode>0</returncode>"}]}
        ],
        "openai-chat": [{"messages": CHAT, "tools": [{"type": "function"}], "response": {"usage": USAGE}}] * 2,
        "openai-chat-message": CHAT,
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, item in inner for p in places(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


models = functools.cache(ctxctl.load_models)


def check(path: Path, data: bytes, format_: str | None) -> None:
    """Read, measure and write back; the sums of what is reported have to agree with each other."""
    path.write_bytes(data)
    table = models()
    try:
        found = ctxctl.analyze(str(path), table, ctxctl.AnalysisOptions(blocks=True, format_name=format_))
    except CtxctlError as error:
        assert error.exit_code in (3, 6) and error.message
        return
    assert found.rows is not None and found.composition is not None
    assert len({row.block for row in found.rows}) == len(found.rows) == found.blocks
    inside = Counter(row.kind for row in found.rows if row.in_context)
    assert inside == {kind: share.blocks for kind, share in found.composition.by_kind.items()}
    assert min([0, *(getattr(u, f) for u in found.transcript.usage for f in ("input", "output", "cache_read"))]) == 0
    usage = ctxctl.analyze(str(path), table, ctxctl.AnalysisOptions(reported_only=True, format_name=format_)).usage
    for name in ("input", "output", "cache_read", "cache_write"):
        assert getattr(usage, name) == getattr(found.usage, name), name
    assert b"".join(ctxctl.write(ctxctl.read(str(path), format_name=format_))) == data


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.mark.parametrize("forced", [True, False], ids=["forced", "found"])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_wrong_value_in_each_place(format_: str, forced: bool, good: Any, tmp_path: Path) -> None:
    """Every value of a good file, one at a time, replaced by one of another type."""
    records = good[format_]
    failed: dict[str, Any] = {}
    every = [p for p in places(records) if p]
    for number, place in enumerate(every):
        for new in ([] if number % 2 else {}, WRONG[number % len(WRONG)]):
            data = lines(replaced(records, place, new))
            try:
                check(tmp_path / "t.jsonl", data, format_ if forced else None)
            except Exception as error:  # collected, so that one run shows all of them
                failed.setdefault(f"{type(error).__name__}: {error}"[:80], (place, new))
    assert failed == {}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_forced_format_on_anything(format_: str, good: Any, tmp_path: Path) -> None:
    odd = [
        *WRONG,
        {"messages": None},
        {"messages": {}},
        {"messages": [None, 1, "x", []]},
        {"type": "user"},
        {"role": []},
    ]
    failed: dict[str, Any] = {}
    for records in (*([value] for value in odd), *good.values()):
        try:
            check(tmp_path / "t.jsonl", lines(records), format_)
        except Exception as error:
            failed.setdefault(f"{type(error).__name__}: {error}"[:80], str(records)[:80])
    assert failed == {}


@pytest.mark.parametrize("format_", FORMATS)
def test_random_damage(format_: str, good: Any, tmp_path: Path) -> None:
    dice = random.Random(20_260_301)
    whole = lines(good[format_])
    failed: dict[str, Any] = {}
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 5)):
            at = dice.randrange(len(data))
            match dice.randrange(4):
                case 0:
                    data[at] = dice.randrange(256)
                case 1:
                    del data[at : at + dice.randrange(1, 200)]
                case 2:
                    data[at:at] = bytes(dice.randrange(1, 40))
                case 3:
                    data[at:at] = whole[at : at + dice.randrange(1, 300)]
        try:
            check(tmp_path / "t.jsonl", bytes(data), None)
        except Exception as error:
            failed.setdefault(f"{type(error).__name__}: {error}"[:80], bytes(data))
    assert failed == {}
