"""mask and clear: old tool results become a line."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.eviction.base import Setting
from ctxctl.eviction.options import EvictionOptions, Rule
from ctxctl.eviction.specs import policy_of
from ctxctl.facts.condense import is_placeholder, placeholder
from ctxctl.manager.manager import ContextWindowManager


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
    manager = builder.manager(10_000, "clear:trigger=10,keep=0,exclude=Read+Grep")
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


@pytest.mark.parametrize("taken", [0, 1, 2, 3, 5])
def test_clear_does_not_count_what_was_taken_back(taken: int, build: Any) -> None:
    """The newest results that are there stay, whatever came and went after them."""
    builder = session(build, 9)  # results 2, 4, ... 16
    manager = builder.manager(10_000, "clear:trigger=9000,keep=3")
    builder.run(manager, end=True)
    for result in range(16, 16 - 2 * taken, -2):
        manager.leave([result - 1, result])
    manager.policy._limit = 1
    there = [b for b in range(2, 17, 2) if b in manager.window.entries]
    decision = manager.turn_start()
    assert [c.block for c in decision.edits.replaces] == there[:-3]
    manager.window.check()
    manager.turn_end()
    assert not manager.turn_start().edits


def test_clear_puts_back_what_had_waited_for_more(build: Any) -> None:
    builder = session(build, 9)
    manager = builder.manager(10_000, "clear:trigger=10,keep=2,at_least=560")
    assert replaced(builder.run(manager, end=True)) == {}
    manager.leave([13, 14, 15, 16])
    manager.policy.parameters = type(manager.policy.parameters)(10, 2, 300)
    assert [c.block for c in manager.turn_start().edits.replaces] == [2, 4, 6, 8]


class Counted:
    """Counts as the default does, and how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str, kind: str) -> int:
        self.calls += 1
        return -(-len(text) // 4)


QUADRATIC = [
    ("mask:keep=3", "ok", 1),
    ("mask:keep=3,min_saving=1000000000", "", 200),
    ("mask:keep=3,every=1000", "", 200),
    ("clear:trigger=2,keep=3", "ok", 1),
    ("clear:trigger=2,keep=3,at_least=1000000000", "", 200),
    ("clear:trigger=2,keep=3,exclude=Read", "", 200),
    ("clear:trigger=2,keep=1000", "", 200),
]


@pytest.mark.parametrize(("policy", "text", "tokens"), QUADRATIC)
def test_each_result_is_counted_once_however_long_it_waits(policy: str, text: str, tokens: int, build: Any) -> None:
    count = Counted()
    builder = build()
    builder.add(1, "user_message", 10)
    for turn in range(2, 402):
        builder.call(turn, tokens, text)
    setting = Setting(10**9, count)
    manager = ContextWindowManager(10**9, policy=policy_of(policy, setting), trace=builder.trace())
    builder.run(manager)
    assert count.calls <= 400


@pytest.mark.parametrize(("policy", "text", "tokens"), QUADRATIC)
def test_a_long_session_takes_time_in_proportion(policy: str, text: str, tokens: int, build: Any) -> None:
    """Five times the turns take about five times as long; with a queue that is gone through each turn, 25 times."""
    took = []
    for turns in (1600, 8000):
        builder = build()
        builder.add(1, "user_message", 10)
        for turn in range(2, turns):
            builder.call(turn, tokens, text)
        manager = builder.manager(10**9, policy, explain=False)
        trace = builder.trace()
        begun = process_time()
        for turn in trace.turns:
            for number in turn.arrivals:
                manager.enter(number)
            manager.turn_start()
            manager.turn_end(credits=())
        took.append(process_time() - begun)
    assert took[1] < 12 * took[0] + 0.5


def test_masked_blocks_that_left_do_not_count_for_what_one_has_to_free(build: Any) -> None:
    builder = session(build, 6)
    manager = builder.manager(10**6, "mask:keep=1,min_saving=300")
    assert replaced(builder.run(manager, end=True)) == {6: [2, 4, 6, 8]}
    manager = builder.manager(10**6, "mask:keep=1,min_saving=300")
    for turn in builder.trace().turns:
        for number in turn.arrivals:
            manager.enter(number)
        if turn.index == 6:
            manager.leave([1, 2])
        assert not manager.turn_start().edits
        manager.turn_end()
    assert [c.block for c in manager.turn_start().edits.replaces] == [4, 6, 8, 10]


def test_a_result_that_came_in_again_is_new(build: Any) -> None:
    """Also when it had waited to be cleared before it left."""
    builder = session(build, 6)
    manager = builder.manager(10**6, "mask:keep=2,min_saving=300")
    builder.run(manager, end=True)
    unit = builder.unit(2)
    for number in (1, 2):
        manager.window.drop(number)
    manager.restore(unit)
    manager.turn_start()
    manager.turn_end()
    assert not manager.window.entries[2].replaced
    manager.policy.parameters = type(manager.policy.parameters)(2, 1, 0)
    assert 2 not in [c.block for c in manager.turn_start().edits.replaces]


def due(manager: ContextWindowManager, came: list[tuple[int, int]], last: int) -> list[int]:
    """By the text of the rules: which results are due now. came: (turn, result), the last to come in last; last: turn
    of the last masking."""
    window, policy = manager.window, manager.policy
    told, setting = policy.parameters, policy.setting
    whole = {n: turn for turn, n in came if n in window.entries and not window.entries[n].replaced}
    order = [n for at, (_, n) in enumerate(came) if n in whole and n not in [m for _, m in came[at + 1 :]]]
    if policy.name == "mask":
        if window.turn - last < told.every:
            return []
        order = sorted((n for n in order if whole[n] <= window.turn - told.keep), key=order.index)
        least = told.min_saving
    else:
        if window.tokens <= policy._limit:
            return []
        order = order[: max(0, len(order) - told.keep)]
        least = told.at_least
    found, saved = [], 0
    for n in order:
        freed = window.entries[n].tokens - setting.count(placeholder(window.blocks[n], window.entries[n].tokens), "")
        if freed > 0 and window.unit_of[n] not in window.fresh:
            found.append(n)
            saved += freed
    return found if saved >= least else []


STEPS = st.lists(
    st.tuples(st.lists(st.sampled_from([1, 12, 40]), max_size=3), st.sampled_from("-----lr"), st.integers(0, 30)),
    min_size=1,
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(
    steps=STEPS,
    policy=st.sampled_from(
        [
            "mask:keep=0",
            "mask:keep=2",
            "mask:keep=1,min_saving=60",
            "mask:keep=1,every=3",
            "clear:trigger=2,keep=0",
            "clear:trigger=100,keep=2",
            "clear:trigger=2,keep=2,at_least=70",
            "clear:trigger=2,keep=5",
        ]
    ),
)
def test_mask_and_clear_do_what_their_rules_say(steps: Any, policy: str, build: Any) -> None:
    builder = build()
    builder.add(1, "user_message", 10)
    for turn, (sizes, *_) in enumerate(steps, 2):
        for size in sizes:
            builder.call(turn, size)
    manager = builder.manager(10**6, policy)
    window = manager.window
    came: list[tuple[int, int]] = []
    last = 0
    for turn in builder.trace(len(steps) + 1).turns:
        for number in turn.arrivals:
            manager.enter(number)
            if builder.blocks[number].kind == "tool_result":
                came.append((turn.index, number))
        expected = due(manager, came, last)
        decision = manager.turn_start()
        assert sorted(c.block for c in decision.edits.replaces) == sorted(expected)
        window.check()
        last = turn.index if expected else last
        manager.turn_end()
        what, which = steps[turn.index - 2][1:] if turn.index > 1 else ("-", 0)
        if came and what != "-":
            number = came[which % len(came)][1]
            unit = builder.unit(number)
            if what == "l":
                manager.leave([b for b in (number - 1, number) if b in window.entries])
            else:
                for b in list(window.present(unit)):
                    window.drop(b)
                if manager.restore(unit):
                    came.append((window.turn, number))
