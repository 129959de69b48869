"""To-do lists: what agents write with their todo tools and plans, and checklists of their text, per agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxctl.facts.plan import Plan, follow
from ctxctl.facts.tools import arguments
from ctxctl.model.block import MAIN, Block, Source
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
_SIGNS = ("[ ] ", "[x] ", "[X] ", "[~] ", "[>] ", "[/] ", "[-] ")
_NUMBER = re.compile(r"#(\w+)")
_TEXTS = ("content", "step", "subject", "title", "description", "text")
LISTS = ("todos", "plan", "task_list", "items")
MOST = 100
"""Items of a checklist that are taken."""
LARGEST = 100_000
"""Characters of calls that are carried to the next reading."""


@dataclass(slots=True)
class _Event:
    number: int
    agent: str
    op: str
    block: Block | None = None
    items: tuple[Todo, ...] = ()
    id: str | None = None
    valid: bool = True
    sure: bool = True


def dumped(event: _Event, waits: bool) -> dict[str, Any]:
    """An event as plain JSON values. waits: for the result of its call."""
    block = event.block
    return {
        "agent": event.agent,
        "op": event.op,
        "call": [block.tool_name, block.text, block.call_id, block.turn] if block is not None else None,
        "items": [[item.text, item.status, item.agent, item.id] for item in event.items],
        "id": event.id,
        "valid": event.valid,
        "open": waits,
    }


def restored(kept: dict[str, Any]) -> _Event:
    """An event from plain JSON values."""
    block = None
    if kept["call"] is not None:
        name, text, call_id, turn = kept["call"]
        block = Block("", "tool_call", "assistant", text, turn, 0, Source(0), name, call_id, thread=kept["agent"])
    items = tuple(Todo(*item) for item in kept["items"])
    return _Event(-1, kept["agent"], kept["op"], block, items, kept["id"], kept["valid"])


class TodoLog:
    """Collects what was done to to-do lists; the newest list of an agent holds."""

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._open: dict[str, _Event] = {}
        self._base: tuple[Todo, ...] = ()
        self._tools: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self.since = 1 << 62
        """Turn from which on a call without a result may still get one."""

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

    def go_on(self, base: tuple[Todo, ...], carried: dict[str, Any] | None) -> None:
        """Begin with lists. carried: what `carry` gave when they stood so; without it they are another session's."""
        self._base = base
        if carried is None:
            self._told = {(item.agent, folded(item.text)) for item in base}
            return
        self._tools = set(carried["tools"])
        self._told = {(agent, text) for agent, text in carried["told"]}
        if carried["events"] is not None:
            self._base = tuple(Todo(*item) for item in carried["base"])
            for kept in carried["events"]:
                event = restored(kept)
                self._events.append(event)
                if event.block is not None and event.block.call_id is not None and kept["open"]:
                    self._open[event.block.call_id] = event

    def carry(
        self, gone: Container[int], before: tuple[tuple[int, tuple[Todo, ...]], ...], since: int
    ) -> dict[str, Any]:
        """What `go_on` needs. since: turn from which on a call may still get its result: then the lists as they stood
        before it are needed, and what was done to them since."""
        live = self._live(gone, before)
        told = {(item.agent, folded(item.text)) for _, items in before for item in items} | self._told
        waiting = {id(event) for event in self._open.values() if event.block is None or event.block.turn >= since}
        events = [event for event in self._events if event.number not in gone]
        first = next((at for at, event in enumerate(events) if id(event) in waiting), len(events))
        later = events[first:]
        kept: list[dict[str, Any]] | None = None
        tools = {event.agent for event in live if event.op != "checklist"}
        base: tuple[Todo, ...] = ()
        size = sum(len(event.block.text) for event in later if event.block is not None)
        if later and len(later) <= MOST and size <= LARGEST:
            kept = [dumped(event, id(event) in waiting) for event in later]
            cut = {id(event) for event in later}
            tools = {event.agent for event in live if event.op != "checklist" and id(event) not in cut}
            base = self._fold([event for event in self._events if id(event) not in cut], gone, before)
        return {
            "tools": sorted(tools | self._tools),
            "told": sorted(told)[:MOST],
            "events": kept,
            "base": [[item.text, item.status, item.agent, item.id] for item in base],
        }

    def texts(self, gone: Container[int]) -> set[str]:
        """Folded texts of all items that the agents themselves put on a list."""
        found: set[str] = set()
        for event in self._live(gone, ()):
            lists: dict[str, list[Todo]] = {}
            _carry_out(lists, event)
            found.update(folded(todo.text) for todos in lists.values() for todo in todos)
        return found

    def listed(self, gone: Container[int], since: int) -> bool:
        """Whether a whole list of the main thread was written behind a block: what was told before is no more."""
        return any(
            event.op == "list" and event.valid and event.agent == MAIN and event.number > since
            for event in self._events
            if event.number not in gone
        )

    def fold(self, gone: Container[int], before: tuple[tuple[int, tuple[Todo, ...]], ...] = ()) -> tuple[Todo, ...]:
        """The items of each agent as they stand. before: lists of earlier summaries, with numbers of blocks."""
        return self._fold(self._events, gone, before)

    def _fold(
        self, events: list[_Event], gone: Container[int], before: tuple[tuple[int, tuple[Todo, ...]], ...]
    ) -> tuple[Todo, ...]:
        live = self._live(gone, before, events)
        newest = {event.agent: event.number for event in live if event.op == "list" and event.sure}
        tools = {event.agent for event in live if event.op != "checklist"} - self._tools
        lists: dict[str, list[Todo]] = {}
        for item in self._base:
            # a todo tool takes the place of checklists
            if item.agent not in tools or (item.agent, folded(item.text)) in self._told:
                lists.setdefault(item.agent, []).append(item)
        steps: list[tuple[int, _Event | tuple[Todo, ...]]] = [(event.number, event) for event in live]
        steps.extend(before)
        for number, step in sorted(steps, key=lambda pair: pair[0]):
            if isinstance(step, tuple):
                for item in step:
                    _put(lists.setdefault(item.agent, []), item)
            elif number >= newest.get(step.agent, -1):
                _apply(lists, step)
        return tuple(item for agent in sorted(lists, key=lambda name: name != "main") for item in lists[agent])

    def plan(
        self,
        gone: Container[int],
        before: tuple[tuple[int, tuple[Todo, ...]], ...],
        cuts: Sequence[int],
        *,
        told: Sequence[Todo] = (),
        told_now: bool = False,
        clean: Callable[[str], str] = str,
    ) -> Plan:
        """Everything that was ever on a list, with what became of it. before: lists of earlier summaries, with numbers
        of blocks; cuts: blocks where a window ended; told: the lists before the first block; clean: takes out of a text
        what `told` does not hold."""

        def step(event: _Event) -> Callable[[dict[str, list[Todo]]], bool]:
            def apply(lists: dict[str, list[Todo]]) -> bool:
                _apply(lists, event)
                return event.op == "list"

            return apply

        def tell(items: tuple[Todo, ...]) -> Callable[[dict[str, list[Todo]]], bool]:
            def apply(lists: dict[str, list[Todo]]) -> bool:
                for item in items:
                    _put(lists.setdefault(item.agent, []), item)
                return False

            return apply

        if told_now and any(event.number < 0 for event in self._events):
            told = self._base  # the lists as they stood before the events that are carried
        first = () if not told else ((-1, tuple(told)),)
        steps = [(event.number, step(event)) for event in self._live(gone, (*first, *before))]
        steps.extend((number, tell(items)) for number, items in before)
        steps.sort(key=lambda pair: pair[0])
        plan = follow(steps, cuts, told, lambda todo: (todo.agent, folded(clean(todo.text))), told_now=told_now)
        # what a call would have put on a list that failed after it was told
        failed = [event for event in self._events if not event.valid and event.number < 0 and event.op != "update"]
        lists: dict[str, list[Todo]] = {}
        for event in failed:
            _carry_out(lists, event)
        kept = {(item.todo.agent, folded(clean(item.todo.text))) for item in plan.items}
        never = {(todo.agent, folded(clean(todo.text))) for todos in lists.values() for todo in todos} - kept
        return replace(plan, cancelled=plan.cancelled | never)

    def _live(
        self,
        gone: Container[int],
        before: tuple[tuple[int, tuple[Todo, ...]], ...],
        events: list[_Event] | None = None,
    ) -> list[_Event]:
        """The events that count: a checklist only where the agent has no todo tool, and goes on with what was told."""
        events = self._events if events is None else events
        waits = {id(e) for e in self._open.values() if e.block is not None and e.block.turn >= self.since}
        live = [event for event in events if event.valid and event.number not in gone]
        for event in live:
            event.sure = id(event) not in waits
        tools = {event.agent for event in live if event.op != "checklist"} | self._tools
        live = [event for event in live if event.op != "checklist" or event.agent not in tools]
        told = {(item.agent, folded(item.text)) for _, items in before for item in items} | self._told
        agents = {agent for agent, _ in told}
        told |= {(item.agent, folded(item.text)) for item in self._base if item.agent in agents}
        found = []
        for event in live:
            if event.op != "checklist" or _of_it(event, told):
                found.append(event)
                if event.agent in agents:  # what goes on with this one goes on with the list
                    told |= {(event.agent, folded(item.text)) for item in event.items}
        return found


