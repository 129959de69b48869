"""Edits: what a strategy decides about a window. It changes nothing itself; `Window.apply` does and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Drop(NamedTuple):  # a tuple, as Replace is: long sessions make them by the ten thousand
    """Blocks of one unit leave. score and parts: of a policy that ranks (requirement E10)."""

    unit: int
    blocks: tuple[int, ...]
    tokens: int
    reason: str
    score: float | None = None
    parts: Mapping[str, float] | None = None


class Replace(NamedTuple):
    """A block's content becomes `text` of `tokens` tokens. text None: it is not known (a model would write it), so that
    nothing of what it held is taken to survive."""

    block: int
    text: str | None
    tokens: int
    reason: str
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """A new block at the end of the window."""

    kind: str
    role: str
    text: str | None
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Edits:
    """Drops, then replacements, then insertions. helper: each call that a model made for them, as (prompt,
    output, shares_prefix): tokens, and whether it goes on with the conversation as last sent, under the same system
    prompt and tools, so that a cache can serve that. reason: why the strategy acted at all."""

    drops: Sequence[Drop] = ()
    replaces: Sequence[Replace] = ()
    inserts: Sequence[Insert] = ()
    helper: Sequence[tuple[int, int, bool]] = field(default=())
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.drops or self.replaces or self.inserts or self.helper)
