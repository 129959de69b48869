"""Random outcomes over generated, golden and handed sessions: what is written reads as the outcome."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxctl

HELPER = Path(__file__).parent / "claude_drafts.py"
spec = importlib.util.spec_from_file_location("claude_drafts", HELPER)
assert spec is not None and spec.loader is not None
drafts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drafts)

SHARED = Path(__file__).resolve().parents[3] / "shared"
GOLDEN = sorted((Path(__file__).parent / "golden" / "claude-code").glob("*.jsonl"))
REAL = sorted((SHARED / "transcripts" / "claude-code").glob("*.jsonl")) if SHARED.is_dir() else []
CASES = sorted((SHARED / "cases").glob("*/input.jsonl")) if SHARED.is_dir() else []
LAYOUTS: tuple[dict[str, Any], ...] = ({}, {"in_place": True}, {"keep_history": True})
UNSENDABLE = ("thinking without end", "early text")
NOT_PAIRED = ("edge_cases", "036-", "queued_system_messages")
"""Sessions that are no valid chat to begin with: what stays of them is not either."""


def named(path: Path) -> str:
    return path.parent.name if path.name == "input.jsonl" else path.stem


def check(path: Path, seed: int, tmp_path: Path) -> None:
    try:
        made = drafts.Rewritten(path)
    except ctxctl.CtxctlError:
        pytest.skip("not a session")
    if made.transcript.format != "claude-code" or not made.transcript.order:
        pytest.skip("no message of a Claude Code session")
    rng = random.Random(seed)
    outcome = made.outcome(rng)
    if not any(made.blocks[n].role == "assistant" or made.blocks[n].kind == "user_message" for n in outcome.live):
        return
    expected = [t for t in made.expected(outcome) if t not in UNSENDABLE]
    for options in LAYOUTS:
        data = made.write(outcome, **options)
        if not outcome and options:
            assert data == path.read_bytes()
            continue
        out = tmp_path / "out.jsonl"
        out.write_bytes(data)
        t = ctxctl.read(str(out), companions=False)
        cleared = "[Old tool result content cleared]"
        found = [cleared if n in t.cleared else t.blocks[n].text for n in t.live]
        assert drafts.own([x for x in found if x.strip()]) == expected, (seed, options)
        assert len(t.branches) == (len(made.transcript.branches) if options else 0)
        if not options:
            drafts.assert_linked(data)
            ids = [r["uuid"] for r in drafts.rows(data) if "uuid" in r]
            assert len(set(ids)) == len(ids)
            assert {r.get("sessionId", drafts.NEW_ID) for r in drafts.rows(data)} == {drafts.NEW_ID}
            assert not t.unreachable and t.compactions[-1].before == 9000
        if made.transcript.main == "main" and not made.transcript.cleared:
            records = drafts.resumed(data)
            if not any(b.get("type") in ("image", "document") for r in records for b in drafts.blocks(r)):
                assert drafts.own(drafts.texts(records)) == expected, (seed, options)
            if not named(path).startswith(NOT_PAIRED):
                drafts.assert_valid(records)


@pytest.mark.parametrize("path", GOLDEN, ids=named)
def test_golden_sessions(path: Path, tmp_path: Path) -> None:
    for seed in range(12):
        check(path, seed, tmp_path)


@pytest.mark.parametrize("path", REAL, ids=named)
def test_handed_sessions(path: Path, tmp_path: Path) -> None:
    for seed in range(12):
        check(path, seed, tmp_path)


@pytest.mark.parametrize("path", CASES, ids=named)
def test_handed_cases(path: Path, tmp_path: Path) -> None:
    for seed in range(6):
        check(path, seed, tmp_path)


TEXT = st.text(alphabet='ab \n"\\é😀{}[]:,', min_size=1, max_size=12).map(lambda t: "x" + t)


@st.composite
def sessions(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A session of a few exchanges, with reasoning, parallel calls in several lines or one, notes, helpers, and at
    times a compaction of its own."""
    records: list[dict[str, Any]] = []
    leaf: list[str | None] = [None]

    def put(type_: str, parent: str | None = None, **fields: Any) -> str:
        number = len(records) + 1
        id_ = f"5e551011-0000-4000-9000-{number:012d}"
        time = f"2026-03-01T08:{number // 60:02d}:{number % 60:02d}.000Z"
        above = parent if parent is not None else leaf[0]
        head = {"parentUuid": above, "isSidechain": False, "sessionId": "s", "type": type_}
        records.append(head | fields | {"uuid": id_, "timestamp": time})
        if not fields.get("isSidechain"):
            leaf[0] = id_
        return id_

    def say(role: str, content: Any, **fields: Any) -> str:
        message = {"role": role, "content": content, **fields.pop("message", {})}
        return put(role, message=message, **fields)

    for exchange in range(draw(st.integers(1, 4))):
        if exchange and draw(st.booleans()) and draw(st.booleans()):
            put("system", parent="", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
            records[-1]["parentUuid"] = None
            say("user", draw(TEXT), isCompactSummary=True)
        say("user", draw(TEXT))
        for turn in range(draw(st.integers(0, 3))):
            id_ = f"m{exchange}.{turn}"
            message = {"id": id_, "model": "claude-sonnet-4-5", "usage": {"input_tokens": 5, "output_tokens": 1}}
            content: list[dict[str, Any]] = []
            if draw(st.booleans()):
                content.append({"type": "thinking", "thinking": draw(TEXT), "signature": "c2ln"})
            if draw(st.booleans()):
                content.append({"type": "text", "text": draw(TEXT)})
            calls = [f"t{exchange}.{turn}.{n}" for n in range(draw(st.integers(0 if content else 1, 3)))]
            content += [{"type": "tool_use", "id": c, "name": "Bash", "input": {"command": draw(TEXT)}} for c in calls]
            own: dict[str, str] = {}
            if draw(st.booleans()):
                for block in content:
                    own[block.get("id", "")] = say("assistant", [block], message=message)
            else:
                own = dict.fromkeys((b.get("id", "") for b in content), say("assistant", content, message=message))
            for c in calls:
                if draw(st.booleans()):
                    put(draw(st.sampled_from(("progress", "system"))), parent=own[c], subtype="x", data={})
                block = {"type": "tool_result", "tool_use_id": c, "content": draw(TEXT)}
                above = leaf[0] if draw(st.booleans()) else own[c]
                say("user", [block], parent=above, toolUseResult={"stdout": "kept"})
        if draw(st.booleans()):
            put("user", isSidechain=True, agentId="h", message={"role": "user", "content": "helper"})
    return records


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=sessions(), seed=st.integers(0, 1 << 20))
def test_generated_sessions(records: list[dict[str, Any]], seed: int, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = [json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for r in records]
    path.write_bytes(b"".join(lines))
    check(path, seed, tmp_path)
