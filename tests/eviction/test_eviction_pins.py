"""What never leaves the window, and what may not leave now (requirement E8)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions, Rule
from ctxctl.eviction.pins import pins_of
from ctxctl.model.block import KINDS, Block, Source


def block(kind: str, text: str = "text", **more: Any) -> Block:
    fields: dict[str, Any] = {"role": "user", "turn": 1, "exchange": 1, "source": Source(1)} | more
    return Block(fields.pop("id", "1.0"), kind, text=text, **fields)


def reason(found: Block, **options: Any) -> str | None:
    return pins_of(EvictionOptions(**{"pin_task": False, **options}))(found)


@pytest.mark.parametrize("kind", KINDS)
def test_by_kind(kind: str) -> None:
    assert reason(block(kind)) == (kind if kind in ("system", "tool_definitions") else None)
    assert reason(block(kind), protected_types=("document",)) == (
        kind if kind in ("system", "tool_definitions", "document") else None
    )


def test_the_message_that_states_the_task() -> None:
    pinned = pins_of(EvictionOptions())
    assert pinned(block("user_message", "before any exchange", exchange=0, message=1)) is None
    assert pinned(block("user_message", "  \n", message=2)) is None
    assert pinned(block("user_message", "Fix it.", message=3)) == "task"
    assert pinned(block("user_message", "Its second block.", message=3)) == "task"
    assert pinned(block("user_message", "And that.", message=4)) is None
    assert pinned(block("assistant", "Fixed.", message=3)) is None
    assert reason(block("user_message", "Fix it."), pin_task=False) is None


def test_a_block_that_is_marked() -> None:
    assert reason(block("tool_result", pinned=True)) == "pinned"


@pytest.mark.parametrize("kind", KINDS)
def test_preserve_only_in_what_the_user_or_the_system_prompt_says(kind: str) -> None:
    expected = {"system": "system", "tool_definitions": "tool_definitions", "user_message": "preserve"}.get(kind)
    assert reason(block(kind, "a <preserve>b</preserve> c")) == expected


@pytest.mark.parametrize(
    "text", ["<preserve> never closed", "</preserve> closed only", "no tag", "&lt;preserve>b</preserve>"]
)
def test_what_preserves_nothing(text: str) -> None:
    assert reason(block("user_message", text)) is None


def test_a_call_is_named_by_its_id() -> None:
    """With its result: a contract names what must stay by the id that its provider gave it."""
    named = (Rule(block="toolu_7"),)
    for kind in ("tool_call", "tool_result"):
        assert reason(block(kind, call_id="toolu_7"), pin=named) == "rule"
        assert reason(block(kind, call_id="toolu_8"), pin=named) is None
        assert reason(block(kind, id="toolu_7", call_id=None), pin=named) == "rule"
    assert reason(block("assistant"), pin=named) is None


RULES: list[tuple[dict[str, str], dict[str, Any], dict[str, Any]]] = [
    ({"kind": "assistant"}, {"kind": "assistant"}, {"kind": "thinking"}),
    ({"role": "tool"}, {"kind": "tool_result", "role": "tool"}, {"kind": "tool_result", "role": "user"}),
    ({"tool": "Read"}, {"kind": "tool_result", "tool_name": "Read"}, {"kind": "tool_result", "tool_name": "Reader"}),
    ({"path": r"\.md$"}, {"kind": "tool_result", "target": "a/b.md"}, {"kind": "tool_result", "target": "a/b.mdx"}),
    ({"path": r"\.md$"}, {"kind": "tool_result", "target": "b.md"}, {"kind": "tool_result"}),
    ({"regex": r"port \d+"}, {"kind": "assistant", "text": "at port 80."}, {"kind": "assistant", "text": "at port x"}),
    ({"block": "7.1"}, {"kind": "assistant", "id": "7.1"}, {"kind": "assistant", "id": "7.10"}),
    (
        {"tool": "Bash", "regex": "ok"},
        {"kind": "tool_result", "tool_name": "Bash", "text": "ok"},
        {"kind": "tool_result", "tool_name": "Read", "text": "ok"},
    ),
]


@pytest.mark.parametrize(("rule", "fits", "other"), RULES)
def test_by_rule(rule: dict[str, str], fits: dict[str, Any], other: dict[str, Any]) -> None:
    pin = (Rule(**rule),)
    assert reason(block(**fits), pin=pin) == "rule"
    assert reason(block(**other), pin=pin) is None


def test_a_rule_needs_a_condition_that_can_hold() -> None:
    with pytest.raises(ValueError, match="condition"):
        Rule()
    with pytest.raises(ValueError, match="no kind of block"):
        Rule(kind="result")
    with pytest.raises(ValueError, match="no regular expression"):
        Rule(regex="(")


def test_pinned_units_are_not_ranked_and_never_leave(build: Any) -> None:
    builder = build(EvictionOptions(pin=(Rule(tool="Keep"),)))
    system = builder.add(1, "system", 100)
    task = builder.add(1, "user_message", 100)
    kept = builder.call(1, 100, tool="Keep")
    gone = builder.call(1, 100)
    later = builder.add(2, "assistant", 600)
    manager = builder.manager(1000, "fifo", target=0.1)
    decision = builder.run(manager)[-1]
    assert {b for d in decision.edits.drops for b in d.blocks} == {gone - 1, gone, later}
    assert set(manager.window.entries) == {system, task, kept - 1, kept}
    assert decision.floor == 310
    assert dict(decision.causes) == {"system": 100, "task": 100, "rule": 110}


def test_what_may_not_leave_now(build: Any) -> None:
    """Calls without a result, results that no call has answered, and the message of the current exchange."""
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "user_message", 100)
    answered = builder.call(2, 100)
    asked = builder.add(3, "user_message", 100)
    pending = builder.add(3, "tool_call", 100, call="open", tool="Wait")
    fresh = builder.call(3, 100)
    manager = builder.manager(600, "fifo", target=0.01)
    first, second, third = builder.run(manager)
    assert not first.edits and not second.edits
    assert {b for d in third.edits.drops for b in d.blocks} == {0, answered - 1, answered}
    assert set(manager.window.entries) == {asked, pending, fresh - 1, fresh}
    assert dict(third.causes) == {
        "current exchange": 100,
        "calls without a result": 100,
        "results not answered yet": 110,
    }
    manager.turn_end()
    decision = manager.overflow()
    assert [d.blocks for d in decision.edits.drops] == [(fresh - 1, fresh)]


def test_a_call_that_its_result_pins_is_pinned_as_a_whole(build: Any) -> None:
    """Live, the call comes in before anything says that its unit is pinned."""
    from ctxctl.manager.manager import ContextWindowManager

    options = EvictionOptions(pin=(Rule(regex="precious"),), pin_task=False)
    manager = ContextWindowManager(1000, policy="fifo", eviction=options, target=0.01, trigger=0.1)
    manager.turn_start()
    manager.turn_end("", calls=[("c", "Read", "{}")])
    manager.tool_result("a precious result " * 20, call_id="c")
    manager.turn_start()
    manager.turn_end("x" * 400)
    manager.turn_start()
    manager.window.check()
    assert [manager.window.blocks[b].kind for b in manager.window.entries] == ["tool_call", "tool_result"]
    assert not manager.window.resident
