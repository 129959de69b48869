"""mask and clear: old tool results become a line."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions, Rule
from ctxctl.facts.condense import is_placeholder


def session(build: Any, turns: int = 12, **more: Any) -> Any:
    """One result of 100 tokens per turn from turn 2 on; results are blocks 2, 4, 6, ..."""
    builder = build(more.pop("options", None))
    builder.add(1, "user_message", 10)
    for turn in range(2, turns + 1):
        builder.call(turn, 100, target=f"f{turn}.py", **more)
    return builder


def replaced(decisions: Any) -> dict[int, list[int]]:
    return {d.turn: [c.block for c in d.edits.replaces] for d in decisions if d.edits}


def test_mask_keeps_the_newest_turns(build: Any) -> None:
    builder = session(build)
    manager = builder.manager(10**6, "mask:keep=3")
    decisions = builder.run(manager)
    assert replaced(decisions) == {turn: [2 * (turn - 4)] for turn in range(5, 13)}
    assert manager.window.text(2) == "[cleared: Read f2.py, 100 tokens]"
    assert all(c.reason == "older than 3 turns" for d in decisions for c in d.edits.replaces)
    assert {d.action for d in decisions} == {"none", "act"}


def test_mask_in_batches(build: Any) -> None:
    builder = session(build)
    decisions = builder.run(builder.manager(10**6, "mask:keep=3,every=4"))
    assert replaced(decisions) == {5: [2], 9: [4, 6, 8, 10]}


def test_mask_waits_until_it_is_worth_it(build: Any) -> None:
    builder = session(build)
    decisions = builder.run(builder.manager(10**6, "mask:keep=1,min_saving=250"))
    assert replaced(decisions) == {5: [2, 4, 6], 8: [8, 10, 12], 11: [14, 16, 18]}


def test_mask_with_nothing_to_keep_leaves_what_no_call_has_answered(build: Any) -> None:
    builder = session(build, 4)
    decisions = builder.run(builder.manager(10**6, "mask:keep=0"))
    assert replaced(decisions) == {3: [2], 4: [4]}


def test_clear_above_its_trigger(build: Any) -> None:
    builder = session(build)
    decisions = builder.run(builder.manager(1000, "clear:trigger=0.5,keep=2"))
    assert replaced(decisions)[6] == [2, 4, 6]
    by_tokens = builder.run(builder.manager(10**9, "clear:trigger=500,keep=2"))
    assert replaced(by_tokens) == replaced(decisions)
    assert min(replaced(decisions)) == 6  # 10 + 5 x 110 is more than 500


def test_clear_only_when_enough_would_go(build: Any) -> None:
    builder = session(build)
    decisions = builder.run(builder.manager(1000, "clear:trigger=0.3,keep=2,at_least=400"))
    sizes = [sum(d.tokens - d.after for d in decisions if d.turn == turn) for turn in replaced(decisions)]
    assert sizes and min(sizes) >= 400


def test_clear_leaves_the_tools_that_it_is_told(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    tools = ["Read", "Bash", "Grep", "Read", "Bash", "Grep", "Read"]
    for turn, tool in enumerate(tools, 2):
        builder.call(turn, 100, tool=tool)
    manager = builder.manager(100, "clear:trigger=0.1,keep=0,exclude=Read+Grep")
    decisions = builder.run(manager)
    cleared = {builder.blocks[b].tool_name for blocks in replaced(decisions).values() for b in blocks}
    assert cleared == {"Bash"}


@pytest.mark.parametrize("policy", ["mask:keep=0", "clear:trigger=0.01,keep=0"])
def test_pinned_results_stay(policy: str, build: Any) -> None:
    builder = session(build, options=EvictionOptions(pin=(Rule(path=r"f[23]\.py"),)))
    decisions = builder.run(builder.manager(1000, policy))
    assert {2, 4}.isdisjoint(b for blocks in replaced(decisions).values() for b in blocks)
    assert replaced(decisions)


@pytest.mark.parametrize("policy", ["mask:keep=0", "clear:trigger=0.01,keep=0"])
def test_each_result_is_replaced_once_and_calls_stay(policy: str, build: Any) -> None:
    builder = session(build)
    manager = builder.manager(1000, policy)
    decisions = builder.run(manager)
    every = [b for blocks in replaced(decisions).values() for b in blocks]
    assert len(every) == len(set(every))
    assert not any(d.edits.drops for d in decisions)
    assert len(manager.window.entries) == len(builder.blocks)
    assert all(not manager.window.entries[b].replaced for b in range(len(builder.blocks)) if b not in every)


@pytest.mark.parametrize("policy", ["mask:keep=0", "clear:trigger=0.01,keep=0"])
@pytest.mark.parametrize("text", ["[Old tool result content cleared]", "[cleared: Read a.py, 900 tokens]"])
def test_placeholders_stay_as_they_are(policy: str, text: str, build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    builder.call(2, 100, text)
    builder.add(3, "assistant", 10)
    assert is_placeholder(text)
    assert replaced(builder.run(builder.manager(1000, policy))) == {}


@pytest.mark.parametrize("policy", ["mask:keep=0", "clear:trigger=0.01,keep=0"])
def test_what_would_not_get_smaller_stays(policy: str, build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 100)
    builder.call(2, 3, "ok")
    builder.add(3, "assistant", 10)
    assert replaced(builder.run(builder.manager(1000, policy))) == {}


@pytest.mark.parametrize("policy", ["mask:keep=2", "clear:trigger=0.01,keep=2"])
def test_what_came_in_again_is_replaced_again(policy: str, build: Any) -> None:
    builder = session(build, 12)
    manager = builder.manager(1000, policy)
    builder.run(manager, end=True)
    assert manager.window.entries[2].replaced
    manager.restore(builder.unit(2))
    assert not manager.window.entries[2].replaced
    for _ in range(4):
        manager.turn_start()
        manager.window.check()
        manager.turn_end()
    if policy.startswith("mask"):
        assert manager.window.entries[2].replaced
