"""What a manager decided, and what it would do."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.model.edits import Drop, Edits


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an eviction would do (requirement E10). ranking: every unit that may leave, the first to go first; going:
    how many of them would go. freed: their tokens; prefix_kept: tokens of the cached prefix that would stay, behind:
    tokens that the next request would read anew."""

    ranking: tuple[Drop, ...]
    going: int
    freed: int
    prefix_kept: int
    behind: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What the manager decided at a turn.

    action: `none`, `evaluate` (yellow: nothing changes), `act`, `forced`, `emergency`. tokens: before it; after: when
    it was carried out. reasons: why. floor: tokens below which nothing more may leave, when the target was not met;
    causes: what holds them. outlook: at `evaluate`, what acting would do.
    """

    action: str
    turn: int
    tokens: int
    after: int
    level: str
    edits: Edits
    reasons: tuple[str, ...] = ()
    floor: int | None = None
    causes: tuple[tuple[str, int], ...] = ()
    outlook: Outlook | None = None
