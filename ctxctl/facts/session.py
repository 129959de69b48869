"""The facts of a session, collected while its blocks pass by, and the typed session summary that they give."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any

from ctxctl.facts import commits, files, foreign, prompts, shrunk, tests, tools
from ctxctl.facts.constraints import Constraint, ConstraintFinder
from ctxctl.facts.errors import ErrorLog
from ctxctl.facts.merge import merge
from ctxctl.facts.parse import parse
from ctxctl.facts.prose import ProseLog
from ctxctl.facts.results import broken, output, refused, status
from ctxctl.facts.shell import Command, commands
from ctxctl.facts.todos import TodoLog, folded
from ctxctl.model.block import Block
from ctxctl.model.summary import LeftOut, SessionSummary
from ctxctl.model.text import is_summary, shortened

# mini-swe-agent runs the one fenced block of an answer, and nothing when there are several
_RUN = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n```", re.DOTALL)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_ANSWER = re.compile(r'"([^"\n]+)"="([^"\n]*)"')
_SAID = re.compile(r"the user said:?\s*(.+)", re.IGNORECASE | re.DOTALL)
_CREATES = ("gh pr create", "gh issue create", "glab mr create", "gh release create")
_LINK = re.compile(r"https://[^\s\"'<>)\\]+")
_BY_USER = ("The user doesn't want", "patch rejected by user", "rejected by user", "exec command rejected by user")
_SEARCHES = frozenset(("grep", "rg", "egrep", "ag", "diff", "test", "[", "which", "ls", "find", "pgrep"))
"""Programs whose exit status 1 says "nothing found"."""


SAME = 60
"""Characters by which what is left of a prompt is known to be one that is there as a whole."""


@dataclass(slots=True)
class _Pending:
    """A call whose result decides what it did. given: its arguments where they matter."""

    number: int
    turn: int
    kind: str
    touches: list[files.Touch] = field(default_factory=list)
    parts: list[Command] = field(default_factory=list)
    commits: list[commits.Asked] = field(default_factory=list)
    tests: list[tests.Asked] = field(default_factory=list)
    script: str = ""
    given: dict[str, Any] | None = None


class SessionFacts:
    """Collects the facts of a session. Feed it every block of the main thread in order."""

    def __init__(self) -> None:
        self._prompts = prompts.Prompts()
        self._constraints = ConstraintFinder()
        self._todos = TodoLog()
        self._files = files.FileLog()
        self._commits = commits.CommitLog()
        self._tests = tests.RunLog()
        self._errors = ErrorLog()
        self._prose = ProseLog()
        self._links: list[tuple[int, str]] = []
        self._earlier: list[tuple[int, int, SessionSummary]] = []
        self._turns: list[tuple[int, int]] = []
        self._turn = -1
        self._pending: dict[str, _Pending] = {}
        self._running: dict[str, _Pending] = {}
        self._scripts: dict[str, list[str]] = {}
        self._last: tuple[int, Block] | None = None
        self._short: list[tuple[int, str]] = []
        self._less = False
        self._flags = False

    def see(self, block: Block, number: int) -> None:
        """Take a block. number: its position among all blocks of the transcript."""
        if block.turn != self._turn:
            self._turn = block.turn
            self._turns.append((number, block.turn))
        kind = block.kind
        left = shrunk.left_of(block) if kind not in ("tool_call", "thinking") else None
        if kind == "tool_call":
            self._call(block, number)
        elif kind == "tool_result":
            self._less = left is not None
            self._flags = self._flags or block.is_error
            self._result(block if left is None else replace(block, text=left), number)
        elif left is not None:
            self._shorter(block, shrunk.whole_lines(left), number)
        elif kind == "assistant":
            self._last = (number, block)
            self._prose.said(block, number)
            self._todos.said(block, number)
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

    def _shorter(self, block: Block, text: str, number: int) -> None:
        """Take a message that was made shorter before: its whole sentences hold, as they did."""
        block = replace(block, text=text)
        if block.kind == "assistant":
            self._last = None  # its script may be cut
            self._prose.said(block, number)
        elif block.kind in ("user_message", "summary"):
            self._short.append((number, prompts.request(text)))
            self._constraints.see(block, number)

    def summary(self, gone: Container[int] = frozenset()) -> SessionSummary:
        """The typed summary of what was seen. gone: numbers of blocks that don't count, of a branch left behind."""
        prompted = self._prompts.live(gone)
        before = [entry for entry in self._earlier if entry[0] not in gone]
        whole = bool(prompted) and (not before or prompted[0].block < before[0][0])
        base = _before(before, whole)
        own = self._own(gone, base)
        merged = merge(base, own)
        todos = self._todos.fold(gone, tuple((number, found.todos) for number, _, found in before))
        open_todos = [todo.text for todo in todos if todo.status == "doing"]
        open_todos = open_todos or [todo.text for todo in todos if todo.status == "planned"][:1]
        goal = own.goal if whole else base.goal or own.goal
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
            turns=_span(self._turns, gone, before),
            goal=goal,
            requests=tuple(requests),
            todos=todos,
            files=self._files.fold(gone, base.files),
            commits=self._commits.fold(gone, base.commits),
            errors=self._errors.fold(gone, self._turn),
            next_steps=tuple(open_todos) or merged.next_steps,
            left_out=self._left_out(base, before, gone),
            schema=own.schema,
        )

    def _left_out(
        self, base: SessionSummary, before: list[tuple[int, int, SessionSummary]], gone: Container[int]
    ) -> tuple[LeftOut, ...]:
        """What earlier summaries had no place for and is not to be seen otherwise."""
        if not base.left_out:
            return ()
        listed = self._todos.listed(gone, before[-1][0])
        return tuple(item for item in base.left_out if not (listed and item.section in ("todos", "done")))

    def _own(self, gone: Container[int], base: SessionSummary) -> SessionSummary:
        """What the blocks themselves say. base: earlier summaries, for what only together with them is a fact."""
        prompted = self._prompts.live(gone)
        goal = prompts.said(prompted[0].text) if prompted else ""
        found = [c for c in self._constraints.found if c.block not in gone and not c.text.endswith(("?", "？"))]
        learned = [
            f"the user corrected: {prompts.request(p.text)}" for p in prompted[1:] if prompts.is_correction(p.text)
        ]
        return SessionSummary(
            goal=goal,
            success_criteria=prompts.criteria(goal),
            constraints=_distinct(found),
            requests=self._prompts.requests(gone),
            decisions=self._prose.decisions(gone),
            tests=self._tests.fold(gone, base.tests),
            open_issues=self._prose.fold("open", gone),
            dead_ends=self._prose.fold("dead", gone),
            learnings=(*self._prose.fold("learned", gone), *learned),
            next_steps=self._prose.fold("next", gone)[-1:],
            artifacts=tuple(dict.fromkeys(link for number, link in self._links if number not in gone)),
        )

    def _call(self, block: Block, number: int) -> None:
        name = block.tool_name or ""
        kind = tools.kind_of(name)
        if kind is None:
            if name == "write_stdin" or name == "ExitPlanMode":
                self._other(block, number, name)
            return
        if kind == tools.TODO:
            self._todos.call(block, number)
        pending = _Pending(number, block.turn, kind)
        if kind == tools.SHELL:
            script, folder = tools.script_of(tools.arguments(block) or {})
            self._script(pending, script, folder)
        elif kind == tools.PATCH:
            given = tools.arguments(block)
            patch = tools.raw_arguments(block) if given is None else str(given.get("input", given.get("patch", "")))
            pending.touches = files.of_patch(patch)
        elif kind != tools.TODO and kind != tools.ASK:
            pending.touches = files.of_tool(kind, tools.arguments(block) or {})
        if block.call_id is not None:
            self._pending[block.call_id] = pending

    def _other(self, block: Block, number: int, name: str) -> None:
        given = tools.arguments(block) or {}
        if name == "write_stdin":
            running = self._running.pop(str(given.get("session_id", "")), None)
            if running is not None and block.call_id is not None:
                self._pending[block.call_id] = running
        elif block.call_id is not None:
            self._pending[block.call_id] = _Pending(number, block.turn, "plan", given=given)

    def _script(self, pending: _Pending, script: str, folder: str) -> None:
        pending.script = script
        pending.parts = parts = commands(script, folder)
        pending.touches = files.of_script(parts, self._scripts)
        pending.tests = tests.asked(parts, script)
        if "commit" in script:
            pending.commits = commits.asked(parts)

    def _result(self, block: Block, number: int) -> None:
        text = block.text
        pending = self._pending.pop(block.call_id, None) if block.call_id is not None else self._fenced(block)
        if pending is None:
            self._errors.add(number, block, text, block.is_error, shrunk=self._less)
            return
        if refused(text):
            self._refused(pending, block, number)
            return
        if pending.kind == tools.SHELL:
            self._ran(pending, block, number)
            return
        failed = block.is_error
        if pending.kind == tools.TODO:
            self._todos.result(block, failed)
        elif pending.kind == tools.ASK:
            for question, answer in _ANSWER.findall(text):
                self._prose.decide(pending.number, pending.turn, folded(f"{question} {answer} (the user's answer)"))
        elif pending.kind == "plan":
            if not failed and "approved" in text[:200]:
                title = shortened(
                    folded(str((pending.given or {}).get("plan", "")).lstrip("# ").partition("\n")[0]), 200
                )
                self._prose.decide(pending.number, pending.turn, f"the user approved the plan: {title}")
        else:
            failed = failed or broken(text) or (pending.kind == tools.PATCH and status(text) not in (None, 0))
            if not failed:
                self._files.add(pending.number, pending.touches)
        self._errors.add(number, block, text, failed, shrunk=self._less)

    def _fenced(self, block: Block) -> _Pending | None:
        """The script in the answer before a result without a call."""
        if self._last is None or block.tool_name is None:
            return None
        number, said = self._last
        self._last = None
        scripts = _RUN.findall(said.text) if "```" in said.text else []
        if len(scripts) != 1:
            return None
        pending = _Pending(number, said.turn, tools.SHELL)
        self._script(pending, scripts[0], "")
        return pending

    def _ran(self, pending: _Pending, block: Block, number: int) -> None:
        """Take the result of a script."""
        text = block.text
        code = status(text)
        if code is None and "ession ID" in text[:400] and (match := _RUNNING.search(text[:400])) is not None:
            self._running[match.group(1)] = pending
            return
        failed = block.is_error or code not in (None, 0)
        if pending.touches:
            self._files.add(pending.number, _happened(pending, text, failed))
        if code is None and (failed or block.tool_name == "Bash"):
            code = int(failed)
            unsure = self._less and not self._flags
            if pending.tests and not failed and (unsure or tests.shows_failures(output(text))):
                code = None  # formats without a flag for failures have tools of that name too
        if pending.tests or pending.commits or failed:
            text = output(text)
        if pending.commits:
            self._commits.add(pending.number, pending.turn, pending.commits, text, failed, shrunk=self._less)
        if pending.tests:
            self._tests.add(pending.number, pending.turn, pending.tests, text, code, shrunk=self._less)
            return
        if not failed and any(command in pending.script for command in _CREATES):
            self._links.extend((pending.number, link) for link in _LINK.findall(text)[-1:])
        if failed and code == 1 and (not text.strip() or (pending.parts and pending.parts[-1].name in _SEARCHES)):
            return
        self._errors.add(number, block, text, failed, shrunk=self._less)

    def _refused(self, pending: _Pending, block: Block, number: int) -> None:
        """The call never ran: nothing happened but that somebody did not want it."""
        if pending.kind == tools.TODO:
            self._todos.result(block, True)
        if block.text.startswith(_BY_USER):
            what = f"{block.tool_name or 'tool'} {block.target or ''}".strip()
            self._prose.dead(number, block.turn, folded(f"the user refused: {what}"))
            if (match := _SAID.search(block.text)) is not None:
                said = prompts.request(match.group(1))
                self._prose.learned(number, block.turn, f"the user corrected: {said}")
        elif block.is_error:
            self._errors.add(number, block, block.text, True, shrunk=self._less)


