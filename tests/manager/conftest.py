"""A trace of some notes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper, Trace, Turn


def notes(*tokens: int, per_turn: int = 1) -> Trace:
    """One note after the other, so many a turn."""
    blocks = [Block(f"{n}.0", "memory_injection", "user", f"text {n}", 1, 1, Source(n + 1)) for n in range(len(tokens))]
    grouper = Grouper()
    turns: list[list[int]] = []
    for number, (block, size) in enumerate(zip(blocks, tokens, strict=True)):
        if number % per_turn == 0:
            turns.append([])
        turns[-1].append(number)
        grouper.add(block, size, len(turns))
    return Trace(
        None,
        "made",
        None,
        blocks,
        list(tokens),
        grouper.unit_of,
        grouper.units,
        [Turn(k, tuple(arrivals)) for k, arrivals in enumerate(turns, 1)],
        atoms=[()] * len(blocks),
    )


@pytest.fixture(scope="session")
def build_trace_of() -> Callable[..., Trace]:
    return notes
