"""What is carried from one reading of a session to the next, so that its facts go on as if it had been read at once.

Beside the summary itself: where counters stand, which sentences only hold for a while, which calls wait for a result.
All of it is bounded, however long the session is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxctl.facts.todos import folded
from ctxctl.model.summary import DecisionFact, SessionSummary

VERSION = 1
"""Of what is carried; grows when it is no longer understood by what read it before."""
FIELDS = ("constraints", "requests", "open_issues", "learnings")
LONGEST = 100
"""Items of a field of another agent's summary that are carried."""


@dataclass(frozen=True, slots=True)
class Seed:
    """What facts begin with. own: what was read before, without `alien`: what only the newest summary of another agent
    said, which the next one replaces. turns: that were covered; next: what an earlier summary gave as the next steps;
    goal_known: whether the first prompt is a request. told: how many commits earlier summaries told."""

    own: SessionSummary
    alien: SessionSummary | None = None
    turns: tuple[int, int] = (0, 0)
    shift: int = 0
    next: tuple[str, ...] = ()
    prompted: bool = False
    whole: bool = False
    told: int | None = None

    @property
    def goal_known(self) -> bool:
        return self.prompted or bool(self.own.goal)


def seed_of(base: SessionSummary, carried: Mapping[str, Any]) -> Seed:
    """The seed of a state's summary. carried: empty where the state came from another session."""
    if not carried:
        return Seed(replace(base, next_steps=()), turns=base.turns, next=base.next_steps)
    held = {folded(text) for text in carried["held"]}
    own = replace(
        base,
        next_steps=(),
        open_issues=tuple(text for text in base.open_issues if folded(text) not in held),
    )
    given = carried["alien"]
    alien: SessionSummary | None = None
    if given is not None:
        only = {name: {folded(text) for text in given[name]} for name in (*FIELDS, "decisions")}
        left: dict[str, Any] = {
            name: tuple(text for text in getattr(own, name) if folded(text) not in only[name]) for name in FIELDS
        }
        said: dict[str, Any] = {name: tuple(given[name]) for name in (*FIELDS, "next_steps")}
        kept = tuple(fact for fact in own.decisions if folded(fact.what) not in only["decisions"])
        own = replace(own, decisions=kept, earlier=(), **left)
        decided = tuple(DecisionFact(text) for text in given["decisions"])
        alien = SessionSummary(decisions=decided, earlier=base.earlier, **said)
    first, last, shift = carried["turns"]
    return Seed(
        own,
        alien,
        (first, last),
        shift,
        tuple(carried["next"]),
        carried["prompted"],
        carried["whole"],
        carried["commits"],
    )


def counted_anew(carried: Mapping[str, Any], turn: int, exchange: int) -> dict[str, Any]:
    """What is carried, for a file that was written anew: its turns and exchanges are counted from 1 again. turn,
    exchange: how many it has."""
    if not carried:
        return {}
    first, last, _ = carried["turns"]
    return {**carried, "turn": turn, "turns": [first, last, max(0, last - turn)], "exchange": exchange}


def alien_only(alien: SessionSummary, rest: SessionSummary) -> dict[str, list[str]]:
    """What another agent's summary says and nothing else does."""
    found: dict[str, list[str]] = {}
    for name in FIELDS:
        said = {folded(text) for text in getattr(rest, name)}
        found[name] = [text for text in getattr(alien, name) if folded(text) not in said][:LONGEST]
    said = {folded(fact.what) for fact in rest.decisions}
    found["decisions"] = [fact.what for fact in alien.decisions if folded(fact.what) not in said][:LONGEST]
    found["next_steps"] = list(alien.next_steps)[:LONGEST]
    return found
