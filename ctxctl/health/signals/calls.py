"""The tool calls of a session as detectors see them: what each one did, to which files, and how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from zlib import crc32

from ctxctl.compaction.callkinds import kind_of_call
from ctxctl.facts import files, tools
from ctxctl.facts.results import broken, output, refused, status
from ctxctl.facts.shell import Command, commands, join
from ctxctl.health.session import Session
from ctxctl.model.block import Block
from ctxctl.model.text import shortened
from ctxctl.trace.atoms import fenced_command, key_of

SHOWN = 80
"""Characters of a call in a message."""
_MEMO = "health.calls"
_RANGES = ("offset", "limit", "start_line", "end_line", "view_range", "pages", "line_start", "line_end")
_LOOKS = re.compile(r"^(?:get|list|search|find|fetch|query|lookup|describe|show|read|view|count|inspect)(?:_|$)")
_WAITS = re.compile(
    r"\b(?:sleep|wait|watch|poll|tail\s+-[fF])\b|--watch\b|^(?:bash_output|task_output|agent_output|kill_shell|write_stdin)"
    r"|^\w*(?:wait|poll|status|progress|snapshot|screenshot)"
    r"|\bkubectl\s+(?:get|describe|logs)\b|\bgh\s+(?:run|pr)\s+(?:view|checks|list)\b|\bdocker\s+(?:ps|logs)\b"
    r"|\bcurl\b[^|;&\n]*\b(?:health\w*|ready|readyz|status|ping)\b"
)
"""Calls that are made again since time passes: their result may differ at any time."""
_SEARCHES = frozenset(
    ("grep", "rg", "egrep", "fgrep", "ag", "diff", "cmp", "test", "[", "which", "ls", "find", "pgrep")
)
"""Programs whose exit status 1 says "nothing found"."""
_CLOCK = re.compile(
    r"\b\d+(?:[.:]\d+)*\s?(?:ms|s|sec|secs|seconds|m|min)\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b|\b0x[0-9a-f]{6,}\b"
)
"""What differs between two runs with the same outcome: durations, clock times, addresses of objects."""
_NOTHING = 500
"""Characters above which a result that begins like an error is the content of something."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A call reads a file. path: as the session would say it; part: what it reads of it, empty for the whole."""

    path: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call. block, result: their numbers in the trace (of a text-only agent the block is the answer), result None
    while there is none. turn: of the trace, that made it. key: equal for equal calls. kind: see `kind_of_call`, with
    `read` for tools that are named after looking something up. does: see `ctxctl.facts.tools.KINDS`. reads, changes:
    files, as far as the call says. tokens: of the result. failed: it ended in an error. waits: it is made again because
    time passes. shown: the call in short."""

    block: int
    turn: int
    exchange: int
    name: str
    key: str
    kind: str | None
    does: str | None
    shown: str
    reads: tuple[Reading, ...] = ()
    changes: tuple[str, ...] = ()
    result: int | None = None
    tokens: int = 0
    failed: bool = False
    refused: bool = False
    waits: bool = False
    programs: tuple[str, ...] = field(default=(), repr=False)

    @property
    def alters(self) -> bool:
        """Whether it may have changed something that another call would see."""
        return self.kind is None and self.does not in (tools.TODO, tools.ASK) and not self.refused


def calls_of(session: Session) -> list[Call]:
    """All calls of the main thread in the order in which they were made. Worked out once per session."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = _Reader(session).all()
    found: list[Call] = memo[_MEMO]
    return found


