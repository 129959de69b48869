"""What a resume says and the first calls behind it show to hold no longer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ctxctl.facts import tools
from ctxctl.facts.results import output
from ctxctl.health.session import Session
from ctxctl.health.signals.beginnings import Beginning, beginnings, blocks_in
from ctxctl.health.signals.calls import Call, calls_of, text_of
from ctxctl.health.signals.misled import NOT_THERE, SHORTEST, old_texts

CALLS = 20
"""Calls of a window that are looked at; later on the agent knows the files itself."""
NEAR = 2_000
"""Characters of a result in which a failure is looked for."""
_CHANGED = re.compile(
    r"modified since (?:it was )?(?:last )?(?:read|opened)|has been (?:unexpectedly )?(?:modified|changed) (?:since|by)"
    r"|(?:file|content) (?:has )?changed (?:on disk )?since|unexpectedly modified",
    re.IGNORECASE,
)
_GONE = re.compile(r"does not exist|no such file|\bENOENT\b|file not found", re.IGNORECASE)
_NOT_THERE_YET = re.compile(
    r"delet|remov|renam|moved|gone|creat|add|new|will|to be|plan|todo|next|should|missing|not exist|\[ \]",
    re.IGNORECASE,
)
"""What a line may say of a file that is rightly not there."""
_HEAD = re.compile(r"\b(?:git[_ ]head|HEAD(?: is| was)?(?: now)?(?: at)?)\b[\s:=`*]{1,4}([0-9a-f]{7,40})\b(?!.*->)")
_SHOWS_HEAD = re.compile(
    r"git (?:rev-parse(?: --short)?(?:=\d+)? HEAD|log --oneline(?: -n? ?\d+)?"
    r"|log -n? ?\d+(?: --oneline| --format=%[hH])?)(?: 2>&1)?"
)
"""Commands whose output begins with the commit that git stands at."""
_MOVES = re.compile(r"\bgit (?:commit|checkout|switch|pull|merge|rebase|reset|cherry-pick)\b")
_HASH = re.compile(r"^(?:commit )?([0-9a-f]{7,40})\b")


@dataclass(frozen=True, slots=True)
class Outdated:
    """start: the window. kind: `changed` (an edit fails, the file is another by now), `text` (an edit fails, its text
    is that of the resume), `gone` (a file that the resume names is not there), `head` (git stands elsewhere). call:
    that shows it; what: the path, or both commits; said: what the resume says of it."""

    start: Beginning
    kind: Literal["changed", "text", "gone", "head"]
    call: Call
    what: str
    said: str


def outdated(session: Session) -> Iterator[Outdated]:
    """Everything of that, each path once per window."""
    for start in beginnings(session):
        text = session.trace.blocks[start.block].text
        put_back = "\n".join(
            block.text
            for _, block in blocks_in(session, start.turn, start.turn + 1)
            if block.kind == "memory_injection"
        )
        yield from _in_window(session, start, text, put_back)


def _in_window(session: Session, start: Beginning, text: str, put_back: str) -> Iterator[Outdated]:
    last = min(start.turn + CALLS, start.end)
    known: set[str] = set()  # files that the agent read or wrote itself in this window
    told: set[str] = set()
    committed = False
    for call in calls_of(session):
        if not start.turn <= call.turn < last or call.result is None:
            continue
        result = text_of(session, call)[:NEAR]
        for path in dict.fromkeys((*call.changes, *(r.path for r in call.reads))):
            if not call.failed or path in known or path in told:
                continue
            if found := _failed(session, start, call, path, result, text, put_back):
                told.add(path)
                yield found
        if not call.failed:
            known.update(call.changes, (reading.path for reading in call.reads))
            head = None if committed or "head" in told else _head(session, start, call, text)
            if head is not None:
                told.add("head")
                yield head
            committed = committed or any(
                word in call.key for word in ("git commit", "git checkout", "git pull", "git reset")
            )


def _failed(
    session: Session, start: Beginning, call: Call, path: str, result: str, text: str, put_back: str
) -> Outdated | None:
    line = _line_of(session, path, text)
    if path in call.changes:
        if _CHANGED.search(result) is not None and (line or _line_of(session, path, put_back)):
            return Outdated(start, "changed", call, path, line or path)
        if NOT_THERE.search(result) is not None:
            olds = [old.strip("\n") for old in old_texts(session.trace.blocks[call.block]) if len(old) >= SHORTEST]
            for old in olds:
                if "\n" in old and old in text:
                    return Outdated(start, "text", call, path, old.strip().split("\n")[0])
        return None
    looks = call.does in (tools.READ, tools.EDITOR) and _GONE.search(result) is not None
    if looks and line and _NOT_THERE_YET.search(line.replace(path, "")) is None:
        return Outdated(start, "gone", call, path, line)
    return None


def _line_of(session: Session, path: str, text: str) -> str:
    """The line of a text that names a file as the session does, empty when none does."""
    names = [path]
    if session.transcript.cwd and not path.startswith("/"):
        names.append(f"{session.transcript.cwd.rstrip('/')}/{path}")
    for name in names:
        match = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", text)
        if match is not None:
            end = text.find("\n", match.end())
            return text[text.rfind("\n", 0, match.start()) + 1 : end if end >= 0 else len(text)].strip()
    return ""


def _head(session: Session, start: Beginning, call: Call, text: str) -> Outdated | None:
    """Whether the first look at git shows another commit than the resume names."""
    if call.does != tools.SHELL or call.programs[:1] != ("git",) or (said := _HEAD.search(text)) is None:
        return None
    script = call.key.partition(" git ")[2]
    shown = _HASH.match(output(text_of(session, call)).strip())
    if _SHOWS_HEAD.fullmatch(f"git {script}") is None or shown is None:
        return None
    before, now = said[1], shown[1]
    if before.startswith(now) or now.startswith(before):
        return None
    line = text[text.rfind("\n", 0, said.start()) + 1 :].split("\n", 1)[0].strip()
    return Outdated(start, "head", call, f"{before[:12]} -> {now[:12]}", line)
