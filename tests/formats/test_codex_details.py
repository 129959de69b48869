"""Codex: what the golden cases don't reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

import ctxctl
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import total_usage


def at(seconds: float) -> str:
    return f"2026-02-01T09:00:{seconds:06.3f}Z"


def line(type_: str, payload: dict[str, Any], seconds: float = 5.0) -> dict[str, Any]:
    return {"timestamp": at(seconds), "type": type_, "payload": payload}


def meta(id_: str = "c1", seconds: float = 0.0, **more: Any) -> dict[str, Any]:
    return line("session_meta", {"id": id_, "cwd": "/w", **more}, seconds)


def said(role: str, text: str, seconds: float = 5.0) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    return line("response_item", payload, seconds)


def usage(new: int, cached: int, output: int, total: int | None = None) -> dict[str, int]:
    return {
        "input_tokens": new,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": new + output if total is None else total,
    }


def count(total: Any, last: Any, window: int | None = 272_000, seconds: float = 5.0) -> dict[str, Any]:
    info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": window}
    return line("event_msg", {"type": "token_count", "info": info}, seconds)


def read(folder: Path, *records: dict[str, Any]) -> Transcript:
    path = folder / "rollout.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return ctxctl.read(str(path))


@pytest.mark.parametrize("spent", [5_000, 900_000], ids=["short session", "long session"])
def test_a_full_window_is_an_overflow(tmp_path: Path, spent: int) -> None:
    """codex-rs `fill_to_context_window`: the counter is set to the window with zero parts, and the last usage to what
    was missing, which is nothing in a session that spent more than a window already."""
    window = 272_000
    t = read(
        tmp_path,
        meta(),
        said("user", "go"),
        said("assistant", "gone"),
        count(usage(spent - 100, 0, 100), usage(4_900, 0, 100)),
        said("user", "too much"),
        count(usage(0, 0, 0, window), usage(0, 0, 0, max(0, window - spent))),
    )
    assert [o.line for o in t.overflows] == [6]
    assert total_usage(t.usage).total == spent


def test_a_counter_that_starts_anew_counts_from_zero(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        meta(),
        said("assistant", "one"),
        count(usage(5_000, 0, 100), usage(5_000, 0, 100)),
        said("assistant", "two"),
        count(usage(1_000, 0, 50), usage(1_000, 0, 50)),
    )
    assert [u.input for u in t.usage] == [5_000, 1_000]


def test_totals_alone_are_enough(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        meta(),
        said("assistant", "one"),
        count(usage(5_000, 0, 100), None),
        said("user", "on"),
        said("assistant", "two"),
        count(usage(11_000, 4_000, 150), None),
    )
    assert [(u.input, u.cache_read, u.output, u.context) for u in t.usage] == [
        (5_000, 0, 100, 5_100),
        (2_000, 4_000, 50, 6_050),
    ]


def test_events_for_the_screen_add_nothing(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        meta(),
        said("user", "go"),
        line("event_msg", {"type": "user_message", "message": "go"}),
        line("event_msg", {"type": "agent_reasoning", "text": "thinking"}),
        line("world_state", {"full": True, "state": {}}),
        said("assistant", "gone"),
        line("event_msg", {"type": "agent_message", "message": "gone"}),
    )
    assert [b.text for b in t.blocks] == ["go", "gone"]


def test_two_turns_can_be_rolled_back(tmp_path: Path) -> None:
    talk = [said(role, f"{role} {n}") for n in range(3) for role in ("user", "assistant")]
    t = read(tmp_path, meta(), *talk, line("event_msg", {"type": "thread_rolled_back", "num_turns": 2}))
    assert [t.blocks[n].text for n in t.live] == ["user 0", "assistant 0"]


@pytest.mark.parametrize("turns", [0, -1, None, "2", True, 99])
def test_odd_rollbacks_do_not_raise(tmp_path: Path, turns: Any) -> None:
    t = read(
        tmp_path, meta(), said("user", "go"), line("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
    )
    assert len(t.live) == (0 if turns == 99 else 1)


def test_the_first_header_names_the_session(tmp_path: Path) -> None:
    t = read(tmp_path, meta("child", forked_from_id="parent"), meta("parent"), said("user", "go"))
    assert t.id == "child" and t.cwd == "/w"


def test_a_copied_call_never_takes_a_count_of_the_fork(tmp_path: Path) -> None:
    """With counts in front of their items, as in 2025, the copied answer is still without one when the fork's comes."""
    t = read(
        tmp_path,
        meta("child", 10.0, forked_from_id="parent"),
        meta("parent", 10.01),
        said("user", "first", 10.02),
        count(usage(1_000, 0, 40), usage(1_000, 0, 40), seconds=10.03),
        said("assistant", "one", 10.04),
        said("user", "second", 30),
        count(usage(2_100, 1_000, 70), usage(1_100, 1_000, 30), seconds=31),
        said("assistant", "two", 32),
    )
    assert t.inherited == 1_040
    assert [(u.turn, u.context) for u in t.usage if u.reported] == [(2, 1_130)]
    assert [(b.text, b.turn) for b in t.blocks] == [("first", 1), ("one", 1), ("second", 2), ("two", 2)]


