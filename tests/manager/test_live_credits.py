"""What a live manager credits is what the trace of the recorded session credits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl import load_models
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.unit import Trace
from ctxctl.trace.build import build_trace

WORDS = ["src/app/main.py", "load_config", "4711", "config.yaml", "retry_count", "src/app/db.py", "the", "a", "12345"]
LINES = ["def load_config(path): return open(path)", "retry_count = 4711  # as it was measured", "nothing"]

words = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
texts = st.lists(words | st.sampled_from(LINES), max_size=4).map("\n".join)
calls = st.tuples(st.sampled_from(["Read", "Bash"]), st.sampled_from(WORDS[:6]))
turns = st.tuples(texts, st.lists(st.tuples(calls, texts), max_size=3), st.none() | texts)


def arguments(call: tuple[str, str]) -> str:
    return json.dumps({"path" if call[0] == "Read" else "command": call[1]})


def recorded(session: list[Any], path: Path) -> Trace:
    """The session as a file of chat messages, read back."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are kind. config.yaml"},
        {"role": "user", "content": "Fix src/app/main.py, please"},
    ]
    for n, (text, made, asked) in enumerate(session):
        answer: dict[str, Any] = {"role": "assistant", "content": text}
        if made:
            answer["tool_calls"] = [
                {"id": f"c{n}.{k}", "type": "function", "function": {"name": call[0], "arguments": arguments(call)}}
                for k, (call, _) in enumerate(made)
            ]
        messages.append(answer)
        for k, (_, result) in enumerate(made):
            messages.append({"role": "tool", "tool_call_id": f"c{n}.{k}", "content": result})
        if asked is not None:
            messages.append({"role": "user", "content": asked})
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return build_trace(str(path), load_models(), pins_of(EvictionOptions())).trace


def live(session: list[Any]) -> list[dict[int, int]]:
    """How often each turn uses which units."""
    manager = ContextWindowManager(10**9, policy="unbounded", eviction=EvictionOptions(reference_turns=10**6))
    window = manager.window
    manager.add("system", "You are kind. config.yaml")
    manager.add("user_message", "Fix src/app/main.py, please")
    credits = []
    for n, (text, made, asked) in enumerate(session):
        manager.turn_start()
        before = dict(window.references)
        ids = [(f"c{n}.{k}", call[0], arguments(call)) for k, (call, _) in enumerate(made)]
        manager.turn_end(text, calls=ids)
        after = window.references
        credits.append({unit: n - before.get(unit, 0) for unit, n in after.items() if n != before.get(unit, 0)})
        for k, (_, result) in enumerate(made):
            manager.tool_result(result, call_id=f"c{n}.{k}")
        if asked is not None:
            manager.add("user_message", asked)
    return credits


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(turns.filter(lambda turn: turn[0].strip() or turn[1]), min_size=1, max_size=6))
def test_live_and_recorded_credit_the_same(tmp_path: Path, session: list[Any]) -> None:
    # readers leave out empty texts, which a live loop may register
    session = [
        (text, [(call, result or "-") for call, result in made], asked if asked and asked.strip() else None)
        for text, made, asked in session
    ]
    session = [(text if text.strip() else "", made, asked) for text, made, asked in session]
    trace = recorded(session, tmp_path / "session.json")
    assert live(session) == [dict(turn.credits) for turn in trace.turns[: len(session)]]


def test_a_session_that_uses_what_it_read(tmp_path: Path) -> None:
    session = [
        ("I look.", [(("Read", "config.yaml"), "retry_count = 4711  # as it was measured")], None),
        ("So retry_count is 4711.", [(("Read", "src/app/db.py"), "nothing")], None),
        ("Again.", [(("Read", "src/app/db.py"), "nothing")], None),
        ("Done.", [], None),
    ]
    assert live(session)[1] == {3: 2}
    assert live(session)[2]
    trace = recorded(session, tmp_path / "s.json")
    assert dict(trace.turns[1].credits) == {3: 2}


@pytest.mark.parametrize("kind", ["user_message", "system"])
def test_what_is_pinned_is_not_credited(kind: str) -> None:
    manager = ContextWindowManager(10**6)
    manager.add(kind, "look at src/app/main.py")
    manager.turn_start()
    manager.turn_end("I look at src/app/main.py")
    assert manager.window.references == {}
