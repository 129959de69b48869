"""Arguments that make no sense are refused; odd sessions work all the same."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.eviction.base import POLICIES, Setting
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import KINDS

NAN = float("nan")


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        *[
            (ValueError, {name: value})
            for name in ("trigger", "target")
            for value in (0, -0.1, 1.01, NAN, float("inf"))
        ],
        *[(TypeError, {name: value}) for name in ("trigger", "target") for value in ("0.5", True)],
        (ValueError, {"trigger": 0.5, "target": 0.6}),
        *[(TypeError, {name: value}) for name in ("window", "overhead") for value in (1.5, NAN, True, None, "1")],
        (ValueError, {"window": 0}),
        (ValueError, {"window": -1}),
        (ValueError, {"overhead": -1}),
        (TypeError, {"policy": None}),
        (TypeError, {"policy": 3}),
        (TypeError, {"count": None}),
        *[(ValueError, {"policy": name}) for name in ("recorded", "optimum", "clairvoyant")],
    ],
)
def test_what_makes_no_sense_is_refused(error: type[Exception], arguments: dict[str, Any]) -> None:
    with pytest.raises(error):
        ContextWindowManager(**arguments)


@pytest.mark.parametrize("name", ["recorded", "optimum", "clairvoyant"])
def test_ceilings_need_a_recording(name: str, build_trace_of: Any) -> None:
    with pytest.raises(ValueError, match="needs a recording"):
        ContextWindowManager(policy=POLICIES.get(name)(Setting(100)))
    ContextWindowManager(policy=name, trace=build_trace_of(1))


def test_a_kind_that_is_not_known_names_those_that_are() -> None:
    manager = ContextWindowManager()
    with pytest.raises(ValueError, match=r"'user' is no kind of block; known: system, .*user_message") as raised:
        manager.add("user", "hello")
    assert all(kind in str(raised.value) for kind in KINDS)
    for text in (None, b"hello", 3):
        with pytest.raises(TypeError, match="text"):
            manager.add("user_message", text)  # type: ignore[arg-type]
    assert manager.window.tokens == 0 and not manager.window.entries


@pytest.mark.parametrize("name", ["prompt", "output"])
def test_tokens_of_a_turn_are_whole_numbers(name: str) -> None:
    manager = ContextWindowManager()
    for value in (1.5, NAN, True, "7"):
        with pytest.raises(TypeError, match=name):
            manager.turn_end(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=name):
        manager.turn_end(**{name: -1})
    assert manager.turn == 1


@pytest.mark.parametrize("count", [-1, NAN, float("inf"), None])
def test_a_counter_returns_a_number_of_tokens(count: Any) -> None:
    manager = ContextWindowManager(count=lambda text, kind: count)
    with pytest.raises(ValueError, match="count"):
        manager.add("user_message", "hello")


def test_a_counter_may_return_a_float() -> None:
    manager = ContextWindowManager(count=lambda text, kind: 2.0)  # type: ignore[arg-type, return-value]
    manager.add("user_message", "hello")
    assert manager.window.tokens == 2 and isinstance(manager.window.tokens, int)


def test_a_unit_that_is_not_known_does_not_come_in_again() -> None:
    manager = ContextWindowManager()
    manager.add("user_message", "hello")
    for unit in (1, -1, 99):
        with pytest.raises(ValueError, match=f"no unit {unit}"):
            manager.restore(unit)
    assert manager.restore(0) == 0


@pytest.mark.parametrize("policy", ["hybrid", "semantic", "mask", "clear", "sliding-window", "summarize"])
def test_odd_sessions_add_up(policy: str) -> None:
    manager = ContextWindowManager(400, policy=policy)
    came = 0
    for n in range(30):
        for kind, text, call in (
            ("user_message", "", None),
            ("tool_result", "no call " * 20, f"unknown-{n}"),
            ("tool_result", "same id " * 20, "twice"),
            ("tool_result", "", None),
            ("image", "", f"unknown-{n}"),
        ):
            manager.add(kind, text, call_id=call)
            came += -(-len(text) // 4)
            manager.window.check()
        decision = manager.turn_start()
        manager.window.check()
        assert decision.after == manager.window.tokens <= decision.tokens
        manager.turn_end("", calls=[("twice", "Read", "{}"), ("twice", "Read", "{}")])
        manager.tool_result("", call_id="twice")
        manager.window.check()
    assert 0 < manager.window.tokens < came