def test_the_newest_model_is_told(tmp_path: Path) -> None:
    def context(model: str) -> dict[str, Any]:
        return line("turn_context", {"model": model})

    t = read(tmp_path, meta(), context("gpt-5"), said("assistant", "a"), context("gpt-5.4"), said("assistant", "b"))
    assert t.model == "gpt-5.4" and set(t.models) == {"gpt-5", "gpt-5.4"}


def test_a_cold_rollout(tmp_path: Path) -> None:
    records = [meta(), said("user", "go"), said("assistant", "gone"), count(usage(10, 0, 2), usage(10, 0, 2))]
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.compress("".join(json.dumps(r) + "\n" for r in records).encode()))
    t = ctxctl.read(str(path))
    assert [b.text for b in t.blocks] == ["go", "gone"] and t.usage[0].context == 12


def test_successive_compactions_replace_each_other(tmp_path: Path) -> None:
    def compacted(*texts: str) -> dict[str, Any]:
        history = [said("user", text)["payload"] for text in texts]
        return line("compacted", {"message": texts[-1], "replacement_history": history})

    t = read(
        tmp_path,
        meta(),
        said("user", "go"),
        said("assistant", "gone"),
        compacted("go", "summary one"),
        said("user", "more"),
        said("assistant", "done"),
        compacted("go", "more", "summary two"),
        said("user", "last"),
    )
    assert [t.blocks[n].text for n in t.live] == ["go", "more", "summary two", "last"]
    assert [c.kind for c in t.compactions] == ["full", "full"]


def test_equal_messages_that_a_compaction_keeps_are_two_blocks(tmp_path: Path) -> None:
    kept = [said("user", text)["payload"] for text in ("go on", "go on", "summary")]
    talk = [said(role, text) for text in ("go on", "go on") for role in ("user", "assistant")]
    t = read(tmp_path, meta(), *talk, line("compacted", {"message": "summary", "replacement_history": kept}))
    assert [t.blocks[n].text for n in t.live] == ["go on", "go on", "summary"]
    assert [t.blocks[n].id for n in t.live][:2] == ["2.0", "4.0"]


ODD: list[dict[str, Any]] = [
    line("response_item", {"type": "reasoning", "summary": True}),
    line("response_item", {"type": "reasoning", "content": 5}),
    line("response_item", {"type": "message", "role": ["user"], "content": "hi"}),
    line("response_item", {"type": "message", "role": "user", "content": 5}),
    line("response_item", {"type": "function_call", "name": [], "arguments": {"a": 1}, "call_id": {}}),
    line("response_item", {"type": "function_call_output", "output": None, "call_id": 5}),
    line("response_item", {"type": None}),
    line("compacted", {"replacement_history": [{"type": "message", "role": []}]}),
    line("compacted", {"replacement_history": "all", "message": 5}),
    line("turn_context", {"model": 5}),
    line("event_msg", {"type": "token_count", "info": {"total_token_usage": 5, "last_token_usage": "x"}}),
    {**line("event_msg", {"type": "task_started", "model_context_window": 10**30}), "n": float("inf")},
    line("session_meta", {"id": 5, "cwd": [], "source": "cli", "base_instructions": 5}),
]


@pytest.mark.parametrize("record", ODD, ids=range(len(ODD)))
def test_fields_of_an_odd_type_do_not_raise(tmp_path: Path, record: dict[str, Any]) -> None:
    talk = [said("user", "go"), record, said("assistant", "gone"), count(usage(9, 0, 1), None, None)]
    read(tmp_path, meta(), *talk, record)
    analysis = ctxctl.analyze(str(tmp_path / "rollout.jsonl"), ctxctl.load_models())
    assert analysis.transcript.exchanges >= 1
