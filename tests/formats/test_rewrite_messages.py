"""Writing compacted Anthropic Messages requests."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import rewrites
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.model.edits import Change, Outcome

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SAMPLES = [Path(__file__).parents[2] / "sample_transcripts" / "anthropic-request.json"]


@pytest.mark.parametrize("case", rewrites.golden("anthropic-messages"), ids=lambda p: p.stem)
def test_golden(case: Path, tmp_path: Path) -> None:
    wanted, written = rewrites.run_golden(case, tmp_path)
    assert written == wanted


@pytest.mark.parametrize("path", [*SAMPLES, *rewrites.real("anthropic-messages")], ids=lambda p: p.name)
def test_requests_say_what_the_outcome_says(path: Path, tmp_path: Path) -> None:
    s = rewrites.scanned(path)
    for seed in range(12):
        outcome = rewrites.random_outcome(s, seed)
        rewrites.check(s, outcome, s.rewrite(outcome), tmp_path / f"out{path.suffix}")


TEXT = st.text(alphabet="ab \n日😀", max_size=6)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
BLOCK = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}) | st.just(IMAGE)


@st.composite
def request(draw: Any) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Task"}]
    for turn in range(draw(st.integers(1, 5))):
        calls = [f"u{turn}.{n}" for n in range(draw(st.integers(0, 3)))]
        content: list[Any] = []
        if draw(st.booleans()):
            content.append({"type": "thinking", "thinking": draw(TEXT), "signature": "s"})
        content += draw(st.lists(BLOCK, max_size=2))
        content += [{"type": "tool_use", "id": i, "name": "f", "input": {"n": 1.0}} for i in calls]
        messages.append({"role": "assistant", "content": content})
        back: list[Any] = [
            {"type": "tool_result", "tool_use_id": i, "content": draw(TEXT | st.lists(BLOCK, max_size=2))}
            for i in calls
        ]
        back += draw(st.lists(BLOCK, min_size=0 if back else 1, max_size=2))
        messages.append({"role": "user", "content": back})
    return {"model": "claude", "max_tokens": 5, "system": "S", "messages": messages}


@QUICK
@given(body=request(), seed=st.integers(0, 10**6), pretty=st.booleans())
def test_any_request(body: Any, seed: int, pretty: bool, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("messages") / "in.json"
    path.write_text(json.dumps(body, indent=2 if pretty else None))
    s = rewrites.scanned(path)
    outcome = rewrites.random_outcome(s, seed)
    written = s.rewrite(outcome)
    rewrites.check(s, outcome, written, path.with_name("out.json"))
    messages = json.loads(written)["messages"]
    for before, after in pairwise(messages):
        results = [b["tool_use_id"] for b in _blocks(after) if b["type"] == "tool_result"]
        calls = [b["id"] for b in _blocks(before) if b["type"] == "tool_use"]
        assert results == calls
    if outcome:
        for message in messages:
            assert message["content"]
            assert not any(b["type"] == "text" and not b["text"].strip() for b in _blocks(message))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def test_a_changed_call_keeps_its_name_and_id(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    use = {"type": "tool_use", "id": "u", "name": "write", "input": {"text": "long"}}
    result = {"type": "tool_result", "tool_use_id": "u", "content": "ok"}
    path.write_text(
        json.dumps(
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ]
        )
    )
    s = rewrites.scanned(path)
    for text, wanted in (('write {"text":"…"}', {"text": "…"}), ("write cut", {"note": "cut"}), ("write", {})):
        written = json.loads(s.rewrite(Outcome(s.transcript.live, changed={1: Change(text)})))
        assert written[1]["content"] == [{**use, "input": wanted}]
