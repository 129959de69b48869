"""How a typed summary stands in Markdown: its sections in the order of their weight, and the form of each item.

Every item is one line, so that what does not fit can be left out as a whole and what is there can be read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN
from ctxctl.model.summary import Commit, DecisionFact, FileFact, Progress, SessionSummary, TestRun, Todo

GOAL, EARLIER = "Goal", "Earlier summary"
TOLD, SAID, FOUND = "What happened", "What was said", "Lines that may be needed again"
TALES = (TOLD, SAID, FOUND)
"""Sections behind the facts, which tell what is none: in a model's words, and in the session's own."""
HASH = 12
"""Digits of a content hash that the Markdown shows."""
MARKS: dict[Progress, str] = {"planned": "[ ]", "doing": "[>]", "done": "[x]"}
_STATUS: dict[str, Progress] = {mark: status for status, mark in MARKS.items()}
_TODO = re.compile(r"(\[[ >x]\]) (?:#(\S+) )?(.*)")
_FILE = re.compile(r'(`[^`]+`|"(?:[^"\\]|\\.)*")(?:: ([\w, -]+?))?(?:; sha256 ([0-9a-f]{12,64}))?$')
_TEST = re.compile(r'(passed|failed|unknown): (`[^`]+`|"(?:[^"\\]|\\.)*")(?:: (.*))?$')
_COMMIT = re.compile(r"([0-9a-f]{7,40}|\(no id\))(?: (.*))?$")
_BECAUSE = "; because "


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its items. newest: where not all fit, the newest are kept rather than the first."""

    title: str
    items: tuple[str, ...]
    newest: bool = False


TEXTS = {
    "Success criteria": "success_criteria",
    "Constraints": "constraints",
    "Open issues": "open_issues",
    "Next steps": "next_steps",
    "Requests": "requests",
    "Errors": "errors",
    "Dead ends": "dead_ends",
    "Learnings": "learnings",
    "Artifacts": "artifacts",
    "Validators": "validators",
}
"""Sections of plain sentences, and the fields that they hold."""

_DONE, _BY, _OF = "Done", "Done by ", "Todos of "
_MODIFIED, _READ = "Files modified", "Files read"
_FAILING, _PASSED = "Failing tests", "Tests"


def sections(summary: SessionSummary, omit_goal: bool) -> list[Section]:
    """The sections that hold something, the weightiest first. The goal and foreign lines are not among them."""
    agents = dict.fromkeys(todo.agent for todo in summary.todos)
    agents = dict.fromkeys(sorted(agents, key=lambda agent: agent != MAIN))
    said = {folded(todo.text) for todo in summary.todos}
    goal = folded(summary.goal)
    # a summary that leaves the goal's message in the window need not repeat what that demands
    kept = [text for text in summary.constraints if not (omit_goal and folded(text) in goal)]
    criteria = () if omit_goal else summary.success_criteria
    alive = [fact for fact in summary.files if fact.role == "modified" and fact.actions[-1:] != ("deleted",)]
    deleted = [fact for fact in summary.files if fact.role == "modified" and fact.actions[-1:] == ("deleted",)]
    failing = [run for run in summary.tests if run.outcome != "passed"]
    made = [
        _plain("Success criteria", criteria),
        _plain("Constraints", kept, newest=True),
        *(Section(_OF + a if a != MAIN else "Todos", tuple(_todos(summary, a, False))) for a in agents),
        Section(_MODIFIED, tuple(_file(fact) for fact in (*deleted, *alive)), True),
        Section("Decisions", tuple(_decision(fact) for fact in summary.decisions), True),
        Section(_FAILING, tuple(_test(run) for run in failing), True),
        _plain("Open issues", summary.open_issues, newest=True),
        _plain("Next steps", [text for text in summary.next_steps if folded(text) not in said]),
        _plain("Artifacts", summary.artifacts, newest=True),
        Section("Commits", tuple(_commit(commit) for commit in summary.commits), True),
        Section(_PASSED, tuple(_test(run) for run in summary.tests if run.outcome == "passed"), True),
        _plain("Requests", summary.requests, newest=True),
        _plain("Errors", summary.errors, newest=True),
        _plain("Learnings", summary.learnings, newest=True),
        _plain("Dead ends", summary.dead_ends, newest=True),
        *(Section(_BY + a if a != MAIN else _DONE, tuple(_todos(summary, a, True)), True) for a in agents),
        Section(_READ, tuple(_name(fact.path) for fact in summary.files if fact.role == "read"), True),
        _plain("Validators", summary.validators),
    ]
    return [section for section in made if section.items]


