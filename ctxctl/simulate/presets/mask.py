"""Old results are cleared from a budget of tokens on, counted from the newest back."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.clear import results
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.items import CLEARED, Item
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.operations import ClearBudget
from ctxctl.simulate.presets.tools import is_one_of


def clear_budget(step: ClearBudget, changes: Changes, groups: Sequence[Group], estimate: Estimate) -> None:
    """Clear what lies beyond the protected budget, if that frees enough; the result that crosses it goes too."""
    seen = freed = 0.0
    chosen: list[Item] = []
    exchanges = 0
    last = len(groups) - step.skip_messages
    for place in range(len(groups) - 1, -1, -1):
        group = groups[place]
        if group.prompt:
            exchanges += 1
        if group.side == "summary" and step.stop_at_cleared:
            break
        if group.side != "result" or place >= last or exchanges < step.skip_exchanges:
            continue
        stop = False
        for item in reversed(results(group.items)):
            if item.mark == CLEARED:
                stop = step.stop_at_cleared
                if stop:
                    break
                continue
            if is_one_of(item.tool, step.exempt):
                continue
            size = estimate.item(item)
            seen += size
            if seen > step.protect:
                chosen.append(item)
                freed += size
        if stop:
            break
    if freed > step.minimum if step.more else freed >= step.minimum:
        for item in reversed(chosen):
            text = _text(step, item)
            if not step.if_smaller or estimate.text(text) < estimate.item(item):
                changes.rewrite(item, text, CLEARED)


def _text(step: ClearBudget, item: Item) -> str:
    if not step.preview_characters:
        return step.placeholder
    return step.placeholder.replace("{preview}", _preview(step, item))


def _preview(step: ClearBudget, item: Item) -> str:
    text = item.text
    if is_one_of(item.tool, step.shells):
        lines, most = text.split("\n"), step.preview_lines
        if len(lines) <= 2 * most:
            return text
        return "\n".join((*lines[:most], f"... [{len(lines) - 2 * most} lines omitted] ...", *lines[-most:]))
    most = step.preview_characters
    if len(text) <= 2 * most:
        return text
    return f"{text[:most]}\n... [{len(text) - 2 * most} characters omitted] ...\n{text[-most:]}"
