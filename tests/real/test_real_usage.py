"""Real sessions: what was spent and how full the window is, against a count of our own from the format's rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import real_readers as readers

Measured = Callable[[Path], Any]
TRANSCRIPTS = readers.TRANSCRIPTS
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the handed transcripts are not here")

CLAUDE = [*readers.paths("claude-code"), *readers.paths("gemini")]
CLAUDE = [p for p in CLAUDE if p.suffix == ".jsonl"]
CODEX = [p for p in readers.paths("codex") if p.suffix == ".jsonl"]
MINI = readers.paths("mini-swe-agent")
CHATS = [*readers.paths("openai-chat"), *readers.paths("message-per-line")]


def name(path: Path) -> str:
    return path.name[:40]


def picked(usage: Any) -> dict[str, int]:
    return {key: usage[key] for key in ("input", "output", "cache_read", "cache_write", "requests")}


@pytest.mark.parametrize("path", CLAUDE, ids=name)
def test_claude_usage_and_context(path: Path, measured: Measured) -> None:
    result, own = measured(path), readers.claude_calls(path)
    assert result["transcript"]["format"] == "claude-code"
    assert picked(result["usage"]) == own.total()
    assert result["context"]["reported"] == (own.context or None)
    main = [key for key, side in own.threads.items() if not side]
    assert result["transcript"]["turns"] == len(main)
    assert result["transcript"]["compactions"] == own.boundaries.get("compact_boundary", 0)
    kinds = [c["kind"] for c in result["compactions"]]
    assert kinds.count("micro") == own.boundaries.get("microcompact_boundary", 0)
    assert kinds.count("full") == own.boundaries.get("compact_boundary", 0)
    threads = result["usage"]["by_thread"]
    mine = threads.pop("main", None) or (threads.popitem()[1] if threads else None)
    if mine is not None:
        assert picked(mine) == own.total(side=False)
    assert sum(t["total"] for t in threads.values()) == sum(
        v for key, v in own.total(side=True).items() if key != "requests"
    )


@pytest.mark.parametrize("path", CLAUDE, ids=name)
def test_claude_records_and_messages(path: Path, measured: Measured) -> None:
    result, records = measured(path)["transcript"], [r for _, r in readers.objects(path)]
    assert result["records"] == len(records)
    said = [r for r in records if readers.is_answer(r)]
    heard = [
        r
        for r in records
        if r.get("type") == "user" and isinstance(r.get("message"), dict) and "content" in r["message"]
    ]
    side = sum(1 for r in said + heard if r.get("isSidechain") is True)
    main = {"user": len(heard), "assistant": len(said)}
    if 0 < side < len(said + heard):
        main = {k: sum(1 for r in rs if not r.get("isSidechain")) for k, rs in (("user", heard), ("assistant", said))}
        assert result["messages"]["sidechain"] == side
    assert result["messages"]["main"] == main
    assert result["errors"] == sum(1 for r in records if r.get("type") == "assistant" and not readers.is_answer(r))


def test_the_sum_over_lines_would_be_wrong() -> None:
    """The rule matters: adding up lines instead of responses at least doubles a real session."""
    path = max(CLAUDE, key=lambda p: p.stat().st_size)
    naive = sum(
        r["message"].get("usage", {}).get("cache_read_input_tokens", 0)
        for _, r in readers.objects(path)
        if readers.is_answer(r)
    )
    assert naive > 1.5 * readers.claude_calls(path).total()["cache_read"]


@pytest.mark.parametrize("path", CODEX, ids=name)
def test_codex_usage_and_context(path: Path, measured: Measured) -> None:
    result, events = measured(path), readers.codex_counts(path)
    assert result["transcript"]["format"] == "codex"
    assert result["transcript"]["records"] == len(readers.objects(path))
    usage = picked(result["usage"])
    if not events:
        assert usage == dict.fromkeys(usage, 0) and result["context"]["reported"] is None
        return
    total, last = events[-1]["total_token_usage"], events[-1]["last_token_usage"]
    cached = total["cached_input_tokens"]
    assert usage == {
        "input": total["input_tokens"] - cached,
        "output": total["output_tokens"],
        "cache_read": cached,
        "cache_write": 0,
        "requests": len(events),
    }
    assert result["usage"]["reasoning"] == total["reasoning_output_tokens"]
    assert result["usage"]["total"] == total["input_tokens"] + total["output_tokens"]
    assert result["context"]["reported"] == last["total_tokens"]
    assert result["transcript"]["turns"] == len(events)
    if events[-1].get("model_context_window"):
        assert result["window"] == {"tokens": events[-1]["model_context_window"], "source": "transcript"}
    assert [row["tokens"] for row in result["pressure"]] == [e["last_token_usage"]["total_tokens"] for e in events]


@pytest.mark.parametrize("path", CODEX, ids=name)
def test_codex_prompts(path: Path, measured: Measured) -> None:
    """What a human typed stands in the events; what the client put in does not."""
    events = [r["payload"] for _, r in readers.objects(path) if r.get("type") == "event_msg"]
    typed = [e for e in events if e.get("type") == "user_message" and e.get("kind", "plain") == "plain"]
    if typed:
        assert measured(path)["transcript"]["exchanges"] == len(typed)


@pytest.mark.parametrize("path", MINI, ids=name)
def test_mini_swe_agent_usage_and_cost(path: Path, measured: Measured) -> None:
    result, run = measured(path), json.loads(path.read_bytes())
    messages = run["messages"] if isinstance(run, dict) else run
    answers = [m for m in messages if m["role"] == "assistant"]
    usages = [m["extra"]["response"]["usage"] for m in answers if m.get("extra", {}).get("response")]
    cached = [(u.get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for u in usages]
    assert result["transcript"]["format"] == "mini-swe-agent" and result["transcript"]["turns"] == len(answers)
    usage = picked(result["usage"])
    assert usage == {
        "input": sum(u["prompt_tokens"] for u in usages) - sum(cached),
        "output": sum(u["completion_tokens"] for u in usages),
        "cache_read": sum(cached),
        "cache_write": 0,
        "requests": len(usages),
    }
    assert result["context"]["reported"] == (usages[-1]["prompt_tokens"] if usages else None)
    assert [row["tokens"] for row in result["pressure"]] == [u["prompt_tokens"] for u in usages] or not usages
    if isinstance(run, dict):
        stated = run["info"]["model_stats"]
        assert result["usage"]["recorded_cost"] == pytest.approx(stated["instance_cost"])
        assert result["transcript"]["turns"] == stated["api_calls"]
    else:
        assert result["usage"]["recorded_cost"] is None
    assert result["transcript"]["messages"]["main"]["user"] == sum(1 for m in messages if m["role"] == "user")
    kinds = {k: v["blocks"] for k, v in result["composition_all"]["by_kind"].items()}
    assert kinds["system"] == 1 and kinds["assistant"] == len(answers)
    assert kinds["user_message"] == 1 and result["transcript"]["exchanges"] == 1


@pytest.mark.parametrize("path", CHATS, ids=name)
def test_chat_messages(path: Path, measured: Measured) -> None:
    result, lines = measured(path), [r for _, r in readers.objects(path)]
    messages = [m for line in lines for m in line.get("messages", [line])]
    roles = [m["role"] for m in messages]
    assert result["transcript"]["records"] == len(lines)
    assert result["transcript"]["messages"]["main"] == {
        "user": roles.count("user"),
        "assistant": roles.count("assistant"),
    }
    assert result["transcript"]["turns"] == roles.count("assistant")
    kinds = {k: v["blocks"] for k, v in result["composition_all"]["by_kind"].items()}
    assert kinds.get("system", 0) == roles.count("system")
    assert kinds.get("tool_result", 0) == roles.count("tool")
    assert kinds.get("tool_call", 0) == sum(len(m.get("tool_calls") or []) for m in messages)
    assert kinds["assistant"] == sum(1 for m in messages if m["role"] == "assistant" and m.get("content"))
    assert result["usage"]["requests"] == 0 and result["context"]["reported"] is None
    conversations = [line for line in lines if "messages" in line]
    assert [c["messages"] for c in result["conversations"]] == [len(c["messages"]) for c in conversations]


# -- files of formats that are not read ----------------------------------------------------------------------------

UNREAD = {
    "aider": "aider",
    "cline": "cline",
    "gemini": "gemini",
    "inspect": "inspect",
    "langchain": "langchain",
    "opencode": "opencode",
    "openhands": "openhands",
    "otel-genai": "opentelemetry",
    "pi": "a pi session",
    "swe-agent": "swe-agent",
    "claude-code": "claude",
}


def unread() -> list[Path]:
    """Everything that holds no format of ours; two files of OpenHands and one of Gemini's folder do."""
    ours = ("session-5de701fc", "fncall-llm-message", "litellm_proxy")
    found = [p for folder in UNREAD for p in readers.paths(folder) if not p.name.startswith(ours)]
    return [p for p in found if p.parent.name != "claude-code" or p.suffix == ".json"]


@pytest.mark.parametrize("path", unread(), ids=name)
def test_what_is_not_read_is_named(path: Path, measured: Measured) -> None:
    error = measured(path)
    assert error.get("code") == "input", "an unsupported file was taken for something else"
    word = "zip" if path.suffix == ".eval" else UNREAD[path.parent.name]
    assert word in error["message"].lower(), error["message"]


@pytest.mark.parametrize("folder", sorted(UNREAD))
def test_what_is_not_read_ends_with_status_3(folder: str, tmp_path: Path) -> None:
    path = next(p for p in unread() if p.parent.name == folder)
    done = subprocess.run(
        [sys.executable, "-m", "ctxctl", "analyze", path], capture_output=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 3 and done.stdout == b"" and b"Traceback" not in done.stderr


def test_every_file_is_looked_at(transcripts: Path, measured: Measured) -> None:
    for path in transcripts.glob("*/*"):
        entry = measured(path)
        assert "transcript" in entry or entry["code"] == "input", path
