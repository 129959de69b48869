"""The typed session summary as text and back: Markdown within a budget of tokens, JSON, and two as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ctxctl.facts.condense import MARK
from ctxctl.facts.layout import EARLIER, GOAL, Section, sections
from ctxctl.facts.merge import merge
from ctxctl.facts.parse import parse
from ctxctl.facts.record import as_json, from_json
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import shortened

__all__ = ["as_json", "from_json", "merge", "parse", "render"]

Count = Callable[[str], int]

MISSES = 20
"""After so many items in a row that do not fit, the rest of a section is not tried."""
LINES = 60
"""Lines of a foreign summary are taken from so many tokens on: one or two of them tell nothing."""
NOTE = 8
"""Tokens set aside for the count of what was left out of a section."""


@dataclass(slots=True)
class _Chosen:
    """A section while it is filled. lines: its items as they will stand; taken: those that fit so far. cost: tokens of
    each line, counted once. before: how many earlier summaries had no place for."""

    title: str
    lines: list[str]
    order: list[int]
    taken: set[int] = field(default_factory=set)
    cost: dict[int, int] = field(default_factory=dict)
    opened: bool = False
    before: int = 0


def render(
    summary: SessionSummary, count: Count, most: int, *, mark: str = MARK, recall: str = "", omit_goal: bool = False
) -> str:
    """The summary as Markdown of at most `most` tokens by `count`: the mark with the turns that it covers, then the
    sections that hold something.

    The weightiest facts come first, and no section takes more than half of what is left before all had their turn.
    What does not fit is left out by whole items, with their number. recall: a command that brings the originals back.
    omit_goal: the message that states the task stays in the window. Even the mark alone may be above a tiny budget:
    then it is all there is.
    """
    first, last = summary.turns
    head = f"{mark} turns {first}-{last}\n" if last else f"{mark}\n"
    room = most - count(head) - NOTE
    if recall and (cost := count(line := f"Originals: {recall}\n")) * 8 <= room:
        head += line
        room -= cost
    made: list[_Chosen] = []
    if not omit_goal and summary.goal.strip():
        made.append(_goal(summary.goal, count, room // 2))
        room -= sum(made[0].cost.values())
    waiting = [_section(section) for section in sections(summary, omit_goal)]
    before = {item.section: item.count for item in summary.left_out}
    for chosen in waiting:
        chosen.before = before.pop(chosen.title.lower(), 0)
    if summary.earlier:
        lines = [f"> {line}\n" for line in summary.earlier]
        waiting.append(_Chosen(EARLIER, lines, list(range(len(lines)))))
    for chosen in waiting:
        if chosen.title != EARLIER:
            room -= _fill(chosen, count, room // 2)
    for chosen in waiting:
        if chosen.title != EARLIER or room >= LINES:
            room -= _fill(chosen, count, room)
    made.extend(waiting)
    made.extend(_Chosen(section, [], [], before=count_) for section, count_ in before.items())
    text = head + _written(made)
    if count(text) > most:
        text = head + _written(made, brief=True)
    while count(text) > most and _drop_one(made):
        text = head + _written(made, brief=True)
    return text.rstrip("\n")


def _section(section: Section) -> _Chosen:
    order = list(range(len(section.items)))
    return _Chosen(section.title, [f"- {item}\n" for item in section.items], order[::-1] if section.newest else order)


def _goal(goal: str, count: Count, room: int) -> _Chosen:
    """The goal, word for word as far as it fits."""
    lines = [f"> {line}\n" if line.strip() else ">\n" for line in goal.strip().split("\n")]
    chosen = _Chosen(GOAL, lines, list(range(len(lines))))
    used = count(f"## {GOAL}\n")
    for at, line in enumerate(lines):
        cost = count(line)
        if used + cost > room:
            cut = _cut(line, count, room - used)
            if cut:
                chosen.lines[at] = cut
                chosen.taken.add(at)
                chosen.cost[at] = count(cut)
            chosen.order = list(range(at + bool(cut)))
            chosen.lines = chosen.lines[: at + bool(cut)]
            break
        used += cost
        chosen.taken.add(at)
        chosen.cost[at] = cost
    chosen.opened = bool(chosen.taken)
    if chosen.opened:
        chosen.cost[-1] = count(f"## {GOAL}\n")
    return chosen


def _cut(line: str, count: Count, room: int) -> str:
    """The beginning of a line that fits, with a sign that it goes on."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if count(line[:middle].rstrip() + "…\n") <= room:
            low = middle
        else:
            high = middle - 1
    cut = shortened(line, low) if low > 8 else ""
    return f"{cut}…\n" if cut.strip("> ") else ""


def _fill(chosen: _Chosen, count: Count, room: int) -> int:
    """Take as many items as fit into so many tokens; the tokens used."""
    used = 0 if chosen.opened else count(f"## {chosen.title}\n")
    missed = 0
    before = len(chosen.taken)
    left = len(chosen.lines) - before + chosen.before
    for at in chosen.order:
        if at in chosen.taken:
            continue
        if at not in chosen.cost:
            chosen.cost[at] = count(chosen.lines[at])
        note = NOTE if left > 1 else 0
        if used + chosen.cost[at] + note <= room:
            used += chosen.cost[at]
            chosen.taken.add(at)
            left -= 1
            missed = 0
        elif (missed := missed + 1) > MISSES:
            break
    if len(chosen.taken) == before:
        return 0
    chosen.opened = True
    return used


def _written(made: list[_Chosen], *, brief: bool = False) -> str:
    """The sections. brief: one number for all that is left out of those that are not there."""
    parts: list[str] = []
    absent: list[tuple[str, int]] = []
    for chosen in made:
        missing = len(chosen.lines) - len(chosen.taken) + chosen.before
        if chosen.taken:
            parts.append(f"## {chosen.title}\n")
            parts.extend(chosen.lines[at] for at in sorted(chosen.taken))
            if missing:
                parts.append(f"({missing} more)\n")
        elif missing:
            absent.append((chosen.title.lower(), missing))
    if absent and parts:
        brief = brief or any(not title for title, _ in absent)
        told = ", ".join(f"{title} {missing}" for title, missing in absent)
        parts.append(f"(left out: {sum(missing for _, missing in absent) if brief else told})\n")
    return "".join(parts)


def _drop_one(made: list[_Chosen]) -> bool:
    """Leave out the least of what was taken; whether there was something."""
    for chosen in reversed(made):
        if chosen.taken:
            chosen.taken.discard(max(chosen.taken, key=chosen.order.index))
            return True
    return False
