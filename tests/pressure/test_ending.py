"""The end of a session says what an analysis of the whole says, as far as anything in it can."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxctl
from ctxctl import analyze, load_models
from ctxctl.errors import CtxctlError, InputError, NothingFoundError
from ctxctl.model.limits import ModelTable
from ctxctl.pressure.ending import STEPS, Ending, ending_of
from ctxctl.pressure.options import PressureThresholds

SAMPLES = Path(ctxctl.__file__).resolve().parents[1] / "sample_transcripts"
TABLE = load_models()
BEGIN = "2026-03-01T09:{:02d}:{:02d}.000Z"


def ending(path: Path, steps: Sequence[int] = STEPS, **more: Any) -> Ending:
    return ending_of(str(path), lambda models: TABLE, steps=steps, **more)


def told(path: Path) -> tuple[object, ...]:
    a = analyze(str(path), TABLE)
    velocity = a.forecast.velocity if a.forecast is not None and a.context.reported is not None else None
    return a.context.reported, a.window.tokens, velocity


def shown(end: Ending) -> tuple[object, ...]:
    return end.tokens if end.source == "reported" else None, end.window.tokens, end.velocity


@pytest.mark.parametrize("name", ["axios-to-fetch.jsonl", "codex-rollout.jsonl"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wherever_a_session_ends(name: str, data: st.DataObject, tmp_path: Path) -> None:
    lines = (SAMPLES / name).read_bytes().splitlines(keepends=True)
    cut = data.draw(st.integers(3, len(lines)))
    torn = data.draw(st.integers(0, 60)) if cut < len(lines) else 0
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines[:cut]) + (lines[cut][:torn] if torn else b""))
    first = data.draw(st.sampled_from((2_000, 10_000, 50_000, STEPS[0])))
    end = ending(path, (first, first * 4, *STEPS))
    assert shown(end)[:2] == told(path)[:2]
    if end.read >= 1 << 18 or end.read == end.size:
        assert shown(end)[2] == told(path)[2]


def record(number: int, **fields: Any) -> dict[str, Any]:
    parent = f"u{number - 1}" if number > 1 else None
    when = BEGIN.format(number // 60, number % 60)
    return {
        "parentUuid": parent,
        "sessionId": "s",
        "uuid": f"u{number}",
        "timestamp": when,
        "isSidechain": False,
    } | fields


def answer(number: int, prompt: int, **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": prompt - 5, "cache_creation_input_tokens": 0}
    message = {
        "id": f"msg{number}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "x"}],
        "usage": {**usage, "output_tokens": 7},
    }
    return record(number, type="assistant", requestId=f"r{number}", message=message) | fields


def user(number: int, text: str = "go on", **fields: Any) -> dict[str, Any]:
    return record(number, type="user", message={"role": "user", "content": text}) | fields


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))
    return path


def session(calls: int = 8) -> list[dict[str, Any]]:
    return [made for n in range(calls) for made in (user(2 * n + 1), answer(2 * n + 2, 20_000 + 3000 * n))]


def test_what_is_no_call_of_the_session_does_not_count(tmp_path: Path) -> None:
    base = session()
    side = answer(30, 9_000, isSidechain=True, agentId="helper")
    failed = record(31, type="assistant", isApiErrorMessage=True)
    zeros = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    content = [{"type": "text", "text": "API Error: 500"}]
    failed["message"] = {"id": "e", "role": "assistant", "model": "<synthetic>", "content": content, "usage": zeros}
    again = [answer(16, 41_000) | {"uuid": f"again{n}"} for n in range(3)]  # a response on several lines
    path = written(tmp_path / "s.jsonl", *base, *again, side, user(17), failed)
    end = ending(path)
    assert (end.tokens, end.source, end.model) == (41_000, "reported", "claude-sonnet-4-5")
    assert end.velocity == 3000
    assert shown(end) == told(path)


def test_a_compaction_behind_the_newest_call(tmp_path: Path) -> None:
    cut = record(
        17, type="system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 41_000}
    )
    path = written(tmp_path / "s.jsonl", *session(), cut, user(18, "summary", isCompactSummary=True))
    end = ending(path)
    assert (end.tokens, end.source, end.level, end.turns) == (None, None, None, None)
    cut["compactMetadata"]["postTokens"] = 6_500
    written(path, *session(), cut, user(18, "summary", isCompactSummary=True))
    end = ending(path)
    assert (end.tokens, end.source, end.level) == (6_500, "stated", "green")
    written(path, *session(), cut, user(18, "summary", isCompactSummary=True), answer(19, 15_000))
    assert shown(ending(path)) == told(path)
    assert ending(path).tokens == 15_000


def test_copies_behind_a_compaction_tell_of_the_window_before(tmp_path: Path) -> None:
    cut = record(
        17, type="system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "postTokens": 6_500}
    )
    copies = [user(14, "z" * 3000) | {"uuid": f"c{n}"} for n in range(3)] + [answer(16, 41_000)]
    path = written(tmp_path / "s.jsonl", *session(), cut, user(18, "summary", isCompactSummary=True), *copies)
    assert told(path)[0] is None
    end = ending(path, (5000, 6000))
    assert (end.tokens, end.source) == (6_500, "stated")


def test_a_huge_result_at_the_end_is_looked_behind(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", *session(), user(17, "z" * 700_000))
    end = ending(path)
    assert end.tokens == 41_000
    assert shown(end) == told(path)
    assert end.read > STEPS[0]


def test_a_rewind_to_far_before(tmp_path: Path) -> None:
    back = user(40, "another way", parentUuid="u6")
    path = written(tmp_path / "s.jsonl", *session(), back)
    assert told(path)[0] == 26_000
    assert shown(ending(path, (1500, 1 << 20)))[0] == 26_000


def test_thresholds_and_window_are_given(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", *session())
    end = ending(path, window=50_000, thresholds=PressureThresholds(0.3, 0.6, 0.8))
    assert (end.window.tokens, end.window.source, end.level, end.utilization) == (50_000, "config", "red", 0.82)
    assert end.turns == 3


def test_a_sub_agents_own_file(tmp_path: Path) -> None:
    records = [r | {"isSidechain": True, "agentId": "h"} for r in session(20)]
    path = written(tmp_path / "agent-h.jsonl", *records)
    assert shown(ending(path, (4000,)))[0] == told(path)[0] == 77_000


def test_what_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    with pytest.raises(NothingFoundError):
        ending(path)
    path.write_text('{"a": 1}\n')
    with pytest.raises(InputError):
        ending(path)
    with pytest.raises(InputError, match="no such file"):
        ending(tmp_path / "none")
    with pytest.raises(CtxctlError, match="its end"):
        ending(SAMPLES / "support-chat.jsonl")
    assert ModelTable({}).find("x") is None
