"""The sample transcripts: written by a script, the same bytes each time, and consistent in themselves."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_transcripts"
MAIN = SAMPLES / "axios-to-fetch.jsonl"
HELPERS = sorted((SAMPLES / "axios-to-fetch" / "subagents").glob("agent-*.jsonl"))
CACHE_STEP = 128


def lines(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    assert raw.endswith(b"\n")
    return [json.loads(line) for line in raw[:-1].split(b"\n")]


def blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record.get("message", {}).get("content")
    return content if isinstance(content, list) else []


def calls(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per model call: the usage of its last line."""
    merged: dict[str, dict[str, Any]] = {}
    for record in records:
        if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
            merged[record["message"]["id"]] = record["message"]["usage"]
    return list(merged.values())


def prompt_size(usage: dict[str, int]) -> int:
    return usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]


def test_the_script_writes_what_is_committed(tmp_path: Path) -> None:
    script = ROOT / "tests" / "tools" / "make_samples.py"
    subprocess.run([sys.executable, "-B", str(script), str(tmp_path)], check=True, timeout=60)
    made = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    kept = {p.relative_to(SAMPLES).as_posix(): p.read_bytes() for p in SAMPLES.rglob("*") if p.is_file()}
    assert sorted(made) == sorted(kept)
    assert [name for name in made if made[name] != kept[name]] == []


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.jsonl")), ids=lambda p: p.name)
def test_every_line_is_compact_json(path: Path) -> None:
    for line, record in zip(path.read_bytes().split(b"\n"), lines(path), strict=False):
        assert json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() == line


@pytest.mark.parametrize("path", [MAIN, *HELPERS], ids=lambda p: p.stem)
def test_claude_chain_and_calls(path: Path) -> None:
    seen: set[str] = set()
    pending: dict[str, str] = {}
    roots = 0
    for record in lines(path):
        if "uuid" in record:
            parent = record["parentUuid"]
            roots += parent is None
            assert parent is None or parent in seen
            assert record.get("logicalParentUuid", parent) in {parent, *seen}
            assert record["uuid"] not in seen
            seen.add(record["uuid"])
        for block in blocks(record):
            if block["type"] == "tool_use":
                pending[block["id"]] = record["uuid"]
            elif block["type"] == "tool_result":
                assert record["sourceToolAssistantUUID"] == pending.pop(block["tool_use_id"]) == record["parentUuid"]
    assert not pending
    assert roots == (2 if path == MAIN else 1)


@pytest.mark.parametrize("path", [MAIN, *HELPERS], ids=lambda p: p.stem)
def test_claude_usage(path: Path) -> None:
    records = lines(path)
    lowest: dict[str, int] = {}
    for record in records:
        if record["type"] == "assistant":
            usage = record["message"]["usage"]
            assert usage["output_tokens"] >= lowest.get(record["message"]["id"], 0)
            lowest[record["message"]["id"]] = usage["output_tokens"]
    used = calls(records)
    falls = 0
    for before, after in pairwise(used):
        if prompt_size(after) < prompt_size(before):
            falls += 1
            continue
        assert prompt_size(after) > prompt_size(before) + before["output_tokens"]
        assert after["cache_read_input_tokens"] == prompt_size(before) - before["input_tokens"]
    assert falls == (1 if path == MAIN else 0)


def test_claude_story() -> None:
    records = lines(MAIN)
    assert MAIN.stat().st_size < 460_000
    boundary = next(i for i, r in enumerate(records) if r.get("subtype") == "compact_boundary")
    assert records[boundary + 1]["isCompactSummary"] is True
    used = calls(records[:boundary])
    last = used[-1]
    assert records[boundary]["compactMetadata"]["trigger"] == "manual"
    pre = records[boundary]["compactMetadata"]["preTokens"]
    assert 0 < pre - prompt_size(last) - last["output_tokens"] < 10
    added = [b - a for a, b in zip([0, *map(prompt_size, used)], map(prompt_size, used), strict=False)]
    spikes = [i + 1 for i in range(4, len(added)) if added[i] > 3 * sum(added[i - 4 : i]) / 4]
    assert spikes == [len(used)]
    runs = [b["input"]["command"] for r in records for b in blocks(r) if b.get("name") == "Bash"]
    assert max(runs.count(command) for command in runs) == 5
    assert sum(r.get("message", {}).get("model") == "<synthetic>" for r in records) == 1


