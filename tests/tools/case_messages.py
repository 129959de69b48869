"""What a compacted session sends, read without ctxctl, and a check of rules V1-V4, V6 and V10 of the handed cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def case(number: str, name: str = "input.jsonl") -> Path:
    """A file of a handed case."""
    (found,) = CASES.glob(f"{number}-*/{name}")
    return found


def lines(source: Path | bytes) -> list[dict[str, Any]]:
    """The records: strict UTF-8, LF at each end, one object a line (V10)."""
    data = source if isinstance(source, bytes) else source.read_bytes()
    assert data.endswith(b"\n") and b"\r" not in data and b"\x00" not in data and not data.startswith(b"\xef\xbb\xbf")
    found = [json.loads(line) for line in data.decode("utf-8", "strict").split("\n")[:-1]]
    assert all(isinstance(record, dict) for record in found)
    json.dumps(found, ensure_ascii=False).encode()  # no lone surrogate
    return found


def said(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The main-thread messages after the last compaction, in the order of the file."""
    cut = max((n for n, r in enumerate(records) if r.get("subtype") == "compact_boundary"), default=-1)
    rows = [r for r in records[cut + 1 :] if r.get("type") in ("user", "assistant")]
    return [r for r in rows if not r.get("isSidechain")]


def linked(records: list[dict[str, Any]]) -> None:
    """Each record hangs on one of the file, no id is there twice, and from the newest message the chain leads to the
    first: only a result beside a parallel call may hang beside it."""
    by_id = {r["uuid"]: r for r in records if "uuid" in r}
    assert len(by_id) == sum("uuid" in r for r in records)
    assert all(r["parentUuid"] in by_id for r in records if r.get("parentUuid")), "V10: a dangling parent"
    rows = said(records)
    at: dict[str, Any] | None = rows[-1]
    walked: list[str] = []
    while at is not None:
        assert at["uuid"] not in walked, "a cycle"
        walked.append(at["uuid"])
        at = by_id.get(at.get("parentUuid") or "")
    missed = [r for r in rows if r["uuid"] not in walked]
    assert all(kind == "result" for r in missed for _, kind, _ in parts(r["message"]))


Part = tuple[str, str, str]
"""role, kind, and text or id of a content block."""


def parts(message: dict[str, Any]) -> list[Part]:
    """What a message holds, of a chat or of Messages."""
    role, content = message["role"], message.get("content")
    found: list[Part] = []
    if role == "tool":
        return [("tool", "result", message["tool_call_id"])]
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []:
        kind = block.get("type")
        if kind == "tool_use":
            found.append((role, "call", block["id"]))
        elif kind == "tool_result":
            found.append((role, "result", block["tool_use_id"]))
        elif kind == "text":
            found.append((role, "text", block["text"]))
        else:
            found.append((role, kind, json.dumps(block)))
    found += [(role, "call", call["id"]) for call in message.get("tool_calls") or ()]
    return found


def valid(messages: list[dict[str, Any]]) -> None:
    """V1-V4 and V6: consecutive records of one response are one message, as they are sent."""
    merged: list[tuple[str, list[Part]]] = []
    for message in messages:
        role = "user" if message["role"] == "tool" else message["role"]
        here = parts(message)
        assert here, f"V4: an empty message: {message}"
        assert all(text.strip() for _, kind, text in here if kind == "text"), "V4: blank text"
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(here)
        else:
            merged.append((role, list(here)))
    spoken = [role for role, _ in merged if role != "system"]
    assert not spoken or spoken[0] == "user", "V6"
    open_calls: list[str] = []
    seen: set[tuple[str, str]] = set()
    for at, (role, here) in enumerate(merged):
        ids = [(kind, id_) for _, kind, id_ in here if kind in ("call", "result")]
        assert not seen & set(ids) and len(set(ids)) == len(ids), "V3"
        seen.update(ids)
        results = [id_ for kind, id_ in ids if kind == "result"]
        if open_calls or results:
            assert role == "user" and sorted(results) == sorted(open_calls), f"V1, V2: {results} for {open_calls}"
        open_calls = [id_ for kind, id_ in ids if kind == "call"] if role == "assistant" else []
        assert not open_calls or role == "assistant"
        if open_calls and at == len(merged) - 1:
            return  # pending


def messages_of(source: Path) -> list[dict[str, Any]]:
    records = lines(source)
    if any("message" in r for r in records):
        linked(records)
        return [r["message"] for r in said(records)]
    return records


def newest_user(messages: list[dict[str, Any]]) -> str:
    said = [text for m in messages for role, kind, text in parts(m) if (role, kind) == ("user", "text")]
    return said[-1]