def fields(title: str, items: list[str]) -> dict[str, tuple[Any, ...]] | None:
    """The facts of a section as they are read back, by field; None where the title is none of ours."""
    if title in TEXTS:
        return {TEXTS[title]: tuple(items)}
    if title in ("Todos", _DONE) or title.startswith((_OF, _BY)):
        agent = title.removeprefix(_OF).removeprefix(_BY) if title not in ("Todos", _DONE) else MAIN
        return {"todos": _read(items, lambda item: _todo_of(item, agent))}
    if title in (_MODIFIED, _READ):
        return {"files": _read(items, lambda item: _file_of(item, title == _MODIFIED))}
    if title in (_FAILING, _PASSED):
        return {"tests": _read(items, _test_of)}
    if title == "Commits":
        return {"commits": _read(items, _commit_of)}
    if title == "Decisions":
        return {"decisions": tuple(DecisionFact(*_halves(item)) for item in items)}
    return None


def _read(items: list[str], make: Callable[[str], Any]) -> tuple[Any, ...]:
    return tuple(made for item in items if (made := make(item)) is not None)


def _plain(title: str, texts: Iterable[str], *, newest: bool = False) -> Section:
    return Section(title, tuple(line for text in texts if (line := folded(text))), newest)


def _todos(summary: SessionSummary, agent: str, done: bool) -> Iterable[str]:
    for todo in summary.todos:
        if todo.agent == agent and (todo.status == "done") is done:
            text = folded(todo.text)
            # an id stands in front as `#3`; a text that begins so by itself is told apart
            front = f"#{todo.id} " if todo.id else "#- " if text.startswith("#") else ""
            yield f"{MARKS[todo.status]} {front}{text}"


def _todo_of(item: str, agent: str) -> Todo | None:
    match = _TODO.match(item)
    if match is None:
        return None
    return Todo(match[3], _STATUS[match[1]], agent, None if match[2] == "-" else match[2])


def _name(path: str) -> str:
    """A path or command in backticks, as a JSON string where those would not do."""
    plain = path and "`" not in path and path == folded(path)
    return f"`{path}`" if plain else orjson.dumps(path.encode("utf-8", "replace").decode()).decode()


def _name_of(text: str) -> str:
    return str(orjson.loads(text)) if text.startswith('"') else text[1:-1]


def _file(fact: FileFact) -> str:
    actions = f": {', '.join(fact.actions)}" if fact.actions else ""
    return f"{_name(fact.path)}{actions}{f'; sha256 {fact.hash[:HASH]}' if fact.hash else ''}"


def _file_of(item: str, modified: bool) -> FileFact | None:
    match = _FILE.match(item)
    if match is None:
        return None
    actions = tuple(match[2].split(", ")) if match[2] else () if modified else ("read",)
    return FileFact(_name_of(match[1]), "modified" if modified else "read", actions, match[3])


def _decision(fact: DecisionFact) -> str:
    why = folded(fact.why)
    return folded(fact.what) + (f"{_BECAUSE}{why}" if why else "")


def _halves(item: str) -> tuple[str, str]:
    what, _, why = item.partition(_BECAUSE)
    return what, why


def _test(run: TestRun) -> str:
    detail = folded(run.detail)
    return f"{run.outcome}: {_name(run.command)}{f': {detail}' if detail else ''}"


def _test_of(item: str) -> TestRun | None:
    match = _TEST.match(item)
    return None if match is None else TestRun(_name_of(match[2]), match[1], match[3] or "")  # type: ignore[arg-type]


def _commit(commit: Commit) -> str:
    return f"{commit.id or '(no id)'} {folded(commit.message)}".rstrip()


def _commit_of(item: str) -> Commit | None:
    match = _COMMIT.match(item)
    if match is None:
        return None
    return Commit(match[2] or "", None if match[1].startswith("(") else match[1])
