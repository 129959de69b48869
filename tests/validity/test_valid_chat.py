"""The checker of compacted sessions finds what it is for: each rule broken on purpose in a small session."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from valid_chat import violations

NEWEST = "and now something long enough to be told apart from anything else"
Rows = list[dict[str, Any]]


def record(n: int, type_: str, content: Any, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": type_, "content": content}
    if type_ == "assistant":
        message["id"] = more.pop("id", f"m{n}")
    return {
        "parentUuid": f"u{n - 1}" if n > 1 else None,
        "isSidechain": False,
        "sessionId": "s",
        "type": type_,
        "uuid": f"u{n}",
        "message": message,
        **more,
    }


def claude() -> Rows:
    """A task, a pair of parallel calls on two lines, a second prompt, and an answer with reasoning and an open call."""
    return [
        record(1, "user", "the task"),
        record(2, "assistant", [{"type": "text", "text": "both at once"}], id="par"),
        record(3, "assistant", [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}], id="par"),
        record(4, "user", [{"type": "tool_result", "tool_use_id": "a", "content": "A"}]),
        record(5, "assistant", [{"type": "tool_use", "id": "b", "name": "Read", "input": {}}], id="par"),
        record(6, "user", [{"type": "tool_result", "tool_use_id": "b", "content": "B"}]),
        record(7, "user", NEWEST),
        record(8, "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s1"}], id="new"),
        record(9, "assistant", [{"type": "tool_use", "id": "c", "name": "Read", "input": {}}], id="new"),
    ]


def drop(n: int) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        del rows[n]
        if n < len(rows):
            rows[n]["parentUuid"] = rows[n - 1]["uuid"] if n else None

    return change


def content(n: int, value: Any) -> Callable[[Rows], None]:
    return lambda rows: rows[n]["message"].update(content=value)


def swap(rows: Rows) -> None:
    rows[0]["message"], rows[6]["message"] = rows[6]["message"], rows[0]["message"]


def again(rows: Rows) -> None:
    rows.append(record(10, "user", "the task"))


def dangling(rows: Rows) -> None:
    rows[4]["parentUuid"] = "nowhere"


def twice(rows: Rows) -> None:
    rows[4]["message"]["content"][0]["id"] = "a"
    rows[5]["message"]["content"][0]["tool_use_id"] = "a"


def assistant_first(rows: Rows) -> None:
    del rows[0]
    rows[0]["parentUuid"] = None


BROKEN: dict[str, tuple[str, Callable[[Rows], None]]] = {
    "result-without-call": ("V1", drop(2)),
    "call-without-result": ("V2", drop(5)),
    "ids-twice": ("V3", twice),
    "blank-text": ("V4", content(1, [{"type": "text", "text": " "}])),
    "empty-content": ("V4", content(1, [])),
    "thinking-changed": ("V5", content(7, [{"type": "thinking", "thinking": "hm!", "signature": "s1"}])),
    "thinking-lost": ("V5", drop(7)),
    "assistant-first": ("V6", assistant_first),
    "newest-changed": ("V8", content(6, "and now")),
    "newest-lost": ("V8", drop(6)),
    "newest-not-last": ("V8", again),
    "newest-told-again": ("V8", content(0, f"[summary] {NEWEST}")),
    "order": ("V9", swap),
    "dangling": ("V10", dangling),
}


def write(path: Path, rows: Rows) -> Path:
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return path


def test_nothing_to_say_of_the_session_itself(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", claude())
    assert violations(before, before, "claude-code", before.read_bytes()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule(name: str, tmp_path: Path) -> None:
    rule, change = BROKEN[name]
    before = write(tmp_path / "before.jsonl", claude())
    rows = claude()
    change(rows)
    found = violations(before, write(tmp_path / "after.jsonl", rows), "claude-code")
    assert any(line.startswith(f"{rule} ") for line in found), found


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("no LF", lambda data: data[:-1]),
        ("UTF-8", lambda data: data.replace(b"the task", b"the t\xffsk")),
        ("BOM", lambda data: b"\xef\xbb\xbf" + data),
        ("glued", lambda data: data.replace(b"}\n{", b"}{", 1)),
        ("surrogate", lambda data: data.replace(b"the task", b"the \\ud83d task")),
    ],
)
def test_bytes(name: str, change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", claude())
    after = tmp_path / "after.jsonl"
    after.write_bytes(change(before.read_bytes()))
    assert any(line.startswith("V10 ") for line in violations(before, after, "claude-code"))
    assert "V10 the input was changed" in violations(before, before, "claude-code", b"other")


CHAT: Rows = [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "x", "content": "1"},
    {"role": "assistant", "content": "done"},
]


@pytest.mark.parametrize(("gone", "rule"), [(0, "V7"), (1, "V6"), (2, "V1"), (3, "V2")])
def test_chat(gone: int, rule: str, tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", CHAT)
    assert violations(before, before, "openai-chat-message") == []
    after = write(tmp_path / "after.jsonl", [row for n, row in enumerate(CHAT) if n != gone])
    assert any(line.startswith(f"{rule} ") for line in violations(before, after, "openai-chat-message"))
