"""The short form of a summary whose facts went to the notes file: a line for each that the next window must see, and
back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN
from ctxctl.model.summary import FileFact, SessionSummary, Todo

NEXT = "next step: "
"""In front of a next step among the notes: it is what the session said once, and no item of its plan."""
POINTER = "; notes: "
"""Between the turns and the name of the notes file, in the first line."""
_TEXTS = {"Success": "success_criteria", "Constraint": "constraints", "Open": "open_issues", "Earlier": "earlier"}
_LABEL = re.compile(r"(Goal|Success|Constraint|Progress|Doing|To do|Next|Asked last|Open|Changed|Earlier|Originals): ")
_AGENT = re.compile(r" \[([^\[\]]+)\]$")
_CHANGED = re.compile(r"(.+?)(?:: ([a-z]+(?:, [a-z]+)*)| changed)$")
_MORE = re.compile(r"\(\d+ more in the notes\)$")


def lines_of(facts: SessionSummary, omit_goal: bool) -> Iterator[str]:
    """Lines of the summary, what matters most first."""
    if facts.goal and not omit_goal:
        yield f"Goal: {facts.goal}"
    for text in facts.success_criteria:
        yield f"Success: {text}"
    for text in facts.constraints:
        yield f"Constraint: {text}"
    done = sum(t.status == "done" for t in facts.todos)
    if facts.todos:
        yield f"Progress: {done} of {len(facts.todos)} done"
    for status, label in (("doing", "Doing"), ("planned", "To do")):
        for todo in facts.todos:
            if todo.status == status:
                yield f"{label}: {todo.text}{of_agent(todo.agent)}"
    if facts.next_steps:
        yield f"Next: {facts.next_steps[0]}"
    if facts.requests:
        yield f"Asked last: {facts.requests[-1]}"
    for text in facts.open_issues:
        yield f"Open: {text}"
    for file in facts.files:
        if file.role == "modified":
            yield f"Changed: {changed(file.path, file.actions)}"
    yield from (f"Earlier: {text}" for text in facts.earlier)


def of_agent(agent: str) -> str:
    """The agent behind a to-do item; nothing for the main thread."""
    return "" if agent == MAIN else f" [{agent}]"


def changed(path: str, actions: tuple[str, ...]) -> str:
    """A modified file and what was done to it."""
    return f"{path}: {', '.join(actions)}" if actions else f"{path} changed"


def parse(text: str) -> SessionSummary:
    """The facts of the lines behind the first. The goal alone may have several."""
    goal: list[str] = []
    texts: dict[str, list[str]] = {name: [] for name in (*_TEXTS.values(), "next_steps", "requests")}
    todos: list[Todo] = []
    files: list[FileFact] = []
    in_goal = False
    for line in text.split("\n"):
        match = _LABEL.match(line)
        label, rest = (match[1], line[match.end() :]) if match is not None else ("", line)
        if not label:
            if in_goal and not _MORE.match(line):
                goal.append(line)
            continue
        in_goal = label == "Goal"
        if in_goal:
            goal = [rest]
        elif label in _TEXTS:
            texts[_TEXTS[label]].append(rest)
        elif label in ("Doing", "To do"):
            agent = _AGENT.search(rest)
            name = agent[1] if agent is not None else MAIN
            todos.append(Todo(_AGENT.sub("", rest), "doing" if label == "Doing" else "planned", name))
        elif label in ("Next", "Asked last"):
            texts["next_steps" if label == "Next" else "requests"].append(rest)
        elif label == "Changed" and (made := _CHANGED.match(rest)) is not None:
            files.append(FileFact(folded(made[1]), "modified", tuple(made[2].split(", ")) if made[2] else ()))
    return SessionSummary(
        goal="\n".join(goal),
        todos=tuple(todos),
        files=tuple(files),
        **{name: tuple(found) for name, found in texts.items()},  # type: ignore[arg-type]
    )
