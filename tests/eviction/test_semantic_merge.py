"""Near duplicates become one; what that does not free goes by hybrid (requirement E5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxctl.eviction.options import EvictionOptions, Rule

LINES = [f"src/module_{n}.py: value = {n * 1111}" for n in range(40)]
FILE = "\n".join(LINES)


def merged(builder: Any, window: int = 1000, **more: Any) -> Any:
    """The last decision, at a window that everything but duplicates fits into."""
    manager = builder.manager(window, "semantic", **{"target": 0.75, **more})
    *before, last = builder.trace().turns
    for turn in before:
        for number in turn.arrivals:
            manager.enter(number)
        manager.turn_end()
    for number in last.arrivals:
        manager.enter(number)
    decision = manager.turn_start()
    manager.window.check()
    return manager, decision


def test_the_newest_stays_with_the_lines_that_it_lacks(build: Any) -> None:
    builder = build()
    first = builder.call(1, 400, FILE)
    builder.add(1, "assistant", 100)
    second = builder.call(2, 400, "\n".join([*LINES[:36], "something = new"]))
    builder.add(3, "assistant", 10)
    manager, decision = merged(builder)
    (drop,) = decision.edits.drops
    assert drop.blocks == (first - 1, first)
    assert drop.reason == f"merged into {second}.0, 4 lines carried over"
    (change,) = decision.edits.replaces
    assert (change.block, change.reason) == (second, f"merged: lines from {first}.0 (4)")
    assert change.text == "\n".join([*LINES[:36], "something = new", f"[from {first}.0]", *LINES[36:]])
    assert 400 < change.tokens < 480
    assert manager.window.text(second) == change.text
    assert decision.edits.reason == "near duplicates merged"


def test_what_is_left_goes_by_hybrid_and_says_so(build: Any) -> None:
    builder = build()
    first = builder.call(1, 400, FILE)
    builder.call(2, 400, FILE)
    other = builder.add(2, "memory_injection", 300, "\n".join(f"note {n}" for n in range(9)))
    builder.add(3, "assistant", 10)
    manager, decision = merged(builder, target=0.6, window=1000)
    reasons = {drop.blocks: drop.reason for drop in decision.edits.drops}
    assert reasons[(first - 1, first)].startswith("merged into")
    (rest,) = [drop for drop in decision.edits.drops if drop.reason == "hybrid"]
    assert rest.parts is not None and set(rest.parts) == {"freshness", "priority", "type_ttl", "reference"}
    assert other in manager.window.entries or rest.blocks == (other,)


def test_several_become_one_and_each_part_is_known(build: Any) -> None:
    builder = build()
    numbers = [builder.call(turn, 400, "\n".join([*LINES[turn - 1 :], f"only in {turn}"])) for turn in (1, 2, 3)]
    builder.add(4, "assistant", 10)
    _manager, decision = merged(builder, window=1400)
    assert {d.blocks for d in decision.edits.drops} == {(n - 1, n) for n in numbers[:2]}
    (change,) = decision.edits.replaces
    assert change.block == numbers[2]
    for line in (*LINES, "only in 1", "only in 2", "only in 3"):
        assert change.text.split("\n").count(line) == 1, line
    text = change.text.split("\n")
    assert text.index(f"[from {numbers[0]}.0]") < text.index("only in 1")
    assert text.index(f"[from {numbers[1]}.0]") < text.index("only in 2")


def test_exact_duplicates_always_merge(build: Any) -> None:
    """However short, when the same call gave the same; whatever the similarity asked for."""
    builder = build(EvictionOptions(similarity=1.0))
    first = builder.call(1, 300, "status: running")
    second = builder.call(2, 300, "status: running")
    builder.call(3, 300, "status: done")
    builder.add(4, "assistant", 10)
    _manager, decision = merged(builder)
    (drop,) = decision.edits.drops
    assert drop.blocks == (first - 1, first)
    assert drop.reason.startswith(f"merged into {second}.0, 0 lines")
    assert not decision.edits.replaces


def test_a_long_call_stays_when_its_result_is_merged(build: Any) -> None:
    builder = build()
    first = builder.call(1, 300, FILE, size=200, arguments="one edit")
    second = builder.call(2, 300, FILE, size=200, arguments="another edit")
    builder.add(3, "assistant", 10)
    _manager, decision = merged(builder)
    assert not decision.edits.drops
    (change,) = decision.edits.replaces
    assert (change.block, change.text) == (first, f"[same as {second}.0]")


def test_a_pointer_names_where_the_content_is(build: Any) -> None:
    builder = build()
    numbers = [builder.call(turn, 300, FILE, size=200, arguments=str(turn)) for turn in (1, 2, 3)]
    builder.add(4, "assistant", 10)
    _, decision = merged(builder, window=1500)
    assert {c.block: c.text for c in decision.edits.replaces} == {n: f"[same as {numbers[2]}.0]" for n in numbers[:2]}


def test_bound_reasoning_keeps_its_calls(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    for turn, response in ((2, "r1"), (3, "r2")):
        builder.add(turn, "thinking", 20, response=response)
        builder.call(turn, 400, FILE, response=response)
    builder.add(4, "assistant", 10)
    _manager, decision = merged(builder)
    assert not decision.edits.drops
    assert [c.text for c in decision.edits.replaces] == ["[same as 6.0]"]


KINDS = ["user_message", "assistant", "document", "memory_injection", "summary", "thinking"]


@pytest.mark.parametrize("kind", KINDS)
def test_exact_duplicates_of_every_kind_merge_however_short(kind: str, build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    for turn in (1, 2, 3):
        builder.add(turn, kind, 300, "yes, go on")
    builder.add(4, "user_message", 10)
    _, decision = merged(builder)
    assert [drop.blocks for drop in decision.edits.drops] == [(0,), (1,)]
    assert all(drop.reason.startswith("merged into") for drop in decision.edits.drops)


def test_what_people_wrote_merges_only_as_a_whole(build: Any) -> None:
    """Lines of one message are not carried over into another, and an answer beside a picture is another answer."""
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "user_message", 400, FILE)
    builder.add(2, "user_message", 400, f"{FILE}\nand hurry")
    builder.add(3, "user_message", 10)
    assert all(drop.reason == "hybrid" for drop in merged(builder)[1].edits.drops)
    beside = build(EvictionOptions(pin_task=False))
    first = beside.add(1, "user_message", 400, "fix this")
    picture = beside.add(1, "image", 100, call=None)
    for number in (first, picture):
        beside.blocks[number] = replace(beside.blocks[number], message=first)
    beside.add(2, "user_message", 400, "fix this")
    beside.add(3, "user_message", 10)
    assert all(drop.reason == "hybrid" for drop in merged(beside)[1].edits.drops)


def test_what_is_pinned_stays_and_its_duplicates_go(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 300, "fix the login")
    again = [builder.add(turn, "user_message", 300, "fix the login") for turn in (2, 3)]
    builder.add(4, "user_message", 10, "thanks")
    manager, decision = merged(builder)
    assert [drop.blocks for drop in decision.edits.drops] == [(number,) for number in again]
    assert all(drop.reason == "merged into 0.0, 0 lines carried over" for drop in decision.edits.drops)
    assert 0 in manager.window.entries


def test_the_message_of_the_current_exchange_stays(build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, "user_message", 400, "go on")
    builder.add(2, "user_message", 400, "go on")
    manager, decision = merged(builder, target=0.1)
    assert [drop.blocks for drop in decision.edits.drops] == [(0,)]
    assert set(manager.window.entries) == {1}


def test_bound_reasoning_does_not_merge(build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    for turn, response in ((2, "r1"), (3, "r2")):
        builder.add(turn, "thinking", 300, "I look at it.", response=response)
        builder.call(turn, 100, f"result {turn}", response=response)
    builder.add(4, "assistant", 10)
    _manager, decision = merged(builder, target=0.7)
    assert all(drop.reason == "hybrid" for drop in decision.edits.drops)
    builder.add(5, "user_message", 10)
    _manager, decision = merged(builder, target=0.75)
    assert [(drop.blocks, drop.reason[:11]) for drop in decision.edits.drops] == [((1,), "merged into")]


def test_asking_what_would_merge_changes_nothing(build: Any) -> None:
    builder = build()
    for turn in (1, 2, 3):
        builder.call(turn, 300, f"{FILE}\nonly in {turn}")
    for turn in (2, 3):
        builder.add(turn, "assistant", 30, "on it")
    builder.add(4, "assistant", 10)
    manager = builder.manager(10**6, "semantic")
    builder.run(manager)
    window, policy = manager.window, manager.policy
    window.fresh.clear()
    first = policy.merge(window, window.protected())
    assert first.drops and first.replaces
    assert policy.merge(window, window.protected()) == first
    window.apply(first)
    assert not policy.merge(window, window.protected())
    window.check()


@pytest.mark.parametrize("kind", ["user_message", "assistant", "document", "memory_injection"])
def test_long_texts_of_one_kind_merge(kind: str, build: Any) -> None:
    builder = build(EvictionOptions(pin_task=False))
    builder.add(1, kind, 400, FILE)
    builder.add(2, kind, 400, FILE)
    builder.add(3, "user_message", 10)
    _, decision = merged(builder)
    assert [d.blocks for d in decision.edits.drops] == [(0,)]


def test_kinds_do_not_mix(build: Any) -> None:
    """Tool output must not end up in what a person said."""
    builder = build(EvictionOptions(pin_task=False))
    builder.call(1, 400, FILE)
    builder.add(2, "user_message", 400, FILE)
    builder.add(3, "user_message", 10)
    _, decision = merged(builder)
    assert all(drop.reason == "hybrid" for drop in decision.edits.drops)


def test_pinned_blocks_are_neither_dropped_nor_altered(build: Any) -> None:
    options = EvictionOptions(pin=(Rule(regex="precious"),), pin_task=False)
    builder = build(options)
    builder.add(1, "document", 300, f"precious\n{FILE}")
    builder.add(2, "document", 300, FILE)
    builder.add(2, "document", 300, "precious\n" + "\n".join(LINES[:38]))
    builder.add(3, "assistant", 10)
    manager, _ = merged(builder)
    assert {0, 2} <= set(manager.window.entries)
    assert not manager.window.entries[0].replaced and not manager.window.entries[2].replaced


def test_a_result_that_no_call_has_answered_is_not_altered(build: Any) -> None:
    builder = build()
    first = builder.call(1, 400, FILE)
    second = builder.call(2, 400, "\n".join(LINES[:38]))
    manager, decision = merged(builder, target=0.82)
    assert not decision.edits.replaces
    assert first in manager.window.entries or decision.edits.drops[0].reason == "hybrid"
    manager, decision = merged(builder, window=10_000)
    assert not decision.edits
    manager.turn_end()
    manager.trigger = manager.target = 0.05
    assert second in [change.block for change in manager.turn_start().edits.replaces]


def test_a_result_that_holds_all_of_an_older_one_need_not_be_altered(build: Any) -> None:
    builder = build()
    first = builder.call(1, 400, FILE)
    second = builder.call(2, 400, f"{FILE}\nmore")
    manager, decision = merged(builder)
    assert [d.blocks for d in decision.edits.drops] == [(first - 1, first)]
    assert not decision.edits.replaces and second in manager.window.entries


def test_below_the_trigger_nothing_merges(build: Any) -> None:
    builder = build()
    builder.call(1, 200, FILE)
    builder.call(2, 200, FILE)
    builder.add(3, "assistant", 10)
    _, decision = merged(builder)
    assert decision.action == "none" and not decision.edits


def test_what_was_merged_merges_again(build: Any) -> None:
    builder = build()
    first, *_, third, fourth = (builder.call(turn, 400, f"{FILE}\nonly in {turn}") for turn in (1, 2, 3, 4))
    manager = builder.manager(1500, "semantic", target=0.75)
    decisions = builder.run(manager)
    assert all(drop.reason.startswith("merged") for d in decisions for drop in d.edits.drops)
    assert set(manager.window.entries) == {third - 1, third, fourth - 1, fourth}
    text = manager.window.text(third)
    assert all(text.split("\n").count(f"only in {turn}") == 1 for turn in (1, 2, 3))
    assert f"[from {first}.0]" in text
    assert text.count(LINES[0]) == 1


def test_a_block_without_known_text_does_not_merge(build: Any) -> None:
    builder = build()
    first = builder.call(1, 400, FILE)
    builder.call(2, 400, FILE)
    builder.add(3, "assistant", 10)
    manager = builder.manager(10**6, "semantic")
    builder.run(manager)
    manager.window.replace(first, None, 390)
    assert not manager.policy.merge(manager.window, set())
