"""Edits that failed because their text is that of an earlier version of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxctl.facts import tools
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of, content_of, text_of
from ctxctl.model.block import Block

SHORTEST = 12
"""Characters of a text that must stand in the earlier version."""
NOT_THERE = re.compile(
    r"string to replace not found|not found in (?:the )?file|did not appear verbatim|no replacement was performed"
    r"|could not find (?:the )?(?:string|old_string|text|context)|failed to find (?:expected lines|context)"
    r"|0 occurrences found|does not apply|patch failed|hunk(?:s)? (?:#?\d+ )?failed|no (?:sufficiently similar )?match"
    r"|search (?:block|text|string) (?:was )?not found",
    re.IGNORECASE,
)
"""What tools say when the text that an edit should replace is not in the file."""
_OLD = ("old_string", "old_str", "oldText", "old_text", "search", "oldString")
_HUNK = re.compile(r"^(?:@@|\*\*\*|---|\+\+\+|diff |index )")


@dataclass(frozen=True, slots=True)
class Misled:
    """An edit that failed. path: the file; reading: the call that showed its text, still in the window then; change:
    the call that changed the file since; text: the first line of what it wanted to replace."""

    path: str
    call: Call
    reading: Call
    change: Call
    text: str


def misled(session: Session) -> Iterator[Misled]:
    """Every edit that failed since its text was read before the file was changed, and not since: no later reading of
    the file shows it. The text stands in the reading to the letter, so spaces copied wrong are not the cause."""
    events: dict[str, list[tuple[bool, Call]]] = {}
    for call in calls_of(session):
        if call.result is None:
            continue
        if call.failed:
            if call.changes and NOT_THERE.search(text_of(session, call)[:2_000]) is not None:
                for path in dict.fromkeys(call.changes):
                    if found := _source(session, call, path, events.get(path, [])):
                        yield found
            continue
        for reading in call.reads:
            events.setdefault(reading.path, []).append((False, call))
        for path in call.changes:
            events.setdefault(path, []).append((True, call))


def _source(session: Session, call: Call, path: str, events: list[tuple[bool, Call]]) -> Misled | None:
    texts = [text for text in old_texts(session.trace.blocks[call.block]) if len(text.strip()) >= SHORTEST]
    if not texts:
        return None
    change: Call | None = None
    for changes, other in reversed(events):
        if changes:
            change = other
            continue
        shown = content_of(session, other)
        found = next((text for text in texts if text.strip("\n") in shown), None)
        if found is None:
            continue
        there = other.result is not None and session.stays[other.result].holds(call.turn)
        if change is None or not there:
            return None
        line = next(line for line in found.split("\n") if line.strip())
        return Misled(path, call, other, change, line.strip())
    return None


def old_texts(block: Block) -> list[str]:
    """What a call wants to replace: the old text of each edit, or of each hunk of a patch."""
    given = tools.arguments(block)
    if given is None:
        return _hunks(tools.raw_arguments(block))
    found = [given[key] for key in _OLD if isinstance(given.get(key), str)]
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, dict):
            found += [edit[key] for key in _OLD if isinstance(edit.get(key), str)]
    if not found:
        patch = given.get("input", given.get("patch"))
        script = patch if isinstance(patch, str) else _script(given)
        found = _hunks(script) if "*** Begin Patch" in script or "\n@@" in script else []
    return found


def _script(given: dict[str, Any]) -> str:
    return tools.script_of(given)[0]


def _hunks(patch: str) -> list[str]:
    """The lines that a patch expects, hunk by hunk."""
    hunks: list[list[str]] = [[]]
    for line in patch.split("\n"):
        if _HUNK.match(line) is not None:
            hunks.append([])
        elif line.startswith(("-", " ")):
            hunks[-1].append(line[1:])
    return ["\n".join(lines) for lines in hunks if lines]
