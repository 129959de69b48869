"""What fills the window: tokens by kind and by tool, and the largest blocks."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace

from ctxctl.model.block import KINDS
from ctxctl.trace.tally import ERROR, Tally


@dataclass(frozen=True, slots=True)
class KindShare:
    """Blocks and tokens of one kind; share: of all tokens, 0..1."""

    blocks: int
    tokens: int
    share: float


@dataclass(frozen=True, slots=True)
class ToolShare:
    """Calls of one tool, the tokens of its calls and results, and how many failed."""

    calls: int
    tokens: int
    share: float
    errors: int


@dataclass(frozen=True, slots=True)
class LargeBlock:
    """One of the largest blocks. target: what its call acts on."""

    block: str
    kind: str
    tool: str | None
    tokens: int
    turn: int
    source: dict[str, int]
    target: str | None


@dataclass(frozen=True, slots=True)
class Composition:
    """by_kind: in the order of KINDS; by_tool: largest first; largest: at most `most` blocks."""

    by_kind: dict[str, KindShare]
    by_tool: dict[str, ToolShare]
    largest: tuple[LargeBlock, ...] = ()


def block_id(tally: Tally, parts: Sequence[tuple[int, str]], number: int) -> str:
    """The id of a block, as the reader gave it."""
    prefix = next((name for first, name in reversed(parts) if number >= first), "")
    return f"{prefix}{tally.line[number]}.{tally.index[number]}"


def compose(
    tally: Tally, estimates: array[float], blocks: Iterable[int], parts: Sequence[tuple[int, str]] = (), most: int = 0
) -> Composition:
    """The composition of some blocks."""
    count = [0] * len(KINDS)
    sums = [0.0] * len(KINDS)
    calls: dict[int, int] = {}
    spent: dict[int, float] = {}
    failed: dict[int, int] = {}
    call_kind = KINDS.index("tool_call")
    largest: list[tuple[float, int]] = []
    for b in blocks:
        kind, tool, estimate = tally.kind[b], tally.tool[b], estimates[b]
        count[kind] += 1
        sums[kind] += estimate
        if tool:
            spent[tool] = spent.get(tool, 0.0) + estimate
            if kind == call_kind:
                calls[tool] = calls.get(tool, 0) + 1
            if tally.flags[b] & ERROR:
                failed[tool] = failed.get(tool, 0) + 1
        if most:
            if len(largest) < most:
                heappush(largest, (estimate, -b))
            elif (estimate, -b) > largest[0]:
                heapreplace(largest, (estimate, -b))
    total = sum(sums)
    share = (lambda tokens: tokens / total) if total else (lambda tokens: 0.0)
    return Composition(
        {KINDS[k]: KindShare(count[k], round(sums[k]), share(sums[k])) for k in range(len(KINDS)) if count[k]},
        {
            tally.names[tool]: ToolShare(calls.get(tool, 0), round(tokens), share(tokens), failed.get(tool, 0))
            for tool, tokens in sorted(spent.items(), key=lambda item: (-item[1], tally.names[item[0]]))
        },
        tuple(_large(tally, estimates, parts, -b) for _, b in sorted(largest, reverse=True)),
    )


def _large(tally: Tally, estimates: array[float], parts: Sequence[tuple[int, str]], b: int) -> LargeBlock:
    return LargeBlock(
        block_id(tally, parts, b),
        KINDS[tally.kind[b]],
        tally.names[tally.tool[b]] or None,
        round(estimates[b]),
        tally.turn[b],
        {"line": tally.line[b], "index": tally.index[b]},
        tally.names[tally.target[b]] or None,
    )
