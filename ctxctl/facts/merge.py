"""Two summaries as one: a union without duplicates in which the later one wins. Never one inside the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from ctxctl.facts.todos import folded
from ctxctl.model.summary import Commit, FileFact, LeftOut, SessionSummary, Todo

EARLIER = 80
"""Lines of foreign summaries that are kept; the oldest go first."""
ERRORS = 10

T = TypeVar("T")


def merge(earlier: SessionSummary, later: SessionSummary) -> SessionSummary:
    """What both say. The goal is the earlier one's where it has one; next steps are the later one's."""
    return SessionSummary(
        turns=_turns(earlier.turns, later.turns),
        goal=earlier.goal or later.goal,
        success_criteria=_texts(earlier.success_criteria, later.success_criteria),
        constraints=_texts(earlier.constraints, later.constraints),
        requests=_texts(earlier.requests, later.requests),
        decisions=_union(earlier.decisions, later.decisions, lambda fact: folded(fact.what)),
        files=_files(earlier.files, later.files),
        todos=_todos(earlier.todos, later.todos),
        tests=_newest(earlier.tests, later.tests, lambda run: run.command),
        commits=_commits(earlier.commits, later.commits),
        open_issues=_texts(earlier.open_issues, later.open_issues),
        dead_ends=_texts(earlier.dead_ends, later.dead_ends),
        errors=_newest(earlier.errors, later.errors, folded)[-ERRORS:],
        learnings=_texts(earlier.learnings, later.learnings),
        next_steps=later.next_steps or earlier.next_steps,
        artifacts=_texts(earlier.artifacts, later.artifacts),
        validators=_texts(earlier.validators, later.validators),
        earlier=_newest(earlier.earlier, later.earlier, folded)[-EARLIER:],
        left_out=_left_out(earlier.left_out, later.left_out),
        schema=later.schema,
    )


def _turns(earlier: tuple[int, int], later: tuple[int, int]) -> tuple[int, int]:
    if not earlier[1] or not later[1]:
        return later if later[1] else earlier
    return (min(earlier[0], later[0]), max(earlier[1], later[1]))


def _left_out(earlier: Iterable[LeftOut], later: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    found: dict[str, int] = {}
    for item in (*earlier, *later):
        found[item.section] = found.get(item.section, 0) + item.count
    return tuple(LeftOut(section, count) for section, count in found.items())


def _union(earlier: Iterable[T], later: Iterable[T], key: Callable[[T], str]) -> tuple[T, ...]:
    """Each once, at its first place, as said last."""
    return tuple({key(item): item for item in (*earlier, *later)}.values())


def _newest(earlier: Iterable[T], later: Iterable[T], key: Callable[[T], str]) -> tuple[T, ...]:
    """Each once, at its last place."""
    found: dict[str, T] = {}
    for item in (*earlier, *later):
        found.pop(key(item), None)
        found[key(item)] = item
    return tuple(found.values())


def _texts(earlier: Iterable[str], later: Iterable[str]) -> tuple[str, ...]:
    return _union(earlier, later, folded)


def _files(earlier: Iterable[FileFact], later: Iterable[FileFact]) -> tuple[FileFact, ...]:
    found = {fact.path: fact for fact in earlier}
    for fact in later:
        known = found.get(fact.path)
        if known is None:
            found[fact.path] = fact
        elif fact.role == "modified":
            before = known.actions if known.role == "modified" else ()
            found[fact.path] = replace(fact, actions=tuple(dict.fromkeys((*before, *fact.actions))))
    return tuple(found.values())


def _todos(earlier: Iterable[Todo], later: Iterable[Todo]) -> tuple[Todo, ...]:
    found = list(earlier)
    for todo in later:
        for at, known in enumerate(found):
            same = known.id == todo.id if known.id and todo.id else folded(known.text) == folded(todo.text)
            if same and known.agent == todo.agent:
                found[at] = replace(todo, id=todo.id or known.id)
                break
        else:
            found.append(todo)
    return tuple(found)


def _commits(earlier: Iterable[Commit], later: Iterable[Commit]) -> tuple[Commit, ...]:
    found = list(earlier)
    for commit in later:
        if not any(_same(known, commit) for known in found):
            found.append(commit)
    return tuple(found)


def _same(one: Commit, other: Commit) -> bool:
    if one.id and other.id:
        return one.id.startswith(other.id) or other.id.startswith(one.id)
    return one.id == other.id and folded(one.message) == folded(other.message)