def _happened(pending: _Pending, text: str, failed: bool) -> list[files.Touch]:
    """What a script did. One that failed did so, as far as can be told, in its last command; a program that complains
    of a file did not change it."""
    last = len(pending.parts) - 1
    found = []
    for touch in pending.touches:
        if touch.part is None or (failed and touch.part == last):
            continue
        name = pending.parts[touch.part].name
        if f"{name}: " in text and re.search(rf"^{re.escape(name)}: .*{re.escape(touch.path)}", text, re.MULTILINE):
            continue
        found.append(touch)
    return found


def _before(before: list[tuple[int, int, SessionSummary]], whole: bool) -> SessionSummary:
    """Earlier summaries as one. Of those that other agents wrote the newest covers the ones before it. whole: what they
    replaced is there too, so that the user's words need not be taken from them."""
    base = SessionSummary()
    alien = [at for at, (_, _, found) in enumerate(before) if not found.turns[1]]
    for at, (_, _, found) in enumerate(before):
        if at not in alien:
            base = merge(base, found)
        elif at == alien[-1]:
            base = merge(base, replace(found, requests=()) if whole else found)
    return base


def _distinct(found: list[Constraint]) -> tuple[str, ...]:
    return tuple({folded(constraint.text): constraint.text for constraint in found}.values())


def _span(
    turns: list[tuple[int, int]], gone: Container[int], before: list[tuple[int, int, SessionSummary]]
) -> tuple[int, int]:
    """First and last turn covered. A file that was written after a compaction counts its turns anew: they come behind
    those that its summary covers."""
    live = [turn for number, turn in turns if number not in gone]
    if not live:
        return (0, 0)
    first, last = max(1, min(live)), max(live)
    for _, turn, found in before:
        if found.turns[1]:
            last += max(0, found.turns[1] - (turn - 1)) if turn <= found.turns[1] else 0
            first = min(first, found.turns[0])
    return (first, last)
