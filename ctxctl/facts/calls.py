"""What the calls of a session did, as far as their results tell."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace
from typing import Any

from ctxctl.facts import commits, files, prompts, tests, tools
from ctxctl.facts.errors import ErrorLog
from ctxctl.facts.pending import MOST, Pending, dump, dump_all, load
from ctxctl.facts.prose import ProseLog
from ctxctl.facts.results import broken, output, refused, status
from ctxctl.facts.shell import commands
from ctxctl.facts.todos import TodoLog, folded
from ctxctl.model.block import Block
from ctxctl.model.text import shortened

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


class CallLog:
    """Follows the calls, and hands what they did to the logs of the facts."""

    def __init__(
        self,
        todos: TodoLog,
        files: files.FileLog,
        commits: commits.CommitLog,
        tests: tests.RunLog,
        errors: ErrorLog,
        prose: ProseLog,
    ) -> None:
        self._todos, self._files, self._commits = todos, files, commits
        self._tests, self._errors, self._prose = tests, errors, prose
        self._links: list[tuple[int, str]] = []
        self._pending: dict[str, Pending] = {}
        self._running: dict[str, Pending] = {}
        self._scripts: dict[str, list[str]] = {}
        self._last: tuple[int, Block] | None = None
        self._script_before: Pending | None = None
        self._less = False
        self._flags = False

    def carry(self, gone: Container[int]) -> dict[str, Any]:
        """What `go_on` needs: the calls that may still get a result."""
        fenced = self._script_of_last()
        return {
            "flags": self._flags,
            "waiting": dump_all((key, call) for key, call in self._pending.items() if call.number not in gone),
            "running": dump_all(self._running.items()),
            "scripts": dict(list(self._scripts.items())[-MOST:]),
            "fenced": dump("", fenced) if fenced is not None else None,
        }

    def go_on(self, carried: dict[str, Any]) -> None:
        """Go on where `carry` was asked, before the first block."""
        self._flags = carried["flags"]
        self._pending = dict(load(call) for call in carried["waiting"])
        self._running = dict(load(call) for call in carried["running"])
        self._scripts = {path: list(written) for path, written in carried["scripts"].items()}
        if carried["fenced"] is not None:
            self._script_before = load(carried["fenced"])[1]

    def links(self, gone: Container[int]) -> list[str]:
        """The links of what calls created, oldest first."""
        return [link for number, link in self._links if number not in gone]

    def said(self, block: Block | None, number: int) -> None:
        """Take an answer, whose script may be run. None for one that is not whole."""
        self._last = (number, block) if block is not None else None
        self._script_before = None

    def call(self, block: Block, number: int) -> None:
        """Take a call."""
        name = block.tool_name or ""
        kind = tools.kind_of(name)
        if kind is None:
            if name == "write_stdin" or name == "ExitPlanMode":
                self._other(block, number, name)
            return
        if kind == tools.TODO:
            self._todos.call(block, number)
        pending = Pending(number, block.turn, kind, block.tool_name, block.target)
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
            title = shortened(folded(str(given.get("plan", "")).lstrip("# ").partition("\n")[0]), 200)
            self._pending[block.call_id] = Pending(number, block.turn, "plan", name, plan=title)

    def _script(self, pending: Pending, script: str, folder: str) -> None:
        parts = commands(script, folder)
        pending.names = [part.name for part in parts]
        pending.creates = any(command in script for command in _CREATES)
        pending.touches = files.of_script(parts, self._scripts)
        pending.tests = tests.asked(parts, script)
        if "commit" in script:
            pending.commits = commits.asked(parts)

    def result(self, block: Block, number: int, *, shrunk: bool) -> None:
        """Take a result. shrunk: it is what is left of one."""
        self._less = shrunk
        self._flags = self._flags or block.is_error
        text = block.text
        pending = self._pending.pop(block.call_id, None) if block.call_id is not None else self._fenced(block)
        if pending is not None and block.tool_name is None and pending.tool is not None:
            block = replace(block, tool_name=pending.tool, target=pending.target)  # its call was read before
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
                self._prose.decide(pending.number, pending.turn, f"the user approved the plan: {pending.plan}")
        else:
            failed = failed or broken(text) or (pending.kind == tools.PATCH and status(text) not in (None, 0))
            if not failed:
                self._files.add(pending.number, pending.touches)
        self._errors.add(number, block, text, failed, shrunk=self._less)

    def _fenced(self, block: Block) -> Pending | None:
        """The script in the answer before a result without a call."""
        if block.tool_name is None:
            return None
        found, self._last, self._script_before = self._script_of_last(), None, None
        return found

    def _script_of_last(self) -> Pending | None:
        """The one script in the newest answer."""
        if self._last is None:
            return self._script_before
        number, said = self._last
        scripts = _RUN.findall(said.text) if "```" in said.text else []
        if len(scripts) != 1:
            return None
        found = Pending(number, said.turn, tools.SHELL)
        self._script(found, scripts[0], "")
        return found

    def _ran(self, pending: Pending, block: Block, number: int) -> None:
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
        if not failed and pending.creates:
            self._links.extend((pending.number, link) for link in _LINK.findall(text)[-1:])
        if failed and code == 1 and (not text.strip() or (pending.names and pending.names[-1] in _SEARCHES)):
            return
        self._errors.add(number, block, text, failed, shrunk=self._less)

    def _refused(self, pending: Pending, block: Block, number: int) -> None:
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


def _happened(pending: Pending, text: str, failed: bool) -> list[files.Touch]:
    """What a script did. One that failed did so, as far as can be told, in its last command; a program that complains
    of a file did not change it."""
    last = len(pending.names) - 1
    found = []
    for touch in pending.touches:
        if touch.part is None or (failed and touch.part == last):
            continue
        name = pending.names[touch.part]
        if f"{name}: " in text and re.search(rf"^{re.escape(name)}: .*{re.escape(touch.path)}", text, re.MULTILINE):
            continue
        found.append(touch)
    return found
