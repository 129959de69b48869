"""What replaying a trace under one policy gave, in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a replay. prompt: tokens of the request; cached: those in common with the request before; dropped:
    blocks of units that left, shrunk: tokens by which content became less; missed: references that were; refetched:
    tokens that came in again after it."""

    turn: int
    prompt: int
    cached: int
    dropped: int
    shrunk: int
    refs: int
    missed: int
    refetched: int
    level: str
    action: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """One unit that left. block: id of its first one, None for what the engine had put in itself; line: where it
    stands. score, parts: of a policy that ranks."""

    turn: int
    block: str | None
    kind: str
    tool: str | None
    target: str | None
    line: int | None
    tokens: int
    score: float | None
    parts: Mapping[str, float] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Floor:
    """The target could not be met: at this turn nothing more could leave. tokens: what stayed; causes: what held
    them."""

    turn: int
    tokens: int
    causes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """One policy over one trace.

    Per call, in order: prompts (tokens sent), cached (of them in common with the request before, 0 where the cache's
    life had passed), outputs. helper: (prompt, cached, output) of each call that a compaction made. evictions: units;
    edits: turns at which something changed. hits, misses: references; weight, missed_weight: with their weights, the
    headline classes alone. demand: tokens that would be fetched again if nothing stayed. refetched: what the misses
    cost. missed_turns, used_turns: turns with a miss, with a reference. first_uses, first_misses: references to what
    the agent had not repeated itself before, and how many of them were missed. breaks: per change of the window, tokens
    of the prompt behind it and tokens that it freed.
    """

    policy: str
    capacity: int
    trigger: float
    target: float
    prompts: Sequence[int]
    cached: Sequence[int]
    outputs: Sequence[int]
    helper: Sequence[tuple[int, int, int]]
    evictions: int
    evicted_tokens: int
    compactions: int
    compacted_tokens: int
    edits: int
    overflow_turns: int
    hits: int
    misses: int
    weight: float
    missed_weight: float
    used_turns: int
    missed_turns: int
    first_uses: int
    first_misses: int
    demand: int
    refetched: int
    refetches: int
    excess_rereads: int
    breaks: Sequence[tuple[int, int]]
    floor: Floor | None
    steps: Sequence[Step] = ()
    evicted: Sequence[Evicted] = ()
    unsupported: str | None = None

    @property
    def peak(self) -> int:
        """The longest prompt."""
        return max(self.prompts, default=0)

    @property
    def rmr(self) -> float | None:
        """Weighted misses / weighted references; None without a reference."""
        return self.missed_weight / self.weight if self.weight else None

    @property
    def miss_ratio(self) -> float | None:
        """Tokens fetched again / tokens demanded; None without demand."""
        return self.refetched / self.demand if self.demand else None
