"""Attention: what lies beyond the watermark, and what lies in the weak middle of a long window (requirement P7)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MIDDLE = (0.25, 0.75)
"""The weak middle, as shares of the window's content from its start. Models find what stands at either end and miss
what stands between (Liu et al. 2023, "Lost in the Middle", figures 1 and 5)."""
DEPTH = 0.5
"""How much of the visibility the middle loses in a full window; an assumption, half of what that study measured."""
HALF_LIFE = 40
"""Turns after which age halves the visibility; an assumption."""


@dataclass(frozen=True, slots=True)
class WeakMiddle:
    """Tokens of each that lie in the weak middle. None: not measured; 0: nothing of it lies there."""

    goal: int | None = None
    constraints: int | None = None
    pinned: int | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """watermark: utilization beyond which quality is expected to fall. tokens_beyond: above it now, None without a
    window. goal_visibility: expected visibility of the goal, 0..1."""

    watermark: float
    tokens_beyond: int | None
    weak_middle: WeakMiddle
    goal_visibility: float | None = None


def expected_visibility(position: float, age: int, relevance: float, utilization: float) -> float:
    """How likely the model still sees a block, 0..1: the product of three parts.

    position: 0 at the start of the window, 1 at its end; the middle loses more the fuller the window is. age: turns
    since it came in. relevance: to the current task, 0..1; what is wholly unrelated keeps half.
    """
    by_position = 1 - DEPTH * min(1.0, utilization) * 4 * position * (1 - position)
    by_age: float = 0.5 ** (age / HALF_LIFE)
    return by_position * by_age * (0.5 + 0.5 * relevance)


def relevance(text: str, task: str) -> float:
    """Share of the words of the task that a text has too, 0..1."""
    wanted = _words(task)
    return len(wanted & _words(text)) / len(wanted) if wanted else 0.0


def _words(text: str) -> set[str]:
    return {word for word in (raw.strip(".,;:!?()[]{}`'\"").lower() for raw in text.split()) if len(word) > 3}


def positions(order: Sequence[int], estimates: array[float], overhead: int) -> dict[int, float]:
    """Where the middle of each block of the window lies, 0 at its start and 1 at its end. overhead: tokens in front."""
    total = overhead + sum(estimates[b] for b in order)
    found, before = {}, float(overhead)
    for block in order:
        found[block] = (before + estimates[block] / 2) / total if total else 0.0
        before += estimates[block]
    return found


def in_middle(places: dict[int, float], spans: Iterable[tuple[int, int]]) -> int:
    """Tokens of spans (block, tokens) that lie in the weak middle; spans outside the window count nothing."""
    low, high = MIDDLE
    return sum(tokens for block, tokens in spans if low <= places.get(block, 0.0) <= high)
