"""One summary in the place of many units: what the strategies that replace the old part have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxctl.compaction.base import Scene
from ctxctl.compaction.boundary import Group, held_tokens
from ctxctl.model.edits import SUMMARY, Drop, Edits, Replace
from ctxctl.model.window import Window

LEAST_SUMMARY = 120
"""Tokens below which a summary says nothing any more."""


def old_units(window: Window, old: Sequence[Group]) -> set[int]:
    """Units of an old part that may be replaced: not protected but for earlier summaries, which are merged."""
    protected = window.protected().difference(window.summaries)
    return {u for group in old for u in group.units if u not in protected}


def summary_room(scene: Scene, share: float, *, used: bool = False) -> int:
    """Tokens that a recent part may take beside what is held, so that a summary still fits behind it. used: instead the
    tokens of the summary, at most `share` of the target."""
    free = scene.target - held_tokens(scene.window, scene.window.summaries) - scene.frame
    return min(int(scene.target * share), free) if used else max(0, free - min(LEAST_SUMMARY, free // 2))


def replacing(scene: Scene, leaving: Iterable[int], text: str, reason: str) -> Edits:
    """The edits that put a text in the place of units, at the first of their blocks; empty when that is no shorter."""
    window = scene.window
    units = sorted(leaving)
    numbers = [b for u in units for b in window.present(u)]
    before = sum(window.entries[b].tokens for b in numbers)
    if not numbers:
        return Edits()
    carrier = min(numbers, key=window.place)
    tokens = scene.measure(carrier, text, summary=True)
    if tokens >= before:
        return Edits()
    drops = []
    for unit in units:
        gone = tuple(b for b in window.present(unit) if b != carrier)
        if gone:
            drops.append(Drop(unit, gone, sum(window.entries[b].tokens for b in gone), reason))
    return Edits(drops, (Replace(carrier, text, tokens, reason, SUMMARY),), reason=reason)
