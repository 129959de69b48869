"""Lines that stand for old messages: who spoke and how it began, what was called and how it ended (requirement C10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ctxctl.compaction.base import Scene
from ctxctl.compaction.boundary import Group
from ctxctl.facts.condense import Clean, first_line
from ctxctl.model.block import Block

LINE, RESULT = 200, 100
"""Characters of a line, and of what a result says."""
SPEAKERS = {
    "user_message": "> User: ",
    "assistant": "> Assistant: ",
    "system": "> Context: ",
    "memory_injection": "> Context: ",
}


def digest(scene: Scene, groups: Iterable[Group], leaving: set[int]) -> list[str]:
    """A line for each block of the units that leave, in order. Arguments of calls and reasoning never appear, earlier
    summaries are merged elsewhere."""
    window = scene.window
    found: list[str] = []
    for group in groups:
        numbers = [b for u in group.units if u in leaving for b in window.present(u)]
        for number in sorted(numbers, key=window.place):
            if line := line_of(scene.told(number), scene.clean):
                found.append(line)
    return found


def line_of(block: Block, clean: Clean | None = None) -> str:
    """The line of one block; empty for kinds that have none."""
    if block.kind in SPEAKERS:
        said = first_line(block.text, LINE, clean)
        return SPEAKERS[block.kind] + said if said else ""
    if block.kind == "tool_call":
        return f"- Called {block.tool_name or 'unknown'}"
    if block.kind == "tool_result":
        failed = block.is_error or block.text.lstrip().startswith("Error:")
        said = first_line(block.text, RESULT, clean)
        return f"  -> {block.tool_name or 'tool'}: {'error' if failed else 'ok'} - {said}".rstrip(" -")
    return " [media omitted]" if block.kind in ("image", "document") else ""


def fit(lines: Sequence[str], most: int, count: Callable[[str], int], head: int = 1) -> str:
    """As many lines as so many tokens hold: the first `head`, then the newest, with a count of those left out between
    them. Empty when not even the count fits."""
    text = "\n".join(lines)
    if count(text) <= most:
        return text
    sizes = [count(line) + 1 for line in lines]
    opening = list(range(min(head, len(lines))))
    left = most - sum(sizes[i] for i in opening) - count(f"(… {len(lines):,} lines left out)") - 1
    if left < 0:
        opening, left = [], most - count(f"(… {len(lines):,} lines left out)") - 1
    start = len(lines)
    while start > len(opening) and sizes[start - 1] <= left:
        start -= 1
        left -= sizes[start]
    gone = start - len(opening)
    shown = [*(lines[i] for i in opening), f"(… {gone:,} lines left out)", *lines[start:]]
    text = "\n".join(shown)
    return text if count(text) <= most else ""
