"""The subtasks of a state: what a transcript tells merged into what was known (requirement S3).

Planned, doing and done are never mixed up: the newest word of the agent holds, a status set by hand holds until the
agent says something new, and what a list no longer shows is kept unless its agent took it off on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import replace

from ctxctl.errors import UsageError
from ctxctl.facts.plan import Plan
from ctxctl.facts.todos import folded
from ctxctl.model.state import AgentState, Subtask
from ctxctl.model.summary import Progress, Todo
from ctxctl.registry import closest

_BY_ID = re.compile(r"(?P<front>s\d+):? (?P<behind>.+)|(?P<before>.+) \((?P<end>s\d+)\)")
BY_HAND = "set by hand"
"""Evidence of a status that a user set."""
NOW = "now"
"""Id of the subtask that stands for what the user asked last, where no list says what is in work."""


def merged(
    before: Sequence[Subtask],
    plan: Plan,
    *,
    window: int,
    next_id: int,
    same: bool,
    began: int | None = None,
    closed: Container[str] = (),
) -> tuple[list[Subtask], int]:
    """All subtasks in their order, and the next free id.

    same: the plan goes on in the transcript that the known ones came from last, so that task ids mean the same. began:
    the window in which the transcript began, where the user went back in it: what it told and no longer tells did not
    happen. closed: folded texts that were dropped by hand.
    """
    known = [s for s in before if s.id != NOW]
    if not same:
        known = [replace(s, task=None) for s in known]
    by_task = {(s.agent, s.task): at for at, s in enumerate(known) if s.task is not None}
    by_text: dict[tuple[str, str], list[int]] = {}
    for n, s in enumerate(known):
        by_text.setdefault((s.agent, folded(s.text)), []).append(n)
    told: dict[int, Subtask] = {}
    order: list[int] = []
    added: list[Subtask] = []
    for planned in plan.items:
        todo, seen = planned.todo, max(1, window - planned.age)
        at = by_task.get((todo.agent, todo.id)) if todo.id is not None else None
        if at is None and (at := _named(known, todo)) is not None:
            todo = replace(todo, text=known[at].text)
        if at is None:
            same_text = by_text.get((todo.agent, folded(todo.text)), [])
            free = [n for n in same_text if n not in told]
            if same_text and not free:
                # a task was given the text of an older item: the task holds
                twin = same_text[-1]
                if todo.id is not None:
                    told[twin] = _told(known[twin], todo.text, todo.status, todo.id, seen)
                if todo.id is not None or told[twin].task is not None:
                    continue
            # a list may have a text twice: each stays the one that it was
            same_status = [n for n in free if known[n].status == todo.status]
            at = next(iter((*same_status, *free)), None)
        if at is None or at in told:
            if at is None and folded(todo.text) not in closed:
                added.append(Subtask(f"s{next_id}", todo.text, todo.status, todo.agent, "transcript", todo.id, seen))
                order.append(-len(added))
                next_id += 1
            continue
        told[at] = _told(known[at], todo.text, todo.status, todo.id, seen)
        order.append(at)
    rest = [at for at, s in enumerate(known) if at not in told and _stays(s, plan, began)]
    # what is finished comes in the order in which it was finished, the rest as the newest list has it
    done = [
        at
        for at in range(len(known))
        if (at in told and told[at].status == "done") or (at in rest and known[at].status == "done")
    ]
    found = [told.get(at, known[at]) for at in done]
    found += [told[at] if at >= 0 else added[-at - 1] for at in order if at not in done]
    found += [known[at] for at in rest if at not in done]
    return found, next_id


def _named(known: Sequence[Subtask], todo: Todo) -> int | None:
    """The subtask that an item names by the id which a resume prompt or the progress file shows: `s3: TEXT`,
    `TEXT (s3)`."""
    match = _BY_ID.fullmatch(folded(todo.text))
    if match is None:
        return None
    id_, text = match["front"] or match["end"], match["behind"] or match["before"]
    for at, subtask in enumerate(known):
        if subtask.id == id_ and folded(subtask.text) == text:
            return at
    return None


def _told(known: Subtask, text: str, status: Progress, task: str | None, window: int) -> Subtask:
    """A known subtask as its agent tells it now."""
    seen = max(known.window, window)
    if known.over is not None and status == known.over:
        return replace(known, text=text, task=task or known.task, window=seen)
    evidence = known.evidence if status == known.status else ""
    return replace(known, text=text, status=status, task=task or known.task, window=seen, evidence=evidence, over=None)


def _stays(subtask: Subtask, plan: Plan, began: int | None) -> bool:
    if subtask.by != "transcript" or subtask.over is not None:
        return True
    if began is not None and subtask.window >= began:
        return False
    return subtask.status == "done" or (subtask.agent, folded(subtask.text)) not in plan.cancelled


def arranged(state: AgentState, subtasks: Sequence[Subtask]) -> AgentState:
    """The state with these subtasks: done, the one in work, all others in their order. Of several in work the one that
    was told of in the newest window is current, then the first."""
    doing = [s for s in subtasks if s.status == "doing"]
    current = max(doing, key=lambda s: s.window, default=None)
    return replace(
        state,
        completed_subtasks=tuple(s for s in subtasks if s.status == "done"),
        current_subtask=current,
        remaining_subtasks=tuple(s for s in subtasks if s.status != "done" and s is not current),
    )


def marked(subtasks: Sequence[Subtask], name: str, status: Progress, window: int) -> list[Subtask]:
    """The subtasks with one of them set by hand. name: its id, the id that its agent gave it, or its text. Raises
    UsageError when there is none such."""
    at = position(subtasks, name)
    found = list(subtasks)
    was = found[at]
    over = was.over if was.over is not None else (was.status if was.by == "transcript" else None)
    found[at] = replace(was, status=status, over=over, window=window, evidence=BY_HAND)
    if status == "doing":  # the one that is named is the current one, whatever else is in work
        found.insert(0, found.pop(at))
    return found


def position(subtasks: Sequence[Subtask], name: str) -> int:
    """Where the subtask of an id or a text stands."""
    tests = (
        lambda s: s.id == name,
        lambda s: s.task == name.removeprefix("#"),
        lambda s: folded(s.text).casefold() == folded(name).casefold(),
    )
    for test in tests:
        at = [n for n, s in enumerate(subtasks) if test(s)]
        if len(at) == 1:
            return at[0]
    near = closest(name, [s.id for s in subtasks] + [s.text for s in subtasks])
    known = ", ".join(s.id for s in subtasks[:20]) or "none yet; --add-todo TEXT adds one"
    raise UsageError(f"no subtask {name!r}", hint=f"did you mean {near!r}?" if near else f"known: {known}")


def added(subtasks: Sequence[Subtask], texts: Sequence[str], window: int, next_id: int) -> tuple[list[Subtask], int]:
    """The subtasks with further planned ones at their end, each once."""
    found = list(subtasks)
    known = {folded(s.text) for s in found}
    for text in texts:
        if folded(text) and folded(text) not in known:
            known.add(folded(text))
            found.append(Subtask(f"s{next_id}", folded(text), "planned", by="hand", window=window))
            next_id += 1
    return found, next_id
