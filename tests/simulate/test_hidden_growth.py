"""Growth that no block explains stands at the end of the window, and is no part of what was cached before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.block import Block, Source
from ctxctl.model.unit import group_blocks
from ctxctl.model.window import Window


def window(sizes: list[int], overhead: int = 0) -> Window:
    """Blocks of so many tokens, all resident."""
    blocks = [Block(f"{n}.0", "assistant", "assistant", "x", 1, 1, Source(n)) for n in range(1, len(sizes) + 1)]
    grouper = group_blocks(blocks, sizes, [1] * len(sizes))
    found = Window(blocks, grouper.unit_of, grouper.units, overhead)
    for number, size in enumerate(sizes):
        found.enter(number, size)
    return found


def test_growth_is_read_anew() -> None:
    w = window([1000, 1000, 1000])
    assert w.stable_prefix(0) == 0
    w.drop(2)
    assert w.grow(5000) == 5000
    assert w.tokens == 7000 and w.stable_prefix(3000) == 2000
    w.check()


def test_what_comes_after_growth_stands_behind_it() -> None:
    w = window([1000, 1000])
    w.grow(500)
    w.stable_prefix(0)
    w.replace(1, "y", 10)
    assert w.stable_prefix(2500) == 1000
    w.check()


def test_a_fall_takes_no_more_than_what_no_policy_evicts() -> None:
    w = window([1000], overhead=300)
    w.grow(200)
    assert w.grow(-10_000) == -500
    assert w.tokens == 1000
    w.check()


@given(st.lists(st.integers(-500, 500), max_size=20), st.integers(0, 400))
def test_sums_hold(steps: list[int], overhead: int) -> None:
    w = window([100, 200, 300], overhead)
    for step in steps:
        w.grow(step)
        w.check()
        assert w.tokens >= 600
    prompt = w.tokens
    assert w.settle(prompt + 7) == 7 and w.tokens == prompt + 7
