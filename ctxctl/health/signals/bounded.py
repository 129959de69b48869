"""Few findings rather than many: what a session shows again and again is told by its worst cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ctxctl.model.finding import Finding

MOST = 10
"""Findings of one detector in one session."""


def costliest(found: Iterable[tuple[float, Callable[[], Finding]]], most: int = MOST) -> Iterator[Finding]:
    """Of what was found, with what each costs (tokens) and what makes its finding, the dearest, in the order of turns;
    the last one tells of the others."""
    ranked = sorted(found, key=lambda pair: -pair[0])  # stable: of equal ones the first
    chosen = [make() for _, make in ranked[:most]]
    chosen.sort(key=lambda finding: (finding.turn or 0, finding.message))
    if left := ranked[most:]:
        tokens = round(sum(cost for cost, _ in left))
        more = f"; {len(left):,} more like it, {tokens:,} tokens in all, are not listed"
        chosen[-1] = replace(chosen[-1], message=chosen[-1].message + more)
    yield from chosen


def times(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def listed(turns: Iterable[int], most: int = 5) -> str:
    """`turn 4`, `turns 4, 9 and 12`, `turns 4, 5, 6, ... and 40`: the first ones and the last."""
    every = [f"{turn:,}" for turn in dict.fromkeys(turns)]
    if len(every) == 1:
        return f"turn {every[0]}"
    if len(every) > most:
        every = [*every[: most - 2], "...", every[-1]]
    return f"turns {', '.join(every[:-1])} and {every[-1]}"
