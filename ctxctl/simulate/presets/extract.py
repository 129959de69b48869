"""octos: the old part becomes first lines, oldest first, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.facts.condense import first_line
from ctxctl.simulate.presets.carrier import replace_part
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.cuts import Cutter
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.items import Item
from ctxctl.simulate.presets.messages import Group, head_of
from ctxctl.simulate.presets.operations import Extract
from ctxctl.simulate.presets.pairs import repair, snap

RESULT = 100
"""Characters of a result's first line; of any other message 200."""


def lines_of(item: Item) -> list[str]:
    """What the extract says of one block."""
    line = first_line(item.text)
    if item.kind in ("image", "document"):
        return ["> User: [media omitted]"] if item.side == "user" else []
    if item.side == "result":
        told = "error" if item.text.startswith("Error:") else "ok"
        return [f"  -> {item.tool or 'tool'}: {told} - {first_line(item.text, RESULT)}"]
    if item.kind == "tool_call" and item.side == "assistant":
        return [f"- Called {item.tool or 'tool'}"]
    if item.kind == "thinking":
        return []
    if item.side == "assistant":
        return [f"> Assistant: {line}"]
    if item.side in ("system", "summary", "notice"):
        return [f"> Context: {line}"]
    return [f"> User: {line}"]


def summarised(groups: Sequence[Group], budget: float, stop: float, estimate: Estimate) -> str:
    """The extract of some messages within a budget of tokens; it ends where a share of that is used up."""
    found = [f"## Conversation Summary (compacted from {len(groups)} messages)"]
    used = 0.0
    for place, group in enumerate(groups):
        lines = [line for item in group.items for line in lines_of(item)]
        size = sum(estimate.measure(line, "summary", 0) for line in lines)
        if used >= stop * budget or used + size > budget:
            found.append(f"... ({len(groups) - place} earlier messages omitted)")
            break
        found += lines
        used += size
    return "\n".join(found)


def extract(step: Extract, changes: Changes, groups: list[Group], cutter: Cutter) -> None:
    """Replace the old part by its extract."""
    estimate, overhead = cutter.estimate, changes.window.overhead
    budget = cutter.tokens(step.budget)
    system = overhead + estimate.groups(g for g in groups[: head_of(groups)])
    if not step.own and system >= budget:
        return  # octos says that the system prompt is too long, and trims nothing
    part = cutter.part(step.cut, groups, overhead)
    start = part.start if part is not None else head_of(groups)
    recent = estimate.groups(groups[start:])
    if not step.own and system + recent >= budget:
        _drop_oldest(step, changes, groups, cutter, budget - system)
        return
    if part is None:
        return
    room = budget if step.own else budget - system - recent
    text = step.prefix + summarised(groups if step.whole else groups[part.head : part.start], room, step.stop, estimate)
    replace_part(changes, groups, part, "system" if step.merged else "summary", text, changes.count(text, "summary"))
    if cutter.preset.pair == "repair_after":
        repair(changes, cutter.preset.missing_result)


def _drop_oldest(step: Extract, changes: Changes, groups: list[Group], cutter: Cutter, room: float) -> None:
    """The fallback: the longest tail that fits stays, at least so many messages."""
    head = head_of(groups)
    start, total = len(groups), 0.0
    while start > head:
        size = cutter.estimate.group(groups[start - 1])
        if total + size > room and len(groups) - start >= step.min_keep:
            break
        total += size
        start -= 1
    start = snap(groups, start, head, "walk_back_to_call")
    changes.drop([i for g in groups[head:start] for i in g.items])
