"""octos: the old part becomes first lines, oldest first, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.carrier import replace_part
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.cuts import Cutter
from ctxctl.simulate.presets.estimate import rough_tokens
from ctxctl.simulate.presets.messages import Group, head_of
from ctxctl.simulate.presets.operations import Extract
from ctxctl.simulate.presets.pairs import repair, snap

LINE = 200
"""Characters of a first line that stay."""
RESULT = 100
"""Of a result's."""


def first_line(text: str, most: int = LINE) -> str:
    """The first line as it stands, empty or not; a longer one ends in three dots."""
    line = text.partition("\n")[0].removesuffix("\r")
    return line if len(line) <= most else f"{line[:most]}..."


def line_of(group: Group) -> str:
    """What the extract says of one message."""
    items = group.items
    text = next((i.text for i in items if i.kind not in ("tool_call", "thinking", "image", "document")), "")
    if group.side == "result":
        told = "error" if text.startswith("Error:") else "ok"
        tool = next((i.tool for i in items if i.tool), None) or "unknown_tool"
        return f"  -> {tool}: {told} - {first_line(text, RESULT)}"
    if group.side == "assistant":
        calls = [f"- Called {i.tool or 'tool'}" for i in group.calls]
        said = [f"{'  ' if calls else '> Assistant: '}{first_line(text)}"] if text else []
        return "\n".join((*calls, *said))
    if group.side in ("system", "summary", "notice"):
        return f"> Context: {first_line(text)}"
    media = " [media omitted]" if any(i.kind in ("image", "document") for i in items) else ""
    return f"> User: {first_line(text)}{media}"


def summarised(groups: Sequence[Group], budget: float, stop: float) -> str:
    """The extract of some messages within a budget of tokens; it ends where a share of that is used up."""
    found = [f"## Conversation Summary (compacted from {len(groups)} messages)\n"]
    used = rough_tokens(found[0])
    for place, group in enumerate(groups):
        line = line_of(group)
        size = rough_tokens(line)
        if used >= int(stop * budget) or used + size > budget:
            found.append(f"... ({len(groups) - place} earlier messages omitted)")
            break
        found.append(line)
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
    text = step.prefix + summarised(groups if step.whole else groups[part.head : part.start], room, step.stop)
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
