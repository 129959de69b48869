"""The facts of a session, collected while its blocks pass by, and the typed session summary that they give."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from ctxctl.facts import commits, files, foreign, prompts, resumed, shrunk, tests
from ctxctl.facts.calls import CallLog
from ctxctl.facts.carry import VERSION, Seed, alien_only, seed_of
from ctxctl.facts.constraints import Constraint, ConstraintFinder, is_directive
from ctxctl.facts.earlier import one_of, span_of
from ctxctl.facts.errors import ErrorLog
from ctxctl.facts.merge import merge
from ctxctl.facts.parse import parse
from ctxctl.facts.plan import Plan
from ctxctl.facts.prose import ProseLog
from ctxctl.facts.todos import TodoLog, folded
from ctxctl.model.block import Block
from ctxctl.model.summary import Commit, LeftOut, SessionSummary, Todo
from ctxctl.model.text import behind_resume, is_summary

SAME = 60
"""Characters by which what is left of a prompt is known to be one that is there as a whole."""


class SessionFacts:
    """Collects the facts of a session. Feed it every block of the main thread in order. alone: the session has nothing
    to do with the task of a resume prompt that stands in it."""

    def __init__(self, *, alone: bool = False) -> None:
        self._alone = alone
        self._prompts = prompts.Prompts()
        self._constraints = ConstraintFinder()
        self._todos = TodoLog()
        self._files = files.FileLog()
        self._commits = commits.CommitLog()
        self._tests = tests.RunLog()
        self._errors = ErrorLog()
        self._prose = ProseLog()
        self._calls = CallLog(self._todos, self._files, self._commits, self._tests, self._errors, self._prose)
        self._earlier: list[tuple[int, int, SessionSummary]] = []
        self._resumed: set[int] = set()
        self._typed: set[int] = set()
        self._turns: list[tuple[int, int]] = []
        self._turn = -1
        self._short: list[tuple[int, str]] = []
        self._seed = Seed(SessionSummary())

    def see(self, block: Block, number: int) -> None:
        """Take a block. number: its position among all blocks of the transcript."""
        if block.turn != self._turn:
            self._turn = block.turn
            self._turns.append((number, block.turn))
        kind = block.kind
        left = shrunk.left_of(block) if kind not in ("tool_call", "thinking") else None
        if kind == "tool_call":
            self._calls.call(block, number)
        elif kind == "tool_result":
            shown = block if left is None else replace(block, text=left)
            self._calls.result(shown, number, shrunk=left is not None)
        elif left is not None:
            self._shorter(block, shrunk.whole_lines(left), number)
        elif kind == "assistant":
            self._calls.said(block, number)
            self._prose.said(block, number)
            self._todos.said(block, number)
        elif (resume := resumed.given(block)) is not None:
            self._resume(block, resume, number)
        elif kind == "summary" or (kind == "user_message" and is_summary(block.text)):
            found = parse(block.text)
            found = foreign.parse(block.text) if found is None else found
            if block.turn >= found.turns[1]:  # what it stands for is there too, in front of it
                found = replace(found, left_out=())
            self._earlier.append((number, block.turn, found))
            self._errors.carry(number, block.turn, found.errors)
        elif kind == "user_message" and self._prompts.see(block, number):
            self._prose.answered()
            self._constraints.see(block, number)

    def _resume(self, block: Block, prompt: str, number: int) -> None:
        """Take a resume prompt: what an earlier window left, and what the user wrote behind it."""
        if not self._alone:
            found = resumed.parse(prompt)
            self._resumed.add(number)
            if block.kind == "user_message":
                self._typed.add(number)
            self._earlier.append((number, block.turn, found))
            self._errors.carry(number, block.turn, found.errors)
        said = behind_resume(block.text) if block.kind == "user_message" else ""
        if said:
            block = replace(block, text=said)
            if self._prompts.see(block, number):
                self._prose.answered()
                self._constraints.see(block, number)

    def _shorter(self, block: Block, text: str, number: int) -> None:
        """Take a message that was made shorter before: its whole sentences hold, as they did."""
        block = replace(block, text=text)
        if block.kind == "assistant":
            self._calls.said(None, number)  # its script may be cut
            self._prose.said(block, number)
        elif block.kind in ("user_message", "summary"):
            self._short.append((number, prompts.request(text)))
            self._constraints.see(block, number)

    def summary(self, gone: Container[int] = frozenset()) -> SessionSummary:
        """The typed summary of what was seen. gone: numbers of blocks that don't count, of a branch left behind."""
        self._todos.since = self._turn - 1
        before, whole = self._before(gone)
        base = one_of(before, whole, self._resumed)
        own = self._own(gone, base, whole)
        # a resume prompt tells a part of what is known: it changes no order
        merged = merge(merge(_lists(self._seed.own), base) if self._resumed else base, own)
        todos = self._todos.fold(gone, tuple((number, found.todos) for number, _, found in before))
        open_todos = [todo.text for todo in todos if todo.status == "doing"]
        open_todos = open_todos or [todo.text for todo in todos if todo.status == "planned"][:1]
        goal = own.goal if whole or self._seed.own.goal else base.goal or own.goal
        requests = [text for text in merged.requests if folded(text) != prompts.request(goal)]
        asked = [prompts.request(goal), *requests]
        requests += [
            text
            for number, text in self._short
            if number not in gone
            and len(text) >= prompts.SHORTEST
            and not any(other.startswith(text[:SAME]) for other in asked)
        ]
        return replace(
            merged,
            turns=self._span(gone, before),
            goal=goal,
            requests=tuple(requests),
            todos=todos,
            files=self._files.fold(gone, merge(self._seed.own, base).files),
            commits=self._folded_commits(gone, base),
            errors=self._errors.fold(gone, self._turn),
            next_steps=tuple(open_todos) or merged.next_steps or self._seed.next,
            left_out=self._left_out(base, before, gone),
            schema=own.schema,
        )

    def seed(self, base: SessionSummary, carried: Mapping[str, Any]) -> None:
        """Go on from what was read before, ahead of the first block. base: the summary then, or what a state holds of
        it; carried: what `carry` gave then, empty where the base is of another session. One that another version of
        ctxctl wrote counts as empty."""
        carried = carried if carried.get("version") == VERSION else {}
        self._seed = seed = seed_of(base, carried)
        self._todos.go_on(seed.own.todos, carried["todos"] if carried else None)
        if not carried:
            self._errors.carry(-1, 0, base.errors)
            return
        if seed.alien is not None:
            self._earlier.append((-1, 0, seed.alien))
        self._turn = carried["turn"]
        self._prompts.go_on(carried["exchange"])
        self._prose.go_on(carried["prose"])
        self._errors.go_on(carried["errors"])
        self._files.go_on(carried["files"])
        self._calls.go_on(carried["calls"])

    def carry(self, gone: Container[int] = frozenset()) -> dict[str, Any]:
        """What `seed` needs beside the summary so that facts go on as if all had been read at once: plain JSON values,
        not more of them the longer the session is."""
        before, whole = self._before(gone)
        base = one_of(before, whole, self._resumed)
        own = self._own(gone, base, whole)
        alien = next((n for n, _, found in reversed(before) if not found.turns[1] and n not in self._resumed), None)
        told = one_of([entry for entry in before if entry[0] != alien], whole, self._resumed)
        rest = merge(told, own)
        only: dict[str, list[str]] | None = None
        if alien is not None:
            only = alien_only(one_of([e for e in before if e[0] == alien], whole), rest)
        standing = {folded(text) for text in (*base.open_issues, *self._seed.own.open_issues)}
        newest = max((turn for number, turn in self._turns if number not in gone), default=0)
        shift = span_of(self._turns, gone, [entry for entry in before if entry[0] >= 0])[1] - newest
        return {
            "version": VERSION,
            "turn": self._turn,
            "turns": [*self._span(gone, before), self._seed.shift + max(0, shift)],
            "exchange": self._prompts.carry(),
            "prompted": self._seed.prompted or bool(self._prompts.live(gone)),
            "whole": whole,
            "held": [text for text in self._prose.fold("open", gone) if folded(text) not in standing],
            "prose": self._prose.carry(gone),
            "errors": self._errors.carry_on(gone, self._turn),
            "todos": self._todos.carry(gone, tuple((n, found.todos) for n, _, found in before), self._turn - 1),
            "files": self._files.carry(gone, merge(self._seed.own, base).files),
            "commits": self._seed.told if self._seed.told is not None else len(base.commits),
            "calls": self._calls.carry(gone),
            "alien": only,
            "next": list(told.next_steps or self._seed.next),
        }

    def _before(self, gone: Container[int]) -> tuple[list[tuple[int, int, SessionSummary]], bool]:
        """The earlier summaries that count, and whether the first prompt states the goal and not one of them."""
        prompted = self._prompts.live(gone)
        before = [entry for entry in self._earlier if entry[0] not in gone]
        if self._seed.goal_known:
            return before, self._seed.whole
        return before, bool(prompted) and (not before or prompted[0].block < before[0][0])

    def _span(self, gone: Container[int], before: list[tuple[int, int, SessionSummary]]) -> tuple[int, int]:
        """First and last turn covered, what was read before included."""
        first, last = span_of(self._turns, gone, [entry for entry in before if entry[0] >= 0])
        earlier = self._seed.turns
        if not last or not earlier[1]:
            return (first, last) if last else earlier
        return min(first, earlier[0]), max(last + self._seed.shift, earlier[1])

    def _folded_commits(self, gone: Container[int], base: SessionSummary) -> tuple[Commit, ...]:
        known = self._seed.own.commits
        told = len(known) if self._seed.told is None else self._seed.told
        return self._commits.fold(gone, merge(SessionSummary(commits=known[:told]), base).commits, own=known[told:])

    def first_prompt(self, gone: Container[int]) -> str:
        """The first thing that the user typed, empty when there is nothing."""
        prompted = self._prompts.live(gone)
        return prompts.said(prompted[0].text) if prompted else ""

    def planned(self, gone: Container[int]) -> set[str]:
        """Folded texts of all items that the agents themselves put on a list."""
        return self._todos.texts(gone)

    def goes_on(self, gone: Container[int]) -> Literal["asked", "put in", ""]:
        """Whether the session begins with a resume prompt: the user gave it, or a hook of the agent put it in and the
        user only said to go on. `put in`: a hook did, and the user asked for something."""
        first = min((n for n in self._resumed if n not in gone), default=None)
        if first is None:
            return ""
        prompted = self._prompts.live(gone)
        if first in self._typed or not prompted or prompts.is_go_on(prompted[0].text):
            return "asked"
        return "put in"

    def asked(self, gone: Container[int]) -> str:
        """The newest prompt after the goal as the user typed it, empty when there was none."""
        return self._prompts.newest(gone, told=self._seed.goal_known)

    def plan(
        self, gone: Container[int], told: Sequence[Todo], *, told_now: bool, clean: Callable[[str], str] = str
    ) -> Plan:
        """Everything that was ever planned, with what became of it. told: the lists before the first block; told_now:
        in the same window in which that is. clean: takes out of a text what `told` does not hold."""
        self._todos.since = self._turn - 1
        since = [(n, found.todos) for n, _, found in self._earlier if n >= 0 and n not in gone]
        before = tuple(entry for entry in since if entry[0] not in self._resumed)
        # a resume prompt repeats what is told, in part: a list that leaves that out does not call it off
        known = {(todo.agent, folded(todo.text)) for todo in told}
        again = [todo for n, todos in since if n in self._resumed for todo in todos]
        told = (*told, *(todo for todo in again if (todo.agent, folded(todo.text)) not in known))
        return self._todos.plan(gone, before, [n for n, _ in before], told=told, told_now=told_now, clean=clean)

    def _left_out(
        self, base: SessionSummary, before: list[tuple[int, int, SessionSummary]], gone: Container[int]
    ) -> tuple[LeftOut, ...]:
        """What earlier summaries had no place for and is not to be seen otherwise."""
        if not base.left_out:
            return ()
        listed = self._todos.listed(gone, before[-1][0])
        return tuple(item for item in base.left_out if not (listed and item.section in ("todos", "done")))

    def _own(self, gone: Container[int], base: SessionSummary, whole: bool) -> SessionSummary:
        """What the blocks themselves say. base: earlier summaries, for what only together with them is a fact.
        whole: the first prompt states the goal, and not an earlier summary."""
        prompted, seed = self._prompts.live(gone), self._seed.own
        goal = seed.goal or (prompts.said(prompted[0].text) if prompted else "")
        found = [c for c in self._constraints.found if c.block not in gone and is_directive(c.text)]
        known = self._seed.goal_known
        corrections = [
            (p.block, prompts.correction(p.text))
            for p in prompted[0 if known else 1 :]
            if prompts.is_correction(p.text)
        ]
        learned = sorted([*self._prose.told("learned", gone), *corrections], key=lambda pair: pair[0])
        decided = {(fact.what, fact.why): fact for fact in seed.decisions}
        for fact in self._prose.decisions(gone):
            decided.setdefault((fact.what, fact.why), fact)
        return SessionSummary(
            goal=goal,
            success_criteria=_once(seed.success_criteria, () if seed.goal else prompts.criteria(goal)),
            constraints=_distinct([*(Constraint(-1, text) for text in seed.constraints), *found]),
            requests=_once(seed.requests, self._prompts.requests(gone, told=known or (not whole and bool(base.goal)))),
            decisions=tuple(decided.values()),
            tests=self._tests.fold(gone, base.tests, own=seed.tests),
            open_issues=_once(seed.open_issues, self._prose.fold("open", gone)),
            dead_ends=_once(seed.dead_ends, self._prose.fold("dead", gone)),
            learnings=_once(seed.learnings, [text for _, text in learned]),
            next_steps=self._prose.fold("next", gone)[-1:],
            artifacts=_once(seed.artifacts, self._calls.links(gone)),
            validators=seed.validators,
            earlier=() if any(not found.turns[1] for _, _, found in self._earlier if found.earlier) else seed.earlier,
        )


def _once(earlier: Sequence[str], later: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*earlier, *later)))


def _lists(summary: SessionSummary) -> SessionSummary:
    """The lists of a summary that a resume prompt repeats, at its end or in part."""
    return SessionSummary(
        success_criteria=summary.success_criteria,
        constraints=summary.constraints,
        requests=summary.requests,
        decisions=summary.decisions,
        open_issues=summary.open_issues,
        dead_ends=summary.dead_ends,
        learnings=summary.learnings,
        artifacts=summary.artifacts,
    )


def _distinct(found: list[Constraint]) -> tuple[str, ...]:
    return tuple({folded(constraint.text): constraint.text for constraint in found}.values())
