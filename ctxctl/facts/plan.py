"""The plan of a session over all its lists: what was finished and then left off a list, and what was called off.

A todo tool shows the newest list alone. Agents drop finished items from it, and start shorter lists after a compaction;
both are no reason to forget an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ctxctl.model.summary import Todo

Key = tuple[str, str]
"""Agent and folded text of an item."""


@dataclass(frozen=True, slots=True)
class Planned:
    """An item as its agent last told it. age: how many compactions ago it was last on a list."""

    todo: Todo
    age: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """items: each once, in the order of the lists. cancelled: what an agent took off a list unfinished, in the same
    window in which it had it on it, and did not put back."""

    items: tuple[Planned, ...] = ()
    cancelled: frozenset[Key] = field(default_factory=frozenset)


Step = tuple[int, Callable[[dict[str, list[Todo]]], bool]]
"""Number of a block, and what it does to the lists; whether that replaces a whole list."""


def follow(
    steps: Iterable[Step],
    cuts: Sequence[int],
    told: Sequence[Todo],
    key: Callable[[Todo], Key],
    *,
    told_now: bool,
) -> Plan:
    """Carry out all steps, in order, and keep what a newest list no longer shows.

    cuts: numbers of the blocks where a window ended. told: the lists as they stood before; told_now: in the same window
    in which the first step is.
    """
    lists: dict[str, list[Todo]] = {}
    for todo in told:
        lists.setdefault(todo.agent, []).append(todo)
    window = 0
    listed: dict[Key, int] = {key(todo): 0 if told_now else -1 for todo in told}
    past: dict[Key, Todo] = {}
    cancelled: set[Key] = set()
    ends = list(cuts)
    for number, apply in steps:
        while ends and ends[0] <= number:
            ends.pop(0)
            window += 1
        before = {agent: list(items) for agent, items in lists.items()}
        whole = apply(lists)
        for agent, items in lists.items():
            if items == before.get(agent):
                continue
            now = {key(item): item for item in items}
            ids = {item.id for item in items if item.id is not None}
            for item in before.get(agent, ()):
                at = key(item)
                if at in now or item.id in ids:  # a task may get another text
                    continue
                if item.status == "done" or (whole and listed.get(at, window) < window):
                    past[at] = item
                else:
                    cancelled.add(at)
            old = set(before.get(agent, ()))
            for at, item in now.items():
                past.pop(at, None)
                cancelled.discard(at)
                if whole or item not in old:
                    listed[at] = window
    window += len(ends)
    kept = [*past.values(), *(item for agent in _main_first(lists) for item in lists[agent])]
    planned = tuple(Planned(item, window - listed.get(key(item), window)) for item in kept)
    return Plan(planned, frozenset(cancelled))


def _main_first(lists: Iterable[str]) -> list[str]:
    return sorted(lists, key=lambda name: name != "main")
