"""Real sessions: every block that the model was sent is counted, once, as what it is, with the tokens of its text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import real_readers as readers

import ctxctl
from ctxctl import tokens
from ctxctl.errors import CtxctlError
from ctxctl.pressure.measure import OTHER_ENCODING
from ctxctl.tokens.engines import engine

Measured = Callable[[Path], Any]
TRANSCRIPTS = readers.TRANSCRIPTS
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the handed transcripts are not here")

CLAUDE = [p for p in readers.paths("claude-code") if p.suffix == ".jsonl"]
CODEX = [p for p in readers.paths("codex") if p.suffix == ".jsonl"]
TEXTS = ("user_message", "memory_injection", "summary")  # told apart by their words: counted as one here
INJECTED = (
    "<system-reminder>",
    "<local-command-stdout>",
    "<local-command-caveat>",
    "<task-notification>",
    "<bash-stdout>",
    "Caveat: The messages below were generated",
)


def claude_records(path: Path) -> list[dict[str, Any]]:
    """The messages of a session: each uuid once, no errors of the client, no message without content."""
    seen: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    for number, record in readers.objects(path):
        message = record.get("message")
        if record.get("type") == "user":
            if not isinstance(message, dict) or "content" not in message:
                continue
        elif not readers.is_answer(record):
            continue
        uuid = record.get("uuid") or f"line {number}"
        if uuid not in seen:
            seen[uuid] = number
            found.append({**record, "line": number})
    return found


def claude_blocks(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(kind, text) of each content block of a message."""
    user = record["type"] == "user"
    text_kind = "user" if user else "assistant"
    content = record["message"]["content"]
    for block in [content] if isinstance(content, str) else content:
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        type_ = block["type"]
        if type_ == "text":
            yield text_kind, block["text"]
        elif type_ == "tool_use":
            yield "tool_call", block["name"]
        elif type_ == "tool_result":
            inner = block.get("content")
            parts = [{"type": "text", "text": inner}] if isinstance(inner, str) else inner or []
            yield "tool_result", "\n".join(p["text"] for p in parts if p["type"] == "text")
            yield from ((p["type"], "") for p in parts if p["type"] != "text")
        elif type_ in ("thinking", "redacted_thinking"):
            yield "thinking", block.get("thinking", "")
        else:
            yield type_, ""


def injections(path: Path) -> int:
    """Attachments that carry text to the model."""
    found = [r["attachment"] for _, r in readers.objects(path) if r.get("type") == "attachment"]
    return sum(1 for a in found if a.get("content") or a.get("text") or a.get("prompt"))


def merged(kinds: Any) -> Counter[str]:
    """Blocks by kind as ctxctl counts them, with what comes in as user text taken together."""
    counts: Counter[str] = Counter()
    for kind, share in kinds.items():
        counts["user" if kind in TEXTS else kind] += share["blocks"]
    return +counts


@pytest.mark.parametrize("path", CLAUDE, ids=lambda p: p.name[:40])
def test_claude_blocks_by_kind(path: Path, measured: Measured) -> None:
    own = Counter(kind for record in claude_records(path) for kind, _ in claude_blocks(record))
    own["user"] += injections(path)
    assert merged(measured(path)["composition_all"]["by_kind"]) == +own


@pytest.mark.parametrize("path", CLAUDE, ids=lambda p: p.name[:40])
def test_claude_blocks_in_the_window(path: Path, measured: Measured) -> None:
    """What stands behind the last boundary, on the main thread; none of these sessions keeps earlier messages."""
    records = [r for _, r in readers.objects(path)]
    lines = [n for n, r in readers.objects(path) if r.get("subtype") == "compact_boundary"]
    start = lines[-1] if lines else 0
    side = all(r.get("isSidechain") for r in records if r.get("type") in ("user", "assistant"))
    window = [r for r in claude_records(path) if r["line"] > start and bool(r.get("isSidechain")) is side]
    own = Counter(kind for record in window for kind, _ in claude_blocks(record))
    own["user"] += injections(path)
    result = measured(path)
    assert merged(result["composition"]["by_kind"]) == +own
    assert sum(row["in_context"] for row in result["blocks"]) == sum(own.values())


@pytest.mark.parametrize("path", CLAUDE, ids=lambda p: p.name[:40])
def test_claude_user_text_is_told_apart(path: Path, measured: Measured) -> None:
    kinds = measured(path)["composition_all"]["by_kind"]
    records = [r for r in claude_records(path) if r["type"] == "user"]
    summaries = [r for r in records if r.get("isCompactSummary")]
    hidden = [r for r in records if r.get("isMeta") and not r.get("isCompactSummary")]
    typed = [r for r in records if not r.get("isMeta") and not r.get("isCompactSummary")]
    texts = [text for r in typed for kind, text in claude_blocks(r) if kind == "user"]
    assert kinds.get("summary", {"blocks": 0})["blocks"] == len(summaries)
    injected = sum(1 for r in hidden for kind, _ in claude_blocks(r) if kind == "user") + injections(path)
    injected += sum(text.lstrip().startswith(INJECTED) for text in texts)
    assert kinds.get("memory_injection", {"blocks": 0})["blocks"] == injected


PLAIN = [p for p in CLAUDE if p.name.startswith(("entire-cd", "entire-f5", "long-conversation"))]