def _apply(lists: dict[str, list[Todo]], event: _Event) -> None:
    """Do to the lists what an event says. One whose result may still come tells what its agent is at, and finishes
    nothing."""
    before = [todo for todo in lists.get(event.agent, ()) if todo.status == "done"] if not event.sure else []
    _carry_out(lists, event)
    if not event.sure:
        done = {folded(todo.text) for todo in before} | {todo.id for todo in before if todo.id is not None}
        known = lists[event.agent]
        known[:] = [
            replace(todo, status="doing")
            if todo.status == "done" and folded(todo.text) not in done and todo.id not in done
            else todo
            for todo in known
        ]


def _carry_out(lists: dict[str, list[Todo]], event: _Event) -> None:
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
        at = next((n for n, item in enumerate(known) if _is(item, text, event.id)), None)
        if text and (at is None or known[at].id is None):
            # what an earlier window, or a summary, told comes behind the tasks of this one
            item = Todo(text, "planned", event.agent) if at is None else known.pop(at)
            known.insert(sum(other.id is not None for other in known), replace(item, id=event.id))
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
    if not any(sign in text for sign in _SIGNS):
        return ()
    found = _items(_FENCE.sub("", text), agent)
    return found if len(found) > 1 else ()


def _items(text: str, agent: str) -> tuple[Todo, ...]:
    found = (Todo(match[2], _MARKS.get(match[1], "doing"), agent) for match in _ITEM.finditer(text))
    return tuple(item for item, _ in zip(found, range(MOST), strict=False))
