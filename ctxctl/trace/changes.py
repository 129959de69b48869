"""Two windows block by block: what stayed word for word, what something else stands for, what is gone, what is new."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from ctxctl.model.block import Block

SUMMARY = "summary"
_CLASS = {"memory_injection": "user_message", "summary": "user_message"}
"""Kinds that not every format can tell apart: for a comparison they are one."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Numbers of blocks in the sequences that were compared. kept, replaced: pairs (before, after); lost: of the first,
    added: of the second, in their order."""

    kept: tuple[tuple[int, int], ...]
    replaced: tuple[tuple[int, int], ...]
    lost: tuple[int, ...]
    added: tuple[int, ...]


def compare(before: Sequence[Block], after: Sequence[Block]) -> Changes:
    """Match two windows. Equal blocks are kept: those that are the only ones of their text first, then the others in
    their order between these, then wherever they are. Of the rest, those of one call id and kind belong together, then,
    between two kept neighbours, those of one kind and tool in their order. A summary replaces no single block."""
    partner = _equal(before, after)
    replaced = _replaced(before, after, partner)
    taken = {*partner.values(), *replaced.values()}
    return Changes(
        tuple(sorted(partner.items())),
        tuple(sorted(replaced.items())),
        tuple(n for n in range(len(before)) if n not in partner and n not in replaced),
        tuple(n for n in range(len(after)) if n not in taken),
    )


Key = tuple[str, ...]


def _equal(before: Sequence[Block], after: Sequence[Block]) -> dict[int, int]:
    """Numbers of equal blocks. Which of several equal ones a block is, is told by its place between unique ones."""
    keys, others = [_key(b) for b in before], [_key(b) for b in after]
    count, other_count = Counter(keys), Counter(others)
    where = {key: n for n, key in enumerate(others)}
    partner = {n: where[key] for n, key in enumerate(keys) if count[key] == other_count[key] == 1}
    gap_before = _gaps(len(before), {n: n for n in partner})
    gap_after = _gaps(len(after), {other: n for n, other in partner.items()})
    for near in (True, False):
        taken = set(partner.values())
        waiting: dict[tuple[int, Key], deque[int]] = {}
        for n, key in enumerate(others):
            if n not in taken:
                waiting.setdefault((gap_after[n] if near else 0, key), deque()).append(n)
        for n, key in enumerate(keys):
            if n not in partner and (same := waiting.get((gap_before[n] if near else 0, key))):
                partner[n] = same.popleft()
    return partner


def _key(block: Block) -> Key:
    """What makes two blocks the same: kind and text, and the picture's size where there is no text."""
    media = block.media
    shape = () if media is None or block.text else (str(media.mime), str(media.size), str(media.width))
    return (_kind(block), block.text, *shape)


def _kind(block: Block) -> str:
    return _CLASS.get(block.kind, block.kind)


def _replaced(before: Sequence[Block], after: Sequence[Block], partner: dict[int, int]) -> dict[int, int]:
    taken = set(partner.values())
    free = [n for n in range(len(after)) if n not in taken and after[n].kind != SUMMARY]
    by_call: dict[tuple[str, str], int] = {}
    for n in reversed(free):
        if (call_id := after[n].call_id) is not None:
            by_call[after[n].kind, call_id] = n
    found: dict[int, int] = {}
    left: list[int] = []
    for n, block in enumerate(before):
        if n in partner:
            continue
        match = by_call.pop((block.kind, block.call_id), None) if block.call_id is not None else None
        if match is None:
            left.append(n)
        else:
            found[n] = match
    used = set(found.values())
    gaps: dict[tuple[int, str, str | None], deque[int]] = {}
    gap_after = _gaps(len(after), {b: a for a, b in partner.items()})
    for n in free:
        if n not in used:
            gaps.setdefault((gap_after[n], _kind(after[n]), after[n].tool_name), deque()).append(n)
    own = {n: n for n in partner}
    gap_before = _gaps(len(before), own)
    for n in left:
        block = before[n]
        same = gaps.get((gap_before[n], _kind(block), block.tool_name))
        if same:
            found[n] = same.popleft()
    return found


def _gaps(length: int, kept: dict[int, int]) -> list[int]:
    """For each number of a sequence the nearest kept one in front of it, named by its number before; -1 for none."""
    found, current = [], -1
    for n in range(length):
        current = kept.get(n, current)
        found.append(current)
    return found