class _Reader:
    """Pairs calls with results and tells what each did."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._root = (session.transcript.cwd or "").rstrip("/")
        self._scripts: dict[str, list[str]] = {}
        self._calls: list[Call] = []

    def all(self) -> list[Call]:
        waiting: dict[str, int] = {}
        nameless: list[int] = []
        fenced: tuple[int, Block] | None = None
        trace = self._session.trace
        for number, block in enumerate(trace.blocks):
            if block.kind == "tool_call":
                at = len(self._calls)
                self._calls.append(self._call(number, block))
                if block.call_id is not None:
                    waiting[block.call_id] = at
                else:
                    nameless.append(at)
            elif block.kind == "tool_result":
                found: int | None = None
                if block.call_id is not None:
                    found = waiting.pop(block.call_id, None)
                elif nameless:
                    found = nameless.pop(0)
                elif fenced is not None and (script := fenced_command(fenced[1].text)) is not None:
                    found = len(self._calls)
                    self._calls.append(self._script(*fenced, script.removeprefix("call "), fenced[1].text))
                    fenced = None
                if found is not None:
                    self._calls[found] = self._ended(self._calls[found], number, block)
            elif block.kind == "assistant":
                fenced = (number, block) if "```" in block.text else None
        return self._calls

    def _call(self, number: int, block: Block) -> Call:
        name = block.tool_name or "tool"
        does = tools.kind_of(name)
        key = key_of(block.text) or f"call {name}"
        given = tools.arguments(block) or {}
        reads: list[Reading] = []
        changes: list[str] = []
        script = ""
        programs: tuple[str, ...] = ()
        if does == tools.SHELL:
            script, folder = tools.script_of(given)
            parts = commands(script, folder)
            programs = tuple(part.name for part in parts)
            reads, changes = self._touched(files.of_script(parts, self._scripts), parts)
        elif does == tools.PATCH:
            patch = str(given.get("input", given.get("patch", ""))) or tools.raw_arguments(block)
            changes = [self._path(touch.path) for touch in files.of_patch(patch)]
        elif does is not None and does not in (tools.TODO, tools.ASK):
            part = " ".join(f"{k}={given[k]}" for k in _RANGES if given.get(k) is not None)
            for touch in files.of_tool(does, given):
                if touch.action == files.READING:
                    reads.append(Reading(self._path(touch.path), part))
                else:
                    changes.append(self._path(touch.path))
        if does in (tools.EDIT, tools.WRITE, tools.EDITOR, tools.PATCH):
            # the key of a file tool is its path: what is written belongs to it
            key = f"{key} {crc32(block.text.encode('utf-8', 'replace')):08x}"
        kind = "read" if reads and does in (tools.READ, tools.EDITOR) else kind_of_call(name, script)
        if kind is None and does is None and _LOOKS.match(_plain(name)):
            kind = "read"
        said = script or block.target or tools.raw_arguments(block)
        return self._made(number, block, name, key, kind, does, said, reads, changes, programs)

    def _script(self, number: int, block: Block, script: str, text: str) -> Call:
        """A call that is a fenced block of an answer. script: in one line; text: of the answer."""
        whole = text[: text.rfind("```")]
        whole = whole[whole.rfind("```") :].partition("\n")[2]
        parts = commands(whole)
        reads, changes = self._touched(files.of_script(parts, self._scripts), parts)
        programs = tuple(part.name for part in parts)
        kind = kind_of_call("bash", whole)
        return self._made(number, block, "shell", f"call {script}", kind, tools.SHELL, whole, reads, changes, programs)

    def _made(
        self,
        number: int,
        block: Block,
        name: str,
        key: str,
        kind: str | None,
        does: str | None,
        said: str,
        reads: list[Reading],
        changes: list[str],
        programs: tuple[str, ...],
    ) -> Call:
        shown = shortened(f"{name} {' '.join(said[: 4 * SHOWN].split())}".strip(), SHOWN)
        waits = _WAITS.search(f"{_plain(name)} {said[:2000] if does == tools.SHELL else ''}") is not None
        made = Call(number, block.turn, block.exchange, name, key, kind, does, shown, tuple(reads), tuple(changes))
        return replace(made, waits=waits, programs=programs)

    def _ended(self, call: Call, number: int, block: Block) -> Call:
        text = block.text
        never = refused(text)
        failed = block.is_error or never
        code = status(text) if call.does == tools.SHELL or call.does is None else None
        if code is not None:
            failed = code != 0
        elif not failed and call.does != tools.SHELL and len(text) < _NOTHING:
            failed = broken(text)
        if failed and code in (None, 1) and call.does == tools.SHELL and call.programs[-1:]:
            said = output(text).strip()
            failed = bool(said) and not (call.programs[-1] in _SEARCHES and code == 1)
        tokens = self._session.trace.tokens[number]
        return replace(call, result=number, tokens=tokens, failed=failed, refused=never)

    def _touched(self, touches: list[files.Touch], parts: list[Command]) -> tuple[list[Reading], list[str]]:
        reads: list[Reading] = []
        changes: list[str] = []
        for touch in touches:
            path = self._path(join(touch.folder, touch.path))
            if touch.action == files.READING:
                reads.append(Reading(path, _part(parts, touch.part or 0, touch.path)))
            else:
                changes.append(path)
        return reads, changes

    def _path(self, path: str) -> str:
        path = join("", path)
        if self._root and path.startswith(f"{self._root}/"):
            return path[len(self._root) + 1 :]
        return path


def _part(parts: list[Command], at: int, path: str) -> str:
    """What a command of a script reads of a file, with the programs that its output goes through."""
    words = [word for word in parts[at].words if word != path]
    words = [] if words == ["cat"] else words
    while parts[at].after == "|" and at + 1 < len(parts):
        at += 1
        words += ["|", *parts[at].words]
    return " ".join(words)


@cache
def _plain(name: str) -> str:
    """The name of a tool without the server that it belongs to, in snake case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rpartition("__")[2]).lower()


def outcome(session: Session, call: Call) -> str | None:
    """What a call gave, without what differs between two runs that went the same way; None without a result."""
    if call.result is None:
        return None
    text = output(session.trace.blocks[call.result].text).strip()
    return _CLOCK.sub("#", text) if call.does == tools.SHELL and len(text) < 50_000 else text


_NUMBERED = re.compile(r"[ \t]*\d+(?:\t|\u2192)")
_NUMBERS = re.compile(r"^[ \t]*\d+(?:\t|\u2192)", re.MULTILINE)


def content_of(session: Session, call: Call) -> str:
    """What a call showed of something: its output without the numbers that a tool wrote in front of the lines."""
    if call.result is None:
        return ""
    text = output(session.trace.blocks[call.result].text).strip("\n")
    text = _NUMBERS.sub("", text) if _NUMBERED.match(text) else text
    return text.strip()


def in_window(session: Session, call: Call, turn: int) -> bool:
    """Whether a request of the main thread held the result of a call."""
    return call.result is not None and session.stays[call.result].holds(turn)


def text_of(session: Session, call: Call) -> str:
    """The result of a call as the model read it, empty without one."""
    return session.trace.blocks[call.result].text if call.result is not None else ""
