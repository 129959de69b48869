"""A rewind: what was told on the branch that the user left did not happen, what was known otherwise stays."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.state import AgentState
from ctxctl.model.summary import DecisionFact
from ctxctl.state.by_hand import ByHand
from ctxctl.state.options import StateOptions
from ctxctl.state.record import load
from ctxctl.state.saving import Wish, checkpoint

SAMPLE = Path(__file__).parents[2] / "sample_transcripts" / "axios-to-fetch.jsonl"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def save(folder: Path, path: Path, **more: Any) -> AgentState:
    folder.mkdir(exist_ok=True)
    return checkpoint(Wish(str(path), **more), folder, StateOptions(), NOW).state


def rewound(path: Path, at: int) -> None:
    """The user goes back to the record of a line and asks for something else."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parent = next(record for line in reversed(lines[:at]) if "uuid" in (record := json.loads(line)))
    prompt = {
        **{key: parent[key] for key in ("sessionId", "cwd", "version")},
        "parentUuid": parent["uuid"],
        "isSidechain": False,
        "userType": "external",
        "type": "user",
        "uuid": "99999999-0000-4000-8000-000000000001",
        "timestamp": "2027-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "Go back: keep axios in the webhooks for now."},
    }
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(prompt) + "\n")


@pytest.mark.parametrize("at", [60, 90, 99])
def test_it_is_as_if_the_branch_had_never_been(tmp_path: Path, at: int) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(SAMPLE.read_bytes())
    save(tmp_path / "grown", path)
    rewound(path, at)
    grown, fresh = save(tmp_path / "grown", path), save(tmp_path / "fresh", path)
    for name in ("commits", "decisions", "learnings", "open_issues", "tests", "todos", "newest_request", "requests"):
        assert getattr(grown, name) == getattr(fresh, name), name
    assert [(s.text, s.status) for s in grown.subtasks] == [(s.text, s.status) for s in fresh.subtasks]
    assert grown.current_subtask is None or grown.current_subtask.status == "doing"


def test_what_a_hand_said_and_earlier_windows_knew_stays(tmp_path: Path) -> None:
    (tmp_path / "agent_state.json").write_text(
        json.dumps(
            {"task_goal": "All services", "remaining_subtasks": ["orders"], "learnings": ["mocks hide the proxy"]}
        )
    )
    path = tmp_path / "s.jsonl"
    path.write_bytes(SAMPLE.read_bytes())
    save(tmp_path, path)
    save(tmp_path, path, by_hand=ByHand((("decision", "ship on Friday"),)))
    rewound(path, 99)
    found = save(tmp_path, path)
    assert found.task_goal == "All services"
    assert "mocks hide the proxy" in found.learnings
    assert DecisionFact("ship on Friday") in found.decisions
    assert any(s.text == "orders" and s.status == "planned" for s in found.subtasks)
    assert not found.commits
    assert load(tmp_path / "agent_state.json") == found
