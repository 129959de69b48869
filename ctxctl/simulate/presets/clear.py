"""Old results become a placeholder by count or by rules; their messages, ids and order stay."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence

from ctxctl.model.window import Window
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.items import CLEARED, Item
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.operations import ClearByRule, ClearOld
from ctxctl.simulate.presets.tools import Files, is_one_of


def results(items: Sequence[Item]) -> list[Item]:
    """Tool results, oldest first, without their pictures."""
    return [i for i in items if i.side == "result" and i.kind == "tool_result"]


def clear_old(step: ClearOld, changes: Changes, groups: Sequence[Group]) -> None:
    """All but the newest results (of the tools that are meant) are cleared."""
    if step.keep_events is not None:
        old = [i for g in groups[: max(0, len(groups) - step.keep_events)] for i in g.items]
        chosen = [i for i in results(old) if not step.tools or is_one_of(i.tool, step.tools)]
    else:
        every = [
            i
            for g in groups
            if g.side == "result"
            for i in results(g.items)
            if (not step.tools or is_one_of(i.tool, step.tools)) and not is_one_of(i.tool, step.exempt)
        ]
        last = max(0, len(every) // step.polling * step.polling - step.keep_last)
        chosen = every[step.keep_first : last]
    chosen = [i for i in chosen if i.mark != CLEARED]
    texts = [_placeholder(step, i, changes.window) for i in chosen]
    sizes = [step.tokens if t is None else changes.count(t, "tool_result") for t in texts]
    if step.min_saving and sum(i.tokens - s for i, s in zip(chosen, sizes, strict=True)) < step.min_saving:
        return
    for item, text, size in zip(chosen, texts, sizes, strict=True):
        changes.resize(item, text, size, CLEARED)
        changes.drop(_pictures(item, changes))


def _placeholder(step: ClearOld, item: Item, window: Window) -> str | None:
    if step.placeholder is None:
        return None
    block = window.block(item.number)
    lines = item.text.count("\n") + 1
    return step.placeholder.replace("{lines}", str(lines)).replace("{url}", block.target or "")


def _pictures(item: Item, changes: Changes) -> list[Item]:
    """Pictures that are part of a result go with its text."""
    if item.call_id is None:
        return []
    numbers = changes.window.units[item.unit].blocks if item.unit >= 0 else ()
    found = [changes.items.by_number[b] for b in numbers if b in changes.items.by_number]
    return [i for i in found if i.kind in ("image", "document")]


def clear_by_rule(step: ClearByRule, changes: Changes, groups: Sequence[Group], files: Files, *, full: bool) -> None:
    """octos tier 1. full: all rules run; else those that may run within an exchange."""
    rules = {"stale", "oversized", "superseded"} if full else set(step.between)
    window = changes.window
    found = [(n, i) for n, g in enumerate(groups) if g.side == "result" for i in results(g.items)]
    prompts = [n for n, g in enumerate(groups) if g.prompt]
    whole = [i for _, i in found]
    newest = _newest(step, changes, whole, files) if step.superseded and "superseded" in rules else {}
    pinned = _pinned(step, changes, whole, files) if step.pin_files else set()
    for place, item in found:
        if item.mark == CLEARED or item.text.startswith(step.mark) or item.number in pinned:
            continue
        since = len(prompts) - bisect_right(prompts, place)
        size = len(item.text) if item.text.isascii() else len(item.text.encode("utf-8", "surrogatepass"))
        if newest.get(item.number, item.number) != item.number:
            reason = "tier1_superseded"
        elif step.stale_after is not None and "stale" in rules and since > step.stale_after:
            reason = "tier1_stale"
        elif step.larger_than is not None and "oversized" in rules and size > step.larger_than:
            reason = "tier1_oversized"
        else:
            continue
        changes.rewrite(item, _octos(step.mark, item, window, size, reason), CLEARED)
        changes.drop(_pictures(item, changes))


def _octos(mark: str, item: Item, window: Window, size: int, reason: str) -> str:
    """The placeholder of octos: its mark and a JSON object."""
    block = window.block(item.number)
    told = {
        "schema": "octos.tool_result_placeholder.v1",
        "schema_version": 1,
        "tool_name": item.tool or "",
        "tool_call_id": item.call_id or "",
        "turn_id": block.exchange,
        "original_byte_len": size,
        "reason": reason,
    }
    return mark + json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _newest(step: ClearByRule, changes: Changes, items: list[Item], files: Files) -> dict[int, int]:
    """Read -> the newest read of the same part of the same file."""
    by_key: dict[tuple[object, ...], int] = {}
    keys: dict[int, tuple[object, ...]] = {}
    for item in items:
        if is_one_of(item.tool, step.read_tools):
            path, part = files.of(item, changes.window)
            if path is not None:
                keys[item.number] = (path, part)
                by_key[(path, part)] = item.number
    return {number: by_key[key] for number, key in keys.items()}


def _pinned(step: ClearByRule, changes: Changes, items: list[Item], files: Files) -> set[int]:
    """The newest read of each of the files that were touched last, by reading or writing."""
    touched: dict[str, int | None] = {}
    for item in items:
        read = is_one_of(item.tool, step.read_tools)
        if read or is_one_of(item.tool, step.write_tools):
            path, _ = files.of(item, changes.window)
            if path is not None:
                newest = item.number if read else touched.get(path)
                touched.pop(path, None)
                touched[path] = newest
    recent = list(touched.values())[-step.pin_files :]
    return {number for number in recent if number is not None}
