"""Where the recent part of a window begins: whole answers with the results of their calls, never a part of one.

The rule is that of requirement C10: the newest messages stay, however long, and then as many more as half of the budget
holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ctxctl.model.window import Window
from ctxctl.trace.answers import is_reply

LEAST_MESSAGES = 6


@dataclass(frozen=True, slots=True)
class Group:
    """What stays or leaves together at a boundary: an answer with the results of its calls, or a message of the user.

    units: in the order of the window. tokens: of the blocks that are in it now. messages: as the provider counts them,
    an answer and each result. place: of its first block.
    """

    units: tuple[int, ...]
    tokens: int
    messages: int
    place: int


def groups_of(window: Window) -> list[Group]:
    """All resident units that are not pinned, in groups, by the place of their first block."""
    members: dict[str, list[int]] = {}
    answer: str | None = None
    for unit in sorted(window.resident, key=lambda u: window.place(next(window.present(u)))):
        told = window.units[unit]
        block = window.block(told.blocks[0])
        key = f"response {told.response}" if told.response is not None else f"message {block.thread} {block.message}"
        if told.response is not None or block.role == "assistant":
            answer = key
        elif not is_reply(block):
            answer = None
        elif answer is not None:
            key = answer
        members.setdefault(key, []).append(unit)
    return [_group(window, units) for units in members.values()]


def _group(window: Window, units: list[int]) -> Group:
    blocks = [b for u in units for b in window.present(u)]
    messages = {(window.block(b).message if window.block(b).role != "assistant" else -1) for b in blocks}
    return Group(
        tuple(units), sum(window.resident[u] for u in units), len(messages), min(window.place(b) for b in blocks)
    )


def held_tokens(window: Window, movable: Iterable[int] = ()) -> int:
    """Tokens that no strategy may touch: overhead, what is pinned, what is protected now. movable: protected units that
    count as free all the same."""
    held = window.protected().difference(movable)
    fixed = sum(window.fixed.values()) + sum(window.resident[u] for u in held if u in window.resident)
    return window.overhead + window.hidden + fixed


def recent(window: Window, limit: float, room: int, *, least: int = LEAST_MESSAGES) -> tuple[list[Group], list[Group]]:
    """The groups of the window as (old, recent).

    From the end, groups are recent until they hold `least` messages, then as long as what is held and they together
    take no more than `limit` tokens. room: tokens that the recent part may take at most beside what is held; above it
    groups leave it from the front.
    """
    groups = groups_of(window)
    protected = window.protected().difference(window.summaries)
    held = held_tokens(window, window.summaries)
    start, used, messages = len(groups), 0, 0
    while start:
        group = groups[start - 1]
        new = sum(window.resident[u] for u in group.units if u not in protected)
        if any(u in window.summaries for u in group.units):
            break
        if messages >= least and held + used + new > limit:
            break
        used += new
        messages += group.messages
        start -= 1
    while start < len(groups) and used > room:
        used -= sum(window.resident[u] for u in groups[start].units if u not in protected)
        start += 1
    return groups[:start], groups[start:]
