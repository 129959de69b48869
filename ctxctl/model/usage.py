"""What the provider reported for one model call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat

from ctxctl.model.block import MAIN


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, deduplicated.

    input excludes what the cache served or stored, in every format; reasoning is part of output.
    context: tokens of the window on this call as the format defines it (prompt side; Codex: prompt and answer), None
    when the transcript states it wrongly or not at all.
    cache_write_1h: the part of cache_write that is kept for an hour.
    line: where it was last stated. cost: USD as recorded, if recorded. time: seconds since 1970.
    reported: False for a call of which the transcript states no usage.
    """

    turn: int
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    context: int | None = None
    line: int = 0
    thread: str = MAIN
    model: str | None = None
    cost: float | None = None
    time: float | None = None
    cache_write_1h: int = 0
    reported: bool = True

    @property
    def prompt(self) -> int:
        """Tokens sent: input and cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Tokens billed: prompt and output."""
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """Sums over model calls. requests: how many; inherited: what a fork repeats from its parent, not in total."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total: int = 0
    requests: int = 0
    inherited: int = 0
    cost: float | None = None

    def __add__(self, other: UsageTotals) -> UsageTotals:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "cost"}
        costs = [t.cost for t in (self, other) if t.cost is not None]
        return UsageTotals(**sums, cost=sum(costs) if costs else None)


def total_usage(calls: Iterable[Usage], inherited: int = 0) -> UsageTotals:
    """Sum over the calls that report usage. cost: of all calls that recorded one; None when none did, and when one that
    reports usage did not, since a part would be taken for the whole bill."""
    new, output, read, write, reasoning, requests = 0, 0, 0, 0, 0, 0
    cost: float | None = None
    whole = True
    for call in calls:
        if call.cost is not None:
            cost = (cost or 0.0) + call.cost
        if not call.reported:
            continue
        whole &= call.cost is not None
        new += call.input
        output += call.output
        read += call.cache_read
        write += call.cache_write
        reasoning += call.reasoning
        requests += 1
    total = new + output + read + write
    return UsageTotals(new, output, read, write, reasoning, total, requests, inherited, cost if whole else None)


_GROWING = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning", "context", "cost")


def merge_copies(sessions: Iterable[tuple[Sequence[Usage], Sequence[int]]]) -> tuple[list[list[Usage]], int]:
    """The calls of each session without those that an earlier session holds too (forks, resumed copies), and how many
    those were. Copies may state different figures, as a stream was cut or not: per field the maximum is kept.

    sessions: calls and their keys, equal for copies of one call; a key of 0 and no keys at all name no call.
    """
    where: dict[int, tuple[list[Usage], int]] = {}
    merged: list[list[Usage]] = []
    copies = 0
    for calls, keys in sessions:
        own: list[Usage] = []
        merged.append(own)
        for call, key in zip(calls, keys or repeat(0), strict=False):
            if key and call.reported:
                if key in where:
                    group, at = where[key]
                    group[at] = _larger(group[at], call)
                    copies += 1
                    continue
                where[key] = own, len(own)
            own.append(call)
    return merged, copies


def _larger(one: Usage, other: Usage) -> Usage:
    changes = {}
    for name in _GROWING:
        mine, theirs = getattr(one, name), getattr(other, name)
        if theirs is not None and (mine is None or theirs > mine):
            changes[name] = theirs
    return replace(one, **changes) if changes else one