@pytest.mark.parametrize("path", PLAIN, ids=lambda p: p.name[:40])
def test_claude_tokens_of_tool_results(path: Path, tmp_path: Path) -> None:
    """Of an unknown model without usage nothing is scaled: the tokens are those of the plain count."""
    copy = tmp_path / path.name
    with copy.open("w", encoding="utf-8") as file:
        for _, record in readers.objects(path):
            if isinstance(record.get("message"), dict):
                record["message"].pop("usage", None)
                if record["message"].get("model") not in (None, "<synthetic>"):
                    record["message"]["model"] = "nobody-knows-me-1"
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    analysis = ctxctl.analyze(str(copy), ctxctl.load_models())
    own: Counter[str] = Counter()
    for record in claude_records(path):
        for kind, text in claude_blocks(record):
            own[kind] += tokens.count(text)
    kinds = {k: v.tokens for k, v in analysis.composition_all.by_kind.items()}
    assert kinds["tool_result"] == own["tool_result"] > 10_000
    assert kinds["assistant"] == own["assistant"] and kinds["thinking"] == own["thinking"]
    assert sum(kinds.get(kind, 0) for kind in TEXTS) == own["user"]
    assert kinds["tool_call"] > own["tool_call"]


# -- Codex ---------------------------------------------------------------------------------------------------------

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")


def codex_blocks(path: Path) -> Iterator[tuple[str, str]]:
    """(kind, text) of what a rollout sent: its response items, and the base instructions."""
    for _, record in readers.objects(path):
        item = record.get("payload")
        if record.get("type") == "session_meta":
            base = item.get("base_instructions") or {}
            text = base.get("text") if isinstance(base, dict) else None
            text = text or item.get("instructions")
            if text:
                yield "system", text
        if record.get("type") != "response_item":
            continue
        if item.get("type", "message") == "message":
            kind = {"assistant": "assistant", "developer": "system", "system": "system"}.get(item["role"], "user")
            yield from ((kind, part["text"]) for part in item["content"])
        elif item["type"] in CALLS:
            yield "tool_call", f"{item['name']} {item.get('arguments', item.get('input', ''))}"
        elif item["type"].endswith("_output"):
            yield "tool_result", item["output"]
        elif item["type"] == "reasoning":
            yield "thinking", ""


@pytest.mark.parametrize("path", CODEX, ids=lambda p: p.name[:40])
def test_codex_blocks_and_tokens_by_kind(path: Path, measured: Measured) -> None:
    own, count = Counter(), Counter()
    for kind, text in codex_blocks(path):
        own[kind] += tokens.count(text)
        count[kind] += 1
    result = measured(path)
    kinds = result["composition_all"]["by_kind"]
    assert merged(kinds) == count
    for kind in ("tool_result", "tool_call", "assistant", "system"):
        assert kinds.get(kind, {"tokens": 0})["tokens"] == own[kind], kind
    assert sum(kinds.get(kind, {"tokens": 0})["tokens"] for kind in TEXTS) == own["user"]
    events = readers.codex_counts(path)
    if events:
        # the file holds reasoning encrypted: the provider's own count stands for its text
        stated = events[-1]["total_token_usage"]["reasoning_output_tokens"]
        assert kinds.get("thinking", {"tokens": 0})["tokens"] == (stated if count["thinking"] else 0)


@pytest.mark.parametrize("path", [*CLAUDE, *CODEX], ids=lambda p: p.name[:40])
def test_the_parts_add_up(path: Path, measured: Measured) -> None:
    result = measured(path)
    rows, composition = result["blocks"], result["composition"]
    inside = [row for row in rows if row["in_context"]]
    assert len({row["block"] for row in rows}) == len(rows) == result["transcript"]["blocks"]
    assert Counter(row["kind"] for row in inside) == {k: v["blocks"] for k, v in composition["by_kind"].items()}
    assert Counter(row["kind"] for row in rows) == {
        k: v["blocks"] for k, v in result["composition_all"]["by_kind"].items()
    }
    spread = len(composition["by_kind"])
    assert sum(v["tokens"] for v in composition["by_kind"].values()) == pytest.approx(
        result["context"]["counted"], abs=spread
    )
    if composition["by_kind"] and result["context"]["counted"]:
        assert sum(v["share"] for v in composition["by_kind"].values()) == pytest.approx(1)
    calls = Counter(row["tool"] for row in inside if row["kind"] == "tool_call")
    assert calls == {k: v["calls"] for k, v in composition["by_tool"].items() if v["calls"]}


def test_the_two_encodings_differ_by_what_is_stated_for_a_change_between_them() -> None:
    """OTHER_ENCODING holds for every session with enough text for a ratio."""
    first, second, measured_files = engine("o200k_base"), engine("cl100k_base"), 0
    for path in [*CLAUDE, *CODEX]:
        try:
            texts = [block.text for block in ctxctl.read(str(path)).blocks if block.text]
        except CtxctlError:
            continue  # what can't be read has no counts to differ
        one, other = sum(first.count(texts)), sum(second.count(texts))
        if one > 4_000:
            measured_files += 1
            assert abs(other / one - 1) < OTHER_ENCODING, path.name
    assert measured_files >= 8
