"""Writing compacted chat conversations and mini-swe-agent trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rewrites
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxctl
from ctxctl.errors import UsageError
from ctxctl.formats.lines import compact, editable, parts
from ctxctl.model.edits import Change, Outcome

FOLDERS = ("mini-swe-agent", "openai-chat", "openai-chat-message", "message-per-line")
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

CASES = [p for f in ("openai-chat", "openai-chat-message", "mini-swe-agent") for p in rewrites.golden(f)]


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_golden(case: Path, tmp_path: Path) -> None:
    wanted, written = rewrites.run_golden(case, tmp_path)
    assert written == wanted


@pytest.mark.parametrize("path", rewrites.real(*FOLDERS), ids=lambda p: p.name)
def test_real_sessions_say_what_the_outcome_says(path: Path, tmp_path: Path) -> None:
    if path.name == "batch_results.jsonl":
        pytest.skip("a logged answer alone has no place for a summary")
    s = rewrites.scanned(path)
    raw = b"".join(s.store.get(line) for line in range(1, len(s.store) + 1))
    same = s.rewrite(Outcome(s.transcript.live))
    assert same == raw if b"\n" in raw.strip() and path.suffix == ".json" else same in (raw, raw + b"\n")
    for seed in range(4):
        outcome = rewrites.random_outcome(s, seed)
        data = s.rewrite(outcome)
        t = rewrites.check(s, outcome, data, tmp_path / f"out{path.suffix}")
        if outcome and s.transcript.format == "mini-swe-agent":
            assert all(u.context is None for u in t.usage) or b"compaction" not in data


TEXT = st.text(alphabet='ab \n\u2028日😀\\"', max_size=8) | st.sampled_from(["", " ", "\ud83d"])
NUMBER = st.sampled_from([0.000005, 1.0, 1e21, 10**25, 3])
WORD = st.text(alphabet="ab日😀\\", min_size=1, max_size=8)  # of a blank part among others nothing is left
PART = st.fixed_dictionaries({"type": st.just("text"), "text": WORD}) | st.just(
    {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
)


@st.composite
def conversation(draw: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "S"}, {"role": "user", "content": "Task"}]
    for turn in range(draw(st.integers(1, 5))):
        calls = [f"c{turn}.{n}" for n in range(draw(st.integers(0, 3)))]
        answer: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT | st.lists(PART, max_size=3))}
        if draw(st.booleans()):
            answer["reasoning_content"] = draw(TEXT)
        if draw(st.booleans()):
            answer["x"] = draw(NUMBER)
        if calls:
            body = {"name": "f", "arguments": "{}"}
            answer["tool_calls"] = [{"id": i, "type": "function", "function": body} for i in calls]
        messages.append(answer)
        for i in calls:
            content = draw(TEXT | st.lists(PART, min_size=1, max_size=2))
            messages.append({"role": "tool", "tool_call_id": i, "content": content})
        if draw(st.booleans()):
            messages.append({"role": "user", "content": draw(TEXT | st.lists(PART, max_size=2))})
    return messages


def compacted(path: Path, data: bytes, seed: int) -> bytes:
    path.write_bytes(data)
    s = rewrites.scanned(path)
    outcome = rewrites.random_outcome(s, seed)
    written = s.rewrite(outcome)
    rewrites.check(s, outcome, written, path.with_stem("out"))
    return written


@QUICK
@given(messages=conversation(), seed=st.integers(0, 10**6), shape=st.sampled_from(["lines", "line", "list", "pretty"]))
def test_any_conversation(messages: Any, seed: int, shape: str, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("chat")
    if shape == "lines":
        data = b"".join(json.dumps(m).encode() + b"\r\n" for m in messages)
    elif shape == "line":
        data = json.dumps({"messages": messages, "n": 5e-06}).encode()
    elif shape == "list":
        data = b"\xef\xbb\xbf" + json.dumps(messages).encode()
    else:
        data = json.dumps({"messages": messages}, indent="\t").encode()
    written = compacted(folder / ("in.json" if shape == "pretty" else "in.jsonl"), data, seed)
    assert written.endswith(b"\n") or shape == "pretty"
    if shape == "line":
        assert json.loads(written)["n"] == 5e-06


def test_damage_is_left_out_and_said(tmp_path: Path) -> None:
    good = b'{"role":"user","content":"hi"}'
    half = b'{"role":"assistant","content":"\\ud83d x \\\\ud83d \\ud83d\\ude00"}'
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + good + b"\r\n\n" + b'{"role":"us\n' + half + good + b"\n7\n" + b'{"role":"assi')
    s = rewrites.scanned(path)
    for outcome in (Outcome(s.transcript.live), Outcome(s.transcript.live, changed={0: Change("hey")})):
        draft = s.draft(outcome)
        written = b"".join(ctxctl.formats.FORMATS.get(s.transcript.format).rewrite(draft))
        first = b'{"role":"user","content":"hey"}' if outcome else good
        mended = b'{"role":"assistant","content":"\\ufffd x \\\\ud83d \\ud83d\\ude00"}'
        assert written == first + b"\n" + mended + b"\n" + good + b"\n"
        assert (draft.normalised.bom, draft.normalised.crlf, draft.normalised.surrogates) == (1, 1, 1)
        assert [(d.code, d.line) for d in draft.notes] == [
            ("blank_line", 2),
            ("damaged_line", 3),
            ("glued_records", 4),
            ("not_an_object", 5),
            ("torn_tail", 6),
        ]


def test_history_cannot_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"messages":[{"role":"user","content":"hi"}]}\n')
    s = rewrites.scanned(path)
    with pytest.raises(UsageError, match="openai-chat has no way"):
        s.rewrite(Outcome(s.transcript.live), keep_history=True)


@pytest.mark.parametrize("number", ["5e-06", "0.000005", "1.0", "1E2", "-0", "123456789012345678901", "1e400", "-0.0"])
def test_numbers_stay_as_they_stand(number: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "hi", "n": ' + number + "}]}\n")
    s = rewrites.scanned(path)
    written = s.rewrite(Outcome(s.transcript.live, changed={0: Change("ho")})).decode()
    assert written == '{"messages":[{"role":"user","content":"ho","n":' + number + "}]}\n"


def test_a_deep_record_is_written(tmp_path: Path) -> None:
    deep = b'{"role":"user","content":"a","n":0.000005,"x":' + b"[" * 400 + b"]" * 400 + b"}"
    path = tmp_path / "x.jsonl"
    path.write_bytes(deep + b"\n")
    s = rewrites.scanned(path)
    part = parts(deep, 1, s.draft(Outcome(())), ctxctl.formats.base.Diagnostics())[0]
    assert compact(editable(part)) == deep


def test_usage_bills_but_says_nothing_of_the_window(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    usage = {"prompt_tokens": 900, "completion_tokens": 10}
    log = {
        "request": {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        "response": {"choices": [{"message": {"role": "assistant", "content": "c"}}], "usage": usage},
    }
    path.write_text(json.dumps(log) + "\n")
    s = rewrites.scanned(path)
    assert s.transcript.usage[-1].context == 900
    path.write_bytes(s.rewrite(Outcome((0, 2), frozenset([1]))))
    t = ctxctl.read(str(path))
    assert [b.text for b in t.blocks] == ["a", "c"]
    assert (t.usage[-1].context, t.usage[-1].total) == (None, 910)


def test_a_summary_starts_no_exchange(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    said = [{"role": "user", "content": text} for text in ("task", "[summary] turns 1-3", "[摘要] x", "go on")]
    path.write_text(json.dumps({"messages": said}) + "\n")
    t = ctxctl.read(str(path))
    assert [(b.kind, b.exchange) for b in t.blocks] == [
        ("user_message", 1),
        ("summary", 1),
        ("summary", 1),
        ("user_message", 2),
    ]


def test_items_of_a_responses_model(tmp_path: Path) -> None:
    path = tmp_path / "x.traj.json"
    call = {"type": "function_call", "name": "bash", "arguments": "{}", "call_id": "c"}
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    run = {
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [
            {"role": "user", "content": "task"},
            {"object": "response", "output": [reasoning, call]},
            {"type": "function_call_output", "call_id": "c", "output": "out"},
            {"role": "user", "content": "more"},
        ],
    }
    path.write_text(json.dumps(run, indent=2))
    s = rewrites.scanned(path)
    texts = [b.text for b in s.blocks.values()]
    assert texts == ["task", "hm", "bash {}", "out", "more"]
    both = json.loads(s.rewrite(Outcome((0, 1, 4), frozenset([2, 3]))))
    assert both["messages"] == [run["messages"][0], run["messages"][3]]
    cleared = json.loads(s.rewrite(Outcome((0, 1, 2, 3, 4), changed={3: Change("[cleared: bash]")})))
    assert cleared["messages"][1] == run["messages"][1]
    assert cleared["messages"][2] == {"type": "function_call_output", "call_id": "c", "output": "[cleared: bash]"}


def test_ids_that_stand_twice_are_said_once(tmp_path: Path) -> None:
    """Lines of other messages keep their bytes; and where nothing is compacted all do."""
    path = tmp_path / "x.jsonl"
    said: list[dict[str, Any]] = [{"role": "user", "content": "task"}, {"role": "assistant", "content": "old"}]
    for n in range(3):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": f'{{"n": {n}}}'}}
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": "c", "content": f"result {n}"})
    said.append({"role": "user", "content": "next"})
    path.write_text("".join(json.dumps(m) + "\n" for m in said))
    s = rewrites.scanned(path)
    same = s.draft(Outcome(s.transcript.live))
    rewrite = ctxctl.formats.FORMATS.get(s.transcript.format).rewrite
    assert b"".join(rewrite(same)) == path.read_bytes() and same.notes == []
    draft = s.draft(Outcome((0, *range(2, 9)), frozenset([1])))
    written = b"".join(rewrite(draft)).splitlines()
    assert [(d.severity, d.code, d.count) for d in draft.notes] == [("info", "renamed_ids", 2)]
    old = path.read_bytes().splitlines()
    assert [old.index(line) for line in written if line in old] == [0, 2, 3, 8]
    messages = [json.loads(line) for line in written]
    assert [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m] == ["c", "c_2", "c_3"]
    results = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
    assert results == [("c", "result 0"), ("c_2", "result 1"), ("c_3", "result 2")]
    alone = s.draft(Outcome((0, 6, 7, 8), frozenset(range(1, 6))))
    assert b"".join(rewrite(alone)).splitlines() == [old[n] for n in (0, 6, 7, 8)] and alone.notes == []


IDS = st.lists(st.lists(st.sampled_from(["a", "b", "a_2"]), min_size=1, max_size=3), min_size=1, max_size=5)


@QUICK
@given(turns=IDS, first=st.integers(0, 4), lines=st.booleans())
def test_ids_are_unique_and_pairs_stay(turns: Any, first: int, lines: bool, tmp_path_factory: Any) -> None:
    """Whatever ids a model gives: each result follows the call that it followed."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "task"}, {"role": "assistant", "content": "old"}]
    for t, ids in enumerate(turns):
        body = [(i, {"name": "f", "arguments": f"{t}.{k}"}) for k, i in enumerate(ids)]
        said.append(
            {"role": "assistant", "tool_calls": [{"id": i, "type": "function", "function": f} for i, f in body]}
        )
        said += [{"role": "tool", "tool_call_id": i, "content": f["arguments"]} for i, f in body]
    path = tmp_path_factory.mktemp("ids") / "x.jsonl"
    path.write_text("".join(json.dumps(m) + "\n" for m in said) if lines else json.dumps({"messages": said}))
    s = rewrites.scanned(path)
    start = 2 + sum(2 * len(ids) for ids in turns[:first])
    live = (0, *range(start, len(s.blocks)))
    written = s.rewrite(Outcome(live, frozenset(range(1, start))))
    messages = list(map(json.loads, written.splitlines())) if lines else json.loads(written)["messages"]
    calls = {c["id"]: c["function"]["arguments"] for m in messages for c in m.get("tool_calls", ())}
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert calls == results and len(calls) == sum(map(len, turns[first:]))
