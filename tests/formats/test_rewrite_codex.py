"""Writing compacted Codex rollouts: as a new one, and behind the old lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rewrites
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxctl
from ctxctl.model.edits import Change, Outcome

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SAMPLES = [Path(__file__).parents[2] / "sample_transcripts" / "codex-rollout.jsonl"]
KEEP = pytest.mark.parametrize("keep", [False, True], ids=["new", "kept"])


@pytest.mark.parametrize("case", rewrites.golden("codex"), ids=lambda p: p.stem)
def test_golden(case: Path, tmp_path: Path) -> None:
    wanted, written = rewrites.run_golden(case, tmp_path)
    assert written == wanted


@KEEP
@pytest.mark.parametrize("path", [*SAMPLES, *rewrites.real("codex")], ids=lambda p: p.name)
def test_rollouts_say_what_the_outcome_says(path: Path, keep: bool, tmp_path: Path) -> None:
    s = rewrites.scanned(path)
    raw = b"".join(s.store.get(line) for line in range(1, len(s.store) + 1))
    assert s.rewrite(Outcome(s.transcript.live), keep_history=keep) in (raw, raw + b"\n")
    for seed in range(6):
        outcome = rewrites.random_outcome(s, seed)
        written = s.rewrite(outcome, keep_history=keep)
        t = rewrites.check(s, outcome, written, tmp_path / "out.jsonl")
        if outcome and keep:
            assert written.startswith(raw)
        elif outcome:
            assert not t.usage or all(u.context is None for u in t.usage)
            assert t.id == rewrites.NEW_ID or s.transcript.id is None
            lines = set(raw.splitlines())
            new = [line for line in written.splitlines() if line not in lines]
            touched = {s.blocks[n].source.line for n in (*outcome.changed, *outcome.gone)}
            cuts = {c.line for c in s.transcript.compactions}
            history = sum(s.blocks[n].source.line in cuts for n in outcome.live)
            assert len(new) <= len(touched) + 1 + history


TEXT = st.text(alphabet="ab \n日😀", min_size=1, max_size=6)


@st.composite
def rollout(draw: Any) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    bare = draw(st.booleans())

    def put(type_: str, payload: dict[str, Any]) -> None:
        if not bare:
            lines.append(
                {"timestamp": f"2026-02-01T09:00:{len(lines) % 60:02}.000Z", "type": type_, "payload": payload}
            )
        elif type_ == "response_item":
            lines.append(payload)

    def said(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    if bare:
        lines.append({"id": "r", "timestamp": "2025-05-01T00:00:00Z", "instructions": None})
    else:
        put("session_meta", {"id": "r", "cwd": "/w", "base_instructions": {"text": "Base."}})
    for turn in range(draw(st.integers(1, 4))):
        text = draw(TEXT)
        put("response_item", said("user", text))
        put("event_msg", {"type": "user_message", "message": text})
        put("turn_context", {"turn_id": f"t{turn}", "model": "gpt-5"})
        for call in range(draw(st.integers(0, 3))):
            if draw(st.booleans()):
                put("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "g"})
            ids = [f"c{turn}.{call}.{n}" for n in range(draw(st.integers(1, 2)))]
            for i in ids:
                put("response_item", {"type": "function_call", "name": "f", "arguments": "{}", "call_id": i})
            for i in ids:
                image = [{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "x"}]
                output = draw(TEXT | st.just(image))
                put("response_item", {"type": "function_call_output", "call_id": i, "output": output})
        put("response_item", said("assistant", draw(TEXT)))
        if draw(st.integers(0, 4)) == 0:
            put("compacted", {"message": "m", "replacement_history": [said("user", text), said("user", "Summary: x")]})
    return lines


@KEEP
@QUICK
@given(lines=rollout(), seed=st.integers(0, 10**6), glued=st.booleans())
def test_any_rollout(lines: Any, seed: int, glued: bool, keep: bool, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("codex") / "in.jsonl"
    data = [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines]
    if glued and len(data) > 2:
        data[1:3] = [data[1] + data[2]]
    path.write_text("\n".join(data) + "\n", encoding="utf-8")
    s = rewrites.scanned(path)
    outcome = rewrites.random_outcome(s, seed)
    rewrites.check(s, outcome, s.rewrite(outcome, keep_history=keep), path.with_name("out.jsonl"))


def test_reasoning_goes_with_what_it_led_to(tmp_path: Path) -> None:
    s = rewrites.scanned(SAMPLES[0])
    thinking = [n for n, b in s.blocks.items() if b.kind == "thinking"]
    gone = frozenset([thinking[0] + 1])
    path = tmp_path / "out.jsonl"
    path.write_bytes(s.rewrite(Outcome(tuple(n for n in s.transcript.live if n not in gone), gone)))
    t = ctxctl.read(str(path))
    assert sum(t.blocks[n].kind == "thinking" for n in t.live) == len(thinking) - 1


def test_instructions_stay_behind_a_compaction(tmp_path: Path) -> None:
    s = rewrites.scanned(SAMPLES[0])
    base = next(n for n, b in s.blocks.items() if b.source.line == 1)
    outcome = Outcome((base, s.transcript.live[-1]), frozenset(s.transcript.live[1:-1]))
    path = tmp_path / "out.jsonl"
    path.write_bytes(s.rewrite(outcome, in_place=True))
    t = ctxctl.read(str(path))
    assert [t.blocks[n].text for n in t.live] == [s.blocks[n].text for n in outcome.live]
    assert t.id == s.transcript.id


def test_a_summary_of_ours_starts_no_exchange(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    own = "Another language model started to solve this problem and produced a summary"
    texts = (("user", "one"), ("assistant", "two"), ("user", own), ("user", "three"))
    items = [{"type": "message", "role": role, "content": [{"type": "input_text", "text": t}]} for role, t in texts]
    path.write_text("".join(json.dumps({"type": "response_item", "payload": item}) + "\n" for item in items))
    s = rewrites.scanned(path)
    assert s.transcript.exchanges == 2
    number = 1
    path.write_bytes(s.rewrite(Outcome(s.transcript.live, changed={number: Change("[summary] a", True)})))
    t = ctxctl.read(str(path))
    assert t.exchanges == s.transcript.exchanges
    assert [b.kind for b in t.blocks if b.text == "[summary] a"] == ["summary"]
