"""Real sessions: what a check says of them is true, and what it says of few of them is all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from real_readers import objects, paths

from ctxctl.validity.check import check
from ctxctl.validity.repair import repair

FOLDERS = ("claude-code", "codex", "openai-chat", "message-per-line", "mini-swe-agent")
SESSIONS = [p for folder in FOLDERS for p in paths(folder) if p.name != "sample_session.json"]

# Each was looked at: fixtures of other projects made to be broken, a line with two records, a cut line, recorded
# conversations whose ids were reused.
WRONG: dict[str, set[str]] = {
    "edge_cases.jsonl": {"orphan_call", "duplicate_uuid", "not_an_object"},
    "entire-5a-c45bc32212-0.jsonl": {"glued_records"},
    "truncated.jsonl": {"damaged_line"},
    "function_calls.jsonl": {"orphan_call", "duplicate_call_id"},
    "one-message-per-line.jsonl": {"duplicate_call_id"},
    "tau-airline-60.jsonl": {"duplicate_call_id"},
}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", SESSIONS, ids=name)
def test_what_is_wrong(path: Path) -> None:
    found = {f.code for f in check(str(path)).findings if f.level == "error"}
    assert found == WRONG.get(path.name, set())


@pytest.mark.parametrize("path", SESSIONS, ids=name)
def test_repaired_once_and_for_all(path: Path, tmp_path: Path) -> None:
    out = tmp_path / path.name
    with repair(str(path)) as done:
        assert done.after.valid
        out.write_bytes(Path(done.path).read_bytes())
        if not done.repairs:
            assert out.read_bytes() == path.read_bytes()
    with repair(str(out)) as second:
        assert second.repairs == () and Path(second.path).read_bytes() == out.read_bytes()


def ids_of(records: list[tuple[int, Any]]) -> tuple[set[str], set[str]]:
    """Ids of calls and of results in content blocks, over the whole file."""
    calls, results = set(), set()
    for _, record in records:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                calls.add(block["id"])
            elif isinstance(block, dict) and block.get("type") == "tool_result":
                results.add(block["tool_use_id"])
    return calls, results


@pytest.mark.parametrize("path", [p for p in SESSIONS if p.parent.name == "claude-code"], ids=name)
def test_counts_of_calls(path: Path) -> None:
    calls, results = ids_of(objects(path))
    checked = check(str(path))
    assert (checked.counts.calls, checked.counts.results) == (len(calls), len(results))
    unanswered = {f.id for f in checked.findings if f.code in ("orphan_call", "pending_call")}
    assert unanswered <= calls - results
    assert not [f for f in checked.findings if f.code == "orphan_result"] and results <= calls
