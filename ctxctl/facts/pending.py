"""Calls whose results decide what they did, and how they are carried from one reading of a transcript to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ctxctl.facts.commits import Asked as Commits
from ctxctl.facts.files import Touch
from ctxctl.facts.tests import Asked as Tests

MOST = 32
"""Calls that are carried; the oldest are left out."""
LARGEST = 200
"""Entries of a call that is carried: one that does more is left out, its file list would be longer than the state."""


@dataclass(slots=True)
class Pending:
    """A call without a result so far. names: of the programs that its script runs; creates: whether the script makes
    something that has a link; plan: of a plan to be approved, its title; tool, target: as the block states them."""

    number: int
    turn: int
    kind: str
    tool: str | None = None
    target: str | None = None
    touches: list[Touch] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    commits: list[Commits] = field(default_factory=list)
    tests: list[Tests] = field(default_factory=list)
    creates: bool = False
    plan: str = ""


def dump(key: str, call: Pending) -> list[Any]:
    """A call as plain JSON values. key: by which its result finds it."""
    return [
        key,
        call.turn,
        call.kind,
        call.tool,
        call.target,
        [list(touch) for touch in call.touches],
        call.names,
        [list(asked) for asked in call.commits],
        [list(asked) for asked in call.tests],
        call.creates,
        call.plan,
    ]


def dump_all(calls: Iterable[tuple[str, Pending]]) -> list[list[Any]]:
    """The newest calls as plain JSON values."""
    small = [
        dump(key, call) for key, call in calls if max(len(call.touches), len(call.names), len(call.tests)) <= LARGEST
    ]
    return small[-MOST:]


def load(value: list[Any]) -> tuple[str, Pending]:
    """A call as it was carried."""
    key, turn, kind, tool, target, touches, names, asked, tested, creates, plan = value
    return key, Pending(
        -1,
        turn,
        kind,
        tool,
        target,
        [Touch(*touch) for touch in touches],
        list(names),
        [Commits(*item) for item in asked],
        [Tests(*item) for item in tested],
        creates,
        plan,
    )
