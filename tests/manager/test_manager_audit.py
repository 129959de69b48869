"""What the live manager records of its decisions, and what it does when it can't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.state.audit import AuditTrail
from ctxctl.state.audit_verify import read, verify


def words(tokens: int) -> str:
    return ("word " * tokens)[: 4 * tokens]


def loop(manager: ContextWindowManager, calls: int, size: int = 100, system: int = 50) -> list[Any]:
    """A task and so many calls of a tool, each answered; the decisions."""
    manager.add("system", words(system))
    manager.add("user_message", "Fix the login.")
    decisions = []
    for n in range(calls):
        decisions.append(manager.turn_start())
        manager.turn_end("on it", calls=[(f"c{n}", "Read", f'{{"file_path": "f{n}.py"}}')])
        manager.tool_result(words(size), call_id=f"c{n}")
    return [*decisions, manager.turn_start()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent_audit.jsonl"


def test_each_eviction_is_recorded_as_it_was(path: Path) -> None:
    trail = AuditTrail(path, transcript="s1")
    decisions = loop(ContextWindowManager(1000, audit=trail), 40)
    acted = [d for d in decisions if d.edits.drops]
    records = list(read(path))
    assert acted and verify(path).intact and trail.waiting == 0
    assert [r["type"] for r in records] == ["eviction"] * len(acted)
    for decision, record in zip(acted, records, strict=True):
        data = record["data"]
        assert (record["turn"], record["transcript"]) == (decision.turn, "s1")
        assert (data["before_tokens"], data["after_tokens"]) == (decision.tokens, decision.after)
        assert data["count"] == len(data["units"]) == len(decision.edits.drops)
        assert data["tokens"] == sum(drop.tokens for drop in decision.edits.drops)
        assert (data["policy"], data["action"], data["window"]) == ("hybrid", decision.action, 1000)
        assert data["reasons"] == list(decision.reasons)


def test_decisions_are_the_same_without_one(path: Path) -> None:
    with_it = loop(ContextWindowManager(1000, audit=AuditTrail(path)), 40)
    assert with_it == loop(ContextWindowManager(1000), 40)


def test_replacements_are_compactions(path: Path) -> None:
    loop(ContextWindowManager(1500, policy="mask:keep=2", audit=AuditTrail(path)), 12)
    records = list(read(path))
    assert {r["type"] for r in records} == {"compaction"}
    assert all(r["data"]["replaced"] == len(r["data"]["blocks"]) > 0 for r in records)


def test_a_target_that_can_t_be_met_is_a_refusal(path: Path) -> None:
    decisions = loop(ContextWindowManager(1000, audit=AuditTrail(path)), 3, system=900)
    refusals = [r for r in read(path) if r["type"] == "budget_refusal"]
    missed = [d for d in decisions if d.floor is not None]
    assert missed
    for decision, refusal in zip(missed, refusals, strict=True):
        data = refusal["data"]
        assert (data["floor_tokens"], data["by"], data["target_tokens"]) == (decision.floor, "target", 600)
        assert [(c["cause"], c["tokens"]) for c in data["causes"]] == list(decision.causes)


def test_an_overflow_is_a_refusal_by_the_provider(path: Path) -> None:
    manager = ContextWindowManager(10_000, audit=AuditTrail(path))
    loop(manager, 10, size=400)
    decision = manager.overflow()
    assert [(r["type"], r["data"].get("by")) for r in read(path)] == [
        ("budget_refusal", "provider"),
        ("eviction", None),
    ]
    assert next(read(path))["data"]["tokens"] == decision.tokens


def test_a_quiet_session_makes_no_file(path: Path) -> None:
    loop(ContextWindowManager(100_000, audit=AuditTrail(path)), 10)
    assert not path.exists()


def test_a_trail_that_can_t_be_written_is_said_and_caught_up_with(path: Path) -> None:
    path.mkdir()
    trail = AuditTrail(path)
    manager = ContextWindowManager(1000, audit=trail)
    decisions = loop(manager, 12)
    acted = [d for d in decisions if d.edits.drops]
    said = [d.reasons[-1] for d in acted]
    assert all("not in the audit trail" in text and "Is a directory" in text for text in said)
    assert trail.waiting == len(acted)
    path.rmdir()
    trail.flush()
    assert verify(path).records == len(acted)


def test_it_costs_little(path: Path) -> None:
    loop(ContextWindowManager(1000, audit=AuditTrail(path)), 200)
    assert max(len(json.dumps(record)) for record in read(path)) < 2000
