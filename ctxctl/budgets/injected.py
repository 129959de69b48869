"""What a client or a memory put into the window, also where it stands inside other blocks (component
memory_injection)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxctl.facts.shell import commands
from ctxctl.facts.tools import READ, SHELL, arguments, kind_of, path_of, script_of
from ctxctl.model.block import Block

TAGS = ("system-reminder", "system_reminder", "ide_opened_file", "ide_selection", "environment_details")
"""Tags that clients wrap what they add in: Claude Code, its plugins for editors, Cline."""
_OPEN = re.compile(rf"<({'|'.join(TAGS)})>")
_HOLDS_NOTES = frozenset(("user_message", "tool_result"))
INSTRUCTION_FILES = frozenset(
    (
        *("claude.md", "claude.local.md", "agents.md", "agents.override.md", "agent.md", "memory.md", "gemini.md"),
        *("qwen.md", "crush.md", "goose.md", ".goosehints", ".cursorrules", ".windsurfrules", ".clinerules"),
        *(".roorules", ".aider.conf.yml", "copilot-instructions.md", "memory.json", "memory.jsonl"),
    )
)
"""Names of files that hold instructions of a project or what an agent remembers, in lower case."""
INSTRUCTION_FOLDERS = (
    ".cursor/rules/",
    ".clinerules/",
    ".roo/rules/",
    ".windsurf/rules/",
    ".claude/rules/",
    ".github/instructions/",
    ".octos/",
    "memory-bank/",
)
_SHOWS = frozenset(("cat", "head", "tail", "sed", "less", "more", "bat", "nl", "type", "get-content"))
"""Programs that print a file."""
_WORDS = re.compile(r"[a-z0-9]+|[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")
_MEMORY = frozenset(("memory", "memories", "mem0", "openmemory", "basicmemory", "zep", "letta"))
_OF_MACHINES = frozenset(
    ("usage", "info", "profile", "profiler", "profiling", "leak", "leaks", "dump", "stats", "limit", "limits", "heap")
)
"""Words beside `memory` in names of tools that are about a machine's."""


def reminders(text: str) -> int:
    """Characters of notes that a client wrapped around a text: whole tagged spans in front of it or behind it.

    A tag elsewhere is quoted (code, a file that was read, a question about it) and an open one is no span, so neither
    counts; nor does one that starts within a line, which a numbered listing of a file has.
    """
    if "<" not in text or ">" not in text:
        return 0
    start, end = 0, len(text)
    found = 0
    while (span := _leading(text, start, end)) is not None:
        start, characters = span
        found += characters
    while (span := _trailing(text, start, end)) is not None:
        end, characters = span
        found += characters
    return found


def _leading(text: str, start: int, end: int) -> tuple[int, int] | None:
    at = start
    while at < end and text[at].isspace():
        at += 1
    match = _OPEN.match(text, at, end)
    if match is None:
        return None
    close = f"</{match[1]}>"
    last = text.find(close, match.end(), end)
    if last < 0:
        return None
    last += len(close)
    return last, last - at


def _trailing(text: str, start: int, end: int) -> tuple[int, int] | None:
    at = end
    while at > start and text[at - 1].isspace():
        at -= 1
    tag = next((t for t in TAGS if text.endswith(f"</{t}>", start, at)), None)
    if tag is None:
        return None
    inner = at - len(tag) - 3
    opens = text.rfind(f"<{tag}>", start, inner)
    if opens < 0 or text.find(f"</{tag}>", opens, inner) >= 0:
        return None
    if opens > start and text[opens - 1] != "\n":
        return None
    return opens, at - opens


def note_share(block: Block) -> float:
    """Share of a block's text that is such notes, 0..1; models and tools' arguments only quote them."""
    if block.kind not in _HOLDS_NOTES or not block.text:
        return 0.0
    return reminders(block.text) / len(block.text)


def remembering(blocks: Iterable[Block]) -> dict[str, str]:
    """Ids of the calls whose results are memory: `instructions` where a project's instruction file was read, `tool`
    where a memory tool was asked."""
    found: dict[str, str] = {}
    for block in blocks:
        if block.kind != "tool_call" or block.call_id is None or block.tool_name is None:
            continue
        if is_memory_tool(block.tool_name):
            found[block.call_id] = "tool"
        elif reads_instructions(block):
            found[block.call_id] = "instructions"
    return found


def is_memory_tool(name: str) -> bool:
    """Whether a tool keeps what an agent is to remember, by its name or that of its server."""
    words = [w.lower() for w in _WORDS.findall(name)]
    return any(w in _MEMORY for w in words) and not any(w in _OF_MACHINES for w in words)


def reads_instructions(call: Block) -> bool:
    """Whether a call reads a file of instructions, and nothing else."""
    name = call.tool_name or ""
    kind = kind_of(name)
    if kind not in (READ, SHELL) and name.lower() not in ("file_editor", "str_replace_editor"):
        return False
    given = arguments(call)
    if given is None:
        return False
    if kind != SHELL:
        path = path_of(given)
        viewing = kind == READ or given.get("command") == "view"
        return viewing and path is not None and is_instruction_file(path)
    script, folder = script_of(given)
    if not any(name in script.lower() for name in ("md", "rules", "memory", "octos", "hints", "conf")):
        return False
    parts = [part for part in commands(script, folder) if part.words and part.name not in ("cd", "pwd", "echo")]
    piped = False
    for part in parts:
        shows = part.name in _SHOWS and "-i" not in part.words and not part.writes
        if not shows or not (piped or any(is_instruction_file(word) for word in part.operands)):
            return False
        piped = part.after == "|"
    return bool(parts)


def is_instruction_file(path: str) -> bool:
    """Whether a path is that of a file of instructions."""
    path = path.replace("\\", "/").lower()
    return path.rsplit("/", 1)[-1] in INSTRUCTION_FILES or any(
        f"/{folder}" in f"/{path}" for folder in INSTRUCTION_FOLDERS
    )