def test_subagent_is_linked() -> None:
    (path,) = HELPERS
    meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    results = {b["tool_use_id"]: r for r in lines(MAIN) for b in blocks(r) if b["type"] == "tool_result"}
    agent = results[meta["toolUseId"]]["toolUseResult"]
    records = lines(path)
    assert {r["agentId"] for r in records} == {agent["agentId"]} == {path.stem.removeprefix("agent-")}
    assert {r["sessionId"] for r in records} == {lines(MAIN)[0]["sessionId"]}
    last = calls(records)[-1]
    assert agent["totalTokens"] == prompt_size(last) + last["output_tokens"]
    assert agent["totalToolUseCount"] == sum(b["type"] == "tool_use" for r in records for b in blocks(r))


def test_codex_totals() -> None:
    records = lines(SAMPLES / "codex-rollout.jsonl")
    counts = [r["payload"]["info"] for r in records if r["payload"].get("type") == "token_count"]
    assert counts[0] is None
    counts = counts[1:]
    total = dict.fromkeys(counts[0]["last_token_usage"], 0)
    repeats = 0
    for before, info in zip([None, *counts], counts, strict=False):
        if info == before:
            repeats += 1
            continue
        last = info["last_token_usage"]
        total = {key: total[key] + last[key] for key in total}
        assert info["total_token_usage"] == total
        assert last["total_tokens"] == last["input_tokens"] + last["output_tokens"]
        assert last["cached_input_tokens"] <= last["input_tokens"]
        assert last["cached_input_tokens"] % CACHE_STEP == 0
        assert last["reasoning_output_tokens"] <= last["output_tokens"]
    assert repeats == 1
    assert sum(r["type"] == "compacted" and bool(r["payload"]["replacement_history"]) for r in records) == 1
    made = [r["payload"]["call_id"] for r in records if r["payload"].get("type", "").endswith("_call")]
    answered = [r["payload"]["call_id"] for r in records if r["payload"].get("type", "").endswith("_call_output")]
    assert sorted(made) == sorted(answered)


def test_chat_calls_are_answered() -> None:
    chats = lines(SAMPLES / "support-chat.jsonl")
    assert len(chats) == 3
    for chat in chats:
        known = {t["function"]["name"] for t in chat["tools"]}
        open_calls: list[str] = []
        for message in chat["messages"]:
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
                continue
            assert not open_calls
            for call in message.get("tool_calls", []):
                assert message["content"] is None and call["function"]["name"] in known
                json.loads(call["function"]["arguments"])
                open_calls.append(call["id"])


def test_anthropic_request() -> None:
    request = json.loads((SAMPLES / "anthropic-request.json").read_bytes())
    messages = request["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * 3 + ["user"]
    for asked, answer in zip(messages[1::2], messages[2::2], strict=True):
        wanted = [b["id"] for b in asked["content"] if b["type"] == "tool_use"]
        assert [b["tool_use_id"] for b in answer["content"] if b["type"] == "tool_result"] == wanted
    image = base64.b64decode(messages[0]["content"][0]["source"]["data"])
    assert image[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", image[16:24]) == (64, 48)
    assert "<preserve>" in messages[0]["content"][1]["text"]
    assert any(b.get("is_error") for m in messages for b in m["content"])


def test_mini_swe_costs_follow_prices() -> None:
    trajectory = json.loads((SAMPLES / "mini-swe-agent.traj.json").read_bytes())
    used = [m["extra"]["response"]["usage"] for m in trajectory["messages"] if "extra" in m]
    for usage in used:
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        prompt = ((usage["prompt_tokens"] - cached) * 2 + cached * 0.2) / 1e6
        completion = usage["completion_tokens"] * 12 / 1e6
        assert usage["cost_details"]["upstream_inference_prompt_cost"] == pytest.approx(prompt)
        assert usage["cost_details"]["upstream_inference_completions_cost"] == pytest.approx(completion)
        assert usage["cost"] == pytest.approx(prompt + completion)
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    stats = trajectory["info"]["model_stats"]
    assert stats["api_calls"] == len(used) == 10
    assert stats["instance_cost"] == pytest.approx(sum(u["cost"] for u in used))
