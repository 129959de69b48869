"""Summaries that stand in a transcript for what was there before: several as one, and the turns that they cover."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ctxctl.facts.merge import merge
from ctxctl.model.summary import SessionSummary


def one_of(before: list[tuple[int, int, SessionSummary]], whole: bool, resumed: Container[int] = ()) -> SessionSummary:
    """Earlier summaries as one. Of those that other agents wrote the newest covers the ones before it, and so it is of
    resume prompts. whole: what they replaced is there too, so that the user's words need not be taken from them.
    resumed: numbers of the resume prompts among them."""
    base = SessionSummary()
    newest = max((number for number, _, _ in before if number in resumed), default=None)
    before = [entry for entry in before if entry[0] not in resumed or entry[0] == newest]
    alien = [at for at, (number, _, found) in enumerate(before) if not found.turns[1] and number not in resumed]
    for at, (_, _, found) in enumerate(before):
        if at not in alien:
            base = merge(base, found)
        elif at == alien[-1]:
            base = merge(base, replace(found, requests=()) if whole else found)
    return base


def span_of(
    turns: list[tuple[int, int]], gone: Container[int], before: list[tuple[int, int, SessionSummary]]
) -> tuple[int, int]:
    """First and last turn covered. A file that was written after a compaction counts its turns anew: they come behind
    those that its summary covers."""
    live = [turn for number, turn in turns if number not in gone]
    if not live:
        return (0, 0)
    first, last = max(1, min(live)), max(live)
    for _, turn, found in before:
        if found.turns[1]:
            last += max(0, found.turns[1] - (turn - 1)) if turn <= found.turns[1] else 0
            first = min(first, found.turns[0])
    return (first, last)
