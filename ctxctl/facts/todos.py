"""To-do lists: what agents write with their todo tools and plans, and checklists of their text, per agent."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any

from ctxctl.facts.tools import arguments
from ctxctl.model.block import MAIN, Block
from ctxctl.model.summary import Progress, Todo

STATUS: dict[str, Progress] = {
    "pending": "planned",
    "todo": "planned",
    "planned": "planned",
    "not_started": "planned",
    "open": "planned",
    "in_progress": "doing",
    "in-progress": "doing",
    "doing": "doing",
    "active": "doing",
    "completed": "done",
    "complete": "done",
    "done": "done",
}
"""Words that agents use, as the three that are never mixed up. Others (cancelled, deleted) end an item."""
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[([ xX>~/-])\][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
_MARKS: dict[str, Progress] = {" ": "planned", "x": "done", "X": "done"}
_NUMBER = re.compile(r"#(\w+)")
_TEXTS = ("content", "step", "subject", "title", "description", "text")
LISTS = ("todos", "plan", "task_list", "items")
MOST = 100
"""Items of a checklist that are taken."""


@dataclass(slots=True)
class _Event:
    number: int
    agent: str
    op: str
    block: Block | None = None
    items: tuple[Todo, ...] = ()
    id: str | None = None
    valid: bool = True


class TodoLog:
    """Collects what was done to to-do lists; the newest list of an agent holds."""

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._open: dict[str, _Event] = {}

    def call(self, block: Block, number: int) -> None:
        """Take a call of a todo tool. A list is read only when it turns out to be the newest one."""
        name = (block.tool_name or "").rsplit("__", 1)[-1].lower()
        op = {"taskcreate": "create", "taskupdate": "update"}.get(name, "list")
        event = _Event(number, block.thread, op, block)
        self._events.append(event)
        if block.call_id is not None:
            self._open[block.call_id] = event

    def result(self, block: Block, failed: bool) -> None:
        """Take the result of one: a failed call changes nothing; a new task gets its id."""
        event = self._open.pop(block.call_id or "", None)
        if event is None:
            return
        event.valid = not failed
        if event.op == "create" and (match := _NUMBER.search(block.text[:200])) is not None:
            event.id = match.group(1)

    def said(self, block: Block, number: int) -> None:
        """Take a text of an agent that may hold a checklist."""
        if items := checklist(block.text, block.thread):
            self._events.append(_Event(number, block.thread, "checklist", None, items))

    def listed(self, gone: Container[int], since: int) -> bool:
        """Whether a whole list of the main thread was written behind a block: what was told before is no more."""
        return any(
            event.op == "list" and event.valid and event.agent == MAIN and event.number > since
            for event in self._events
            if event.number not in gone
        )

    def fold(self, gone: Container[int], before: tuple[tuple[int, tuple[Todo, ...]], ...] = ()) -> tuple[Todo, ...]:
        """The items of each agent as they stand. before: lists of earlier summaries, with numbers of blocks."""
        live = [event for event in self._events if event.valid and event.number not in gone]
        tools = {event.agent for event in live if event.op != "checklist"}
        live = [event for event in live if event.op != "checklist" or event.agent not in tools]
        told = {(item.agent, folded(item.text)) for _, items in before for item in items}
        live = [event for event in live if event.op != "checklist" or _of_it(event, told)]
        newest = {event.agent: event.number for event in live if event.op == "list"}
        lists: dict[str, list[Todo]] = {}
        steps: list[tuple[int, _Event | tuple[Todo, ...]]] = [(event.number, event) for event in live]
        steps.extend(before)
        for number, step in sorted(steps, key=lambda pair: pair[0]):
            if isinstance(step, tuple):
                for item in step:
                    _put(lists.setdefault(item.agent, []), item)
            elif number >= newest.get(step.agent, 0):
                _apply(lists, step)
        return tuple(item for agent in sorted(lists, key=lambda name: name != "main") for item in lists[agent])


def _apply(lists: dict[str, list[Todo]], event: _Event) -> None:
    known = lists.setdefault(event.agent, [])
    given = (arguments(event.block) or {}) if event.block is not None else {}
    if event.op == "list":
        found = todo_list(given, event.agent)
        if found is not None:
            known[:] = found
    elif event.op == "checklist":
        for item in event.items:
            _put(known, item)
    elif event.op == "create":
        text = _text(given)
        if text and not any(_is(item, text, event.id) for item in known):
            known.append(Todo(text, "planned", event.agent, event.id))
    else:
        _update(known, given)


def _is(item: Todo, text: str, id_: str | None) -> bool:
    """Whether a new task is one that an earlier summary told, with what became of it."""
    return item.id == id_ if item.id is not None and id_ is not None else folded(item.text) == folded(text)


def _of_it(event: _Event, told: set[tuple[str, str]]) -> bool:
    """Whether a checklist may go on a list that earlier summaries told. One that shares nothing with it is another:
    the calls of a todo tool that kept the list may be gone."""
    return not any(agent == event.agent for agent, _ in told) or any(
        (event.agent, folded(item.text)) in told for item in event.items
    )


def _update(known: list[Todo], given: dict[str, Any]) -> None:
    """TaskUpdate: a new status or subject of one task."""
    wanted = str(given.get("taskId", given.get("task_id", "")))
    for at, item in enumerate(known):
        if item.id == wanted:
            status = given.get("status")
            if isinstance(status, str) and status not in STATUS:
                del known[at]
                return
            subject = given.get("subject")
            known[at] = replace(
                item,
                status=STATUS[status] if isinstance(status, str) else item.status,
                text=subject if isinstance(subject, str) and subject.strip() else item.text,
            )
            return


def _put(known: list[Todo], item: Todo) -> None:
    """Add an item, or give the one of the same id or text its status."""
    for at, other in enumerate(known):
        if (item.id is not None and other.id == item.id) or folded(other.text) == folded(item.text):
            known[at] = replace(item, id=item.id or other.id)
            return
    known.append(item)


def folded(text: str) -> str:
    """A text with each run of white space as one space."""
    return " ".join(text.split())


def todo_list(given: dict[str, Any], agent: str) -> list[Todo] | None:
    """The list that a call writes, None when it holds none."""
    items = next((given[key] for key in LISTS if isinstance(given.get(key), list)), None)
    if items is None:
        text = next((given[key] for key in LISTS if isinstance(given.get(key), str)), None)
        return list(_items(text, agent)) if text is not None else None
    found = []
    for item in items:
        if isinstance(item, dict):
            status = STATUS.get(str(item.get("status", "pending")).lower())
            text = _text(item)
            if text and status is not None:
                found.append(Todo(text, status, agent))
    return found


def _text(item: dict[str, Any]) -> str:
    return next((item[key] for key in _TEXTS if isinstance(item.get(key), str) and item[key].strip()), "")


def checklist(text: str, agent: str) -> tuple[Todo, ...]:
    """The checklist in a text, outside of code; one item alone is none."""
    if "[ ] " not in text and "[x] " not in text and "[X] " not in text:
        return ()
    found = _items(_FENCE.sub("", text), agent)
    return found if len(found) > 1 else ()


def _items(text: str, agent: str) -> tuple[Todo, ...]:
    found = (Todo(match[2], _MARKS.get(match[1], "doing"), agent) for match in _ITEM.finditer(text))
    return tuple(item for item, _ in zip(found, range(MOST), strict=False))
