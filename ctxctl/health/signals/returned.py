"""What sub-agents returned to the main thread (requirement C6), and how much of it is their trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ctxctl.facts import tools
from ctxctl.health.session import Session
from ctxctl.model.block import Block
from ctxctl.trace.atoms import lines

# Claude Code (Task, Agent; TaskOutput and AgentOutputTool of those in the background), Codex (spawn_agent, wait_agent,
# wait), opencode and Cline (task, new_task, use_subagents), OpenHands and LangChain (delegate, task), Gemini CLI
# (delegate_to_agent, codebase_investigator), octos (delegate_task, spawn)
_NAMES = re.compile(
    r"(?:task|agent|subagent|new_task|use_subagents?|run_subagent|spawn(?:_agents?|_subagent)?|wait_agent|task_?output"
    r"|agent_?output(?:_?tool)?|delegate(?:_to_agent|_task|_work)?|codebase_investigator|dispatch_agent|call_agent)",
    re.IGNORECASE,
)
_TOOL = r"(?:Bash|Read|Grep|Glob|Edit|Write|MultiEdit|LS|WebFetch|WebSearch|TodoWrite|shell|exec_command|apply_patch)"
_TRACE = re.compile(
    r"\[Tool(?: use| call| result)?: ?\w+\]|\[tool_(?:use|call|result)\b"
    r"|<(?:tool_use|tool_call|invoke|function_results?)\b"
    rf"|(?:[●⏺•>*-] ?)?{_TOOL}\((?!\))"
    r"|(?:Tool|Calling tool|Called tool|Action|Observation|Tool call|Tool result): "
    r"|\$ \w|\d+(?:\t|→)|Exit code:? -?\d+$|[+-]{3} [ab]/|@@ -\d+"
    r"|\{\"(?:parentUuid|isSidechain|tool_use_id|tool_name|command|file_path|pattern)\":"
    r"|\{\"type\": ?\"(?:assistant|user|tool_use|tool_result|message|function_call(?:_output)?)\""
    r"|(?:Now |First,? |Next,? |Then |OK,? |Good[.,!] )?"
    r"(?:let me|let's|I'll|I will|I need to) (?:now |first |also |next )?"
    r"(?:check|look|read|search|see|examine|run|find|open|list|try|start|explore|view|verify|get)\b",
    re.IGNORECASE,
)
"""How a line begins that tells a step instead of a conclusion: calls and their results as clients write them, commands,
numbered lines of files, diffs, what is going to be looked at."""
_ID = re.compile(r"<task_id>([\w-]{1,64})</task_id>|\bagentId: ([\w-]{1,64})")
NEAR = 2_000
"""Characters in which a result names its sub-agent."""
LOG = re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Returned:
    """A result that a sub-agent gave to the main thread. block: its number in the trace; call: the number of the call,
    None where it is not there. name: how the call names the sub-agent. trace: share of its characters in lines that
    tell a step; copied: share in lines that stand in what the sub-agent itself read, None where its own thread is not
    there. first: the first line that tells a step."""

    block: int
    call: int | None
    name: str
    trace: float
    copied: float | None
    first: str = ""


@cache
def is_helper(name: str) -> bool:
    """Whether a tool of this name starts a sub-agent or fetches what one says."""
    return _NAMES.fullmatch(name.rpartition("__")[2].rpartition(".")[2]) is not None


def returned(session: Session, least: int) -> Iterator[Returned]:
    """Every result of a sub-agent with so many tokens or more, in order."""
    blocks, tokens = session.trace.blocks, session.trace.tokens
    calls: dict[str, int] = {}
    launched: dict[str, str] = {}
    threads = _Threads(session)
    for number, block in enumerate(blocks):
        if block.kind == "tool_call" and block.call_id is not None and is_helper(block.tool_name or ""):
            calls[block.call_id] = number
        elif block.kind == "tool_result" and is_helper(block.tool_name or ""):
            call = calls.get(block.call_id or "")
            given = (tools.arguments(blocks[call]) or {}) if call is not None else {}
            found = _ID.search(block.text[:NEAR])
            id_ = (found[1] or found[2]) if found is not None else ""
            name = launched.get(id_) or _name(given) or id_ or "a sub-agent"
            if id_:
                launched[id_] = name
            if tokens[number] >= least:
                step, first = _steps(block.text)
                yield Returned(number, call, name, step, threads.copied(block, given), first)


def _name(given: dict[str, object]) -> str:
    for key in ("description", "subagent_type", "agent", "agent_name", "agent_type", "name"):
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:60]
    return ""


def _steps(text: str) -> tuple[float, str]:
    """Share of the characters in lines that tell a step, and the first of them."""
    total = told = 0
    first = ""
    for raw in text.split("\n"):
        line = raw.strip()
        total += len(line)
        if _TRACE.match(line) is not None or LOG.match(line) is not None:
            told += len(line)
            first = first or line
    return (told / total if total else 0.0), first


class _Threads:
    """The threads of sub-agents, as far as the transcript holds them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._read: dict[str, set[str]] | None = None
        self._prompts: dict[str, str] = {}

    def copied(self, block: Block, given: dict[str, object]) -> float | None:
        """Share of the characters of a result in lines that its sub-agent read."""
        if len(self._session.transcript.threads) < 2:
            return None
        if self._read is None:
            self._read = {}
            self._load(self._read)
        name = self._thread(block, given)
        if name is None or not self._read.get(name):
            return None
        known = self._read[name]
        total = sum(len(line.strip()) for line in block.text.split("\n"))
        same = sum(len(line.strip()) for line in block.text.split("\n") if lines(line) & known)
        return same / total if total else 0.0

    def _load(self, read: dict[str, set[str]]) -> None:
        main = self._session.transcript.main
        for block in self._session.everything:
            if block.thread == main:
                continue
            if block.kind == "tool_result":
                read.setdefault(block.thread, set()).update(lines(block.text))
            elif block.kind == "user_message":
                self._prompts.setdefault(block.thread, block.text.strip())

    def _thread(self, block: Block, given: dict[str, object]) -> str | None:
        found = _ID.search(block.text[:NEAR])
        if found is not None and (found[1] or found[2]) in self._prompts:
            return str(found[1] or found[2])
        prompt = given.get("prompt", given.get("message", given.get("task")))
        if not isinstance(prompt, str) or not prompt.strip():
            return None
        return next((name for name, text in self._prompts.items() if text == prompt.strip()), None)
