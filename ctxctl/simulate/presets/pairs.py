"""Where a boundary may lie, and what happens to a call that is cut from its result."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.items import LOST
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.schema import Pair

FORWARD = frozenset(("snap_forward_user", "snap_forward_assistant", "cut_at_assistant", "atomic_units"))
OPEN = frozenset(("none", "repair_after", "removed_range_ends_on_assistant", "snap_forward_non_observation"))
"""Rules under which a boundary may part a call from its result: nothing protects them, or a repair follows."""


def snap(groups: Sequence[Group], start: int, head: int, rule: Pair) -> int:
    """Where the kept part really begins, when a cut wants it at `start`; from `head` on. The length of the list means
    that nothing is kept."""
    end = len(groups)
    if rule == "walk_back_to_call":
        while head < start < end and groups[start].side == "result":
            start -= 1
    elif rule == "snap_back_user":
        while head < start and (start >= end or not groups[start].prompt):
            start -= 1
    elif rule == "snap_forward_user":
        while start < end and not groups[start].prompt:
            start += 1
    elif rule in ("snap_forward_assistant", "cut_at_assistant"):
        while start < end and groups[start].side != "assistant":
            start += 1
    elif rule in ("snap_forward_non_observation", "atomic_units"):
        while start < end and groups[start].side == "result":
            start += 1
    elif rule == "never_cut_at_result":
        legal = next((n for n in range(start, end) if groups[n].side != "result"), None)
        if legal is None:
            legal = next((n for n in range(start - 1, head, -1) if groups[n].side != "result"), head)
        start = legal
    elif rule == "head_ends_with_assistant":
        while head < start and groups[start - 1].side != "assistant":
            start -= 1
    return start if rule in OPEN else _closed(groups, start, forward=rule in FORWARD)


def _closed(groups: Sequence[Group], start: int, *, forward: bool) -> int:
    """The nearest boundary that no pair straddles: results that came late, behind other messages."""
    spans: dict[int, tuple[int, int]] = {}
    for place, group in enumerate(groups):
        if group.side in ("assistant", "result"):
            for item in group.items:
                if item.call_id is not None and item.unit >= 0:
                    first, _ = spans.get(item.unit, (place, place))
                    spans[item.unit] = (first, place)
    moved = True
    while moved:
        moved = False
        for first, last in spans.values():
            if first < start <= last:
                start = last + 1 if forward else first
                moved = True
    return start


def inward(groups: Sequence[Group], head: int) -> int:
    """A head that ends at the edge of a unit: calls in it take their results along."""
    return _closed(groups, head, forward=True)


def repair(changes: Changes, missing: str | None) -> None:
    """Results without their call leave; calls that lost their result say so. missing: what stands for one."""
    window = changes.window
    here: dict[int, set[str]] = {}
    for item in changes.items.list:
        if item.unit >= 0 and item.side in ("assistant", "result") and item.call_id is not None:
            here.setdefault(item.unit, set()).add("call" if item.kind == "tool_call" else "result")
    orphans = []
    for item in changes.items.list:
        sides = here.get(item.unit, set()) if item.call_id is not None and item.unit >= 0 else set()
        if not sides or len(sides) == 2 or item.side not in ("assistant", "result"):
            continue
        unit = window.units[item.unit]
        whole = any(window.blocks[b].kind == "tool_call" for b in unit.blocks)
        if item.side == "result" and whole:
            orphans.append(item)
        elif item.kind == "tool_call" and not unit.pending and unit.number not in window.pending:
            if missing is None:
                orphans.append(item)
            elif item.mark != LOST:
                text = f"{item.text}\n{missing}"
                changes.resize(item, text, item.tokens + changes.count(missing, "tool_result"), LOST)
    changes.drop(orphans)
