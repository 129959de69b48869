"""How a resume prompt stands in text (requirement S4), and reading one back.

The labels are fixed, so that a script can tell what a prompt says without ctxctl:

- the first line is `[CONTEXT_WINDOW_RESUME]`, the last one `[/CONTEXT_WINDOW_RESUME]`; what follows is not of it;
- a part begins with `## Title (from: SOURCE)`, or `## Title, 3 of 12 (from: SOURCE)` where not all of it is there;
- under `## Goal` each line of the goal stands behind `> `;
- the current step is the line `Current step (in progress, not finished): TEXT`, or `Current step: none is in progress`;
- the next step is the line `Next step: TEXT`, or `Next step: none is planned`;
- everything else that comes from the state stands behind `- ` or `> `, so that it can't pass for a label.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from ctxctl.facts.layout import fields
from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN, Block
from ctxctl.model.summary import LeftOut, Progress, SessionSummary, Todo
from ctxctl.model.text import RESUME, RESUME_END, is_resume

GOAL, CRITERIA, CONSTRAINTS, STEP = "Goal", "Success criteria", "Constraints", "Current step"
FOUND, ASKED, ISSUES, SUMMARY = "Environment", "Newest request", "Open issues", "Summary"
FAILING, DECISIONS, DEAD, LEARNINGS = "Failing tests", "Decisions", "Dead ends", "Learnings"
TESTS, COMMITS = "Tests", "Commits"
DONE, REMAINING, ERRORS, FILES = "Completed", "Remaining", "Errors", "Files modified"
LINKS, NOTES, TAIL = "Artifacts", "Notes to look up", "Newest turns"
"""Titles of the parts, in their order."""

DOING, NO_DOING = "Current step (in progress, not finished): ", "Current step: none is in progress"
NEXT, NO_NEXT = "Next step: ", "Next step: none is planned"
STALE = "; changed since: re-read"
"""What stands behind a file whose content is not the one that the state knows."""
ID = "Id: "
"""Before the current step's id in the state, `s4`, or `s4@helper` where it is not the main agent's."""

MARKS: dict[Progress, str] = {"planned": "[ ]", "doing": "[>]", "done": "[x]"}
_STATUS = {mark: status for status, mark in MARKS.items()}
_HEAD = re.compile(r"## ([A-Z][a-z ]+?)(?:, (?:(?:first|last) )?(\d+) of (\d+))?(?: \(from: .*\))?")
_NAME = r'[^\s:@]+(?:@("(?:[^"\\]|\\.)*"|[^\s:@"]+))?'
_SUBTASK = re.compile(rf"(\[[ >x]\]) {_NAME}: (.*)")
_ID = re.compile(rf"{ID}{_NAME}")
_PLAIN_AGENT = re.compile(r'[^\s:@"]+')
_AS_IN_SUMMARIES = (
    *(CRITERIA, CONSTRAINTS, ISSUES, FAILING, TESTS, COMMITS),
    *(DECISIONS, DEAD, LEARNINGS, ERRORS, FILES),
)
_SAME = {title: title for title in _AS_IN_SUMMARIES}
_SAME |= {LINKS: LINKS, ASKED: "Requests"}
"""Parts whose items stand as in a typed summary, and the section of `ctxctl.facts.layout` that each is."""
_LEFT = {**_SAME, DONE: "Done", REMAINING: "Todos"}
_OMITTED = re.compile(r"\(left out: (.*)\)")


def subtask_line(id_: str, agent: str, status: Progress, text: str) -> str:
    """A subtask as an item: `[x] s3: TEXT`, `[ ] s4@helper: TEXT`."""
    return f"{MARKS[status]} {subtask_name(id_, agent)}: {folded(text)}"


def subtask_name(id_: str, agent: str) -> str:
    """The id of a subtask, with its agent where that is not the main one."""
    name = re.sub(r"[\s:@]+", "_", id_) or "-"
    if agent == MAIN:
        return name
    return f"{name}@{agent if _PLAIN_AGENT.fullmatch(agent) else orjson.dumps(folded(agent)).decode()}"


def parse(text: str) -> SessionSummary:
    """The facts of a resume prompt. What it tells of the environment, of notes and of the newest turns is none; ids of
    subtasks are the state's and mean nothing to an agent's own list, so they are left behind."""
    found: dict[str, Any] = {}
    left: list[LeftOut] = []
    title, total, lines = "", 0, list[str]()
    for line in [*text.split("\n"), RESUME_END]:
        line = line.rstrip("\r")
        end = line.startswith(RESUME_END)
        omitted = _OMITTED.fullmatch(line)
        if not end and omitted is None and not line.startswith("## "):
            lines.append(line)
            continue
        made = _part(title, lines)
        shown = sum(line.startswith(("- ", "> ")) for line in lines)
        if total > shown and title in _LEFT:
            left.append(LeftOut(_LEFT[title].lower(), total - shown))
        for name, value in made.items():
            found[name] = value if isinstance(value, str) else (*found.get(name, ()), *value)
        if end:
            break
        if omitted is not None:
            left.extend(_omitted(omitted[1]))
            title, total = "", 0
        else:
            match = _HEAD.fullmatch(line)
            title, total = (match[1], int(match[3] or 0)) if match is not None else ("", 0)
        lines = []
    return replace(SessionSummary(**found), left_out=tuple(left))


def _part(title: str, lines: list[str]) -> dict[str, Any]:
    items = [line[2:] for line in lines if line.startswith("- ") and line[2:].strip()]
    if title == GOAL:
        return {"goal": "\n".join(line[2:] for line in lines if line.startswith("> ") or line == ">")}
    if title == SUMMARY:
        return {"earlier": tuple(line[2:] for line in lines if line.startswith("> ") and line[2:].strip())}
    if title == STEP:
        agent = next((_agent(match[1]) for line in lines if (match := _ID.fullmatch(line)) is not None), MAIN)
        doing = tuple(Todo(line[len(DOING) :], "doing", agent) for line in lines if line.startswith(DOING))
        steps = tuple(line[len(NEXT) :] for line in lines if line.startswith(NEXT) and line != NO_NEXT)
        return {"todos": doing, "next_steps": steps}
    if title in (DONE, REMAINING):
        return {"todos": tuple(todo for item in items if (todo := _todo(item)) is not None)}
    if title == FILES:
        # the hash that a prompt shows is the file's on disk, not of what the session wrote
        made = fields(title, [item.removesuffix(STALE) for item in items]) or {}
        return {"files": tuple(replace(file, hash=None) for file in made.get("files", ()))}
    return (fields(_SAME[title], items) or {}) if title in _SAME else {}


def _todo(item: str) -> Todo | None:
    match = _SUBTASK.fullmatch(item)
    if match is None:
        return None
    return Todo(match[3], _STATUS[match[1]], _agent(match[2]))


def _agent(name: str | None) -> str:
    return MAIN if name is None else str(orjson.loads(name)) if name.startswith('"') else name


def _omitted(inside: str) -> list[LeftOut]:
    """What the line behind the last part counts: `learnings 12, files modified 3`, or one number for all."""
    if inside.isdecimal():
        return [LeftOut("", int(inside))]
    found = []
    for part in inside.split(", "):
        name, _, count = part.rpartition(" ")
        section = next((section for title, section in _LEFT.items() if title.lower() == name), None)
        if section is not None and count.isdecimal():
            found.append(LeftOut(section.lower(), int(count)))
    return found


def given(block: Block) -> str | None:
    """The resume prompt that a block gives to the model: as what was typed, or put in by a hook of the agent. None for
    any other block; tool output is never one."""
    if block.kind in ("user_message", "summary"):
        return block.text if is_resume(block.text) else None
    return find(block.text) if block.kind in ("memory_injection", "system") else None


def find(text: str) -> str | None:
    """The resume prompt within a text that a client put in, None where there is none: a hook's output stands there as
    it is, behind a heading, or as JSON."""
    if RESUME not in text:
        return None
    if text.lstrip().startswith(("[", "{", '"')) and not text.startswith(RESUME):
        with suppress(orjson.JSONDecodeError):
            text = "\n".join(_strings(orjson.loads(text)))
    match = re.search(rf"(?:^|: ){re.escape(RESUME)}\r?\n", text, re.MULTILINE)
    if match is None:
        return None
    prompt = text[match.start() :].lstrip(": ")
    inside, mark, _ = prompt.partition(f"\n{RESUME_END}")
    return inside + mark if mark else None


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]
