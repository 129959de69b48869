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


SUMMARY = "summary"
"""Kind of a replacement that stands for more than its own block: it becomes a message of its own."""


class Replace(NamedTuple):
    """A block's content becomes `text` of `tokens` tokens. text None: it is not known (a model would write it), so that
    nothing of what it held is taken to survive. kind: SUMMARY where the text stands for other blocks too, which leave
    in the same edits; it is then a message of the user's role, at the place of the block."""

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
class Note:
    """An entry for the notes file, to be written before the edits are applied (requirement C3). type: decision, done,
    lesson, issue or plan."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Edits:
    """Drops, then replacements, then insertions. entries: notes to be written first. helper: each call that a model
    made for them, as (prompt, output, shares_prefix): tokens, and whether it goes on with the conversation as last
    sent, under the same system prompt and tools, so that a cache can serve that. reason: why the strategy acted at
    all."""

    drops: Sequence[Drop] = ()
    replaces: Sequence[Replace] = ()
    inserts: Sequence[Insert] = ()
    helper: Sequence[tuple[int, int, bool]] = field(default=())
    reason: str = ""
    entries: Sequence[Note] = ()

    def __bool__(self) -> bool:
        return bool(self.drops or self.replaces or self.inserts or self.helper)


class Change(NamedTuple):
    """What stands for a block in the end. summary: the text stands for other blocks too (SUMMARY)."""

    text: str
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The net of all edits of a transcript's window, which is what a writer needs.

    live: numbers of the blocks that stay, in the order of the window. gone: of those that left. changed: of those that
    stay, what stands for them.
    """

    live: Sequence[int]
    gone: frozenset[int] = frozenset()
    changed: Mapping[int, Change] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.gone or self.changed)


def joined(one: Edits, other: Edits) -> Edits:
    """Two edits in a row as one; what the first replaced and the second took out again is not replaced."""
    if not one:
        return other
    if not other:
        return one
    later = {b for drop in other.drops for b in drop.blocks} | {change.block for change in other.replaces}
    return Edits(
        (*one.drops, *other.drops),
        (*(change for change in one.replaces if change.block not in later), *other.replaces),
        (*one.inserts, *other.inserts),
        (*one.helper, *other.helper),
        one.reason or other.reason,
    )
