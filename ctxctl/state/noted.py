"""Notes as facts of the session: what a checkpoint and a compaction tell of them (requirement C3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ctxctl.facts.merge import merge
from ctxctl.facts.noted import NEXT
from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN
from ctxctl.model.edits import Note
from ctxctl.model.summary import Commit, DecisionFact, FileFact, SessionSummary, TestRun, Todo
from ctxctl.model.text import clean
from ctxctl.state.files import sanitized
from ctxctl.state.notes import TYPES, Entry

_WORDS = re.compile(r"[^\W_]+")
_LIKE = {
    "decisions": "decision",
    "adr": "decision",
    "completed": "done",
    "finished": "done",
    "lessons": "lesson",
    "learning": "lesson",
    "learnings": "lesson",
    "learned": "lesson",
    "issues": "issue",
    "bug": "issue",
    "problem": "issue",
    "blocker": "issue",
    "todo": "plan",
    "plans": "plan",
    "planned": "plan",
    "next": "plan",
}
"""Last words of types that others write, and what they mean here."""
# what `ctxctl.compaction.notes.entries_of` makes of a fact, read back
_BECAUSE = re.compile(r"(.*\S)\s*\(because:?\s+(.*\S)\s*\)|(.*?\S)[,;]?\s+because:?\s+(.*\S)", re.IGNORECASE)
_AGENT = re.compile(r" \[([^\[\]]+)\]$")
_STATUS = re.compile(r" \((doing|planned)\)$")
_AS_IT_STOOD = re.compile(r" \((?:doing|planned)\)(?: \[[^\[\]]+\])?\s*$")
_COMMIT = re.compile(r"commit(?: ([0-9a-f]{4,64}))?: (.+)")
_TEST = re.compile(r"(.+): (passed|failed)(?:, (.+))?")
_ACTION = r"(?:created|written|edited|deleted|restored)"
_FILE = re.compile(rf"(\S+): ({_ACTION}(?:, {_ACTION})*)|(\S*[./\\]\S*) changed")


def kind_of(type_: str) -> str:
    """Which of TYPES a type is: itself, or by its last word (ARCH_DECISION: decision). A type that says nothing of the
    kind is a lesson: it is kept, and promises no progress."""
    words = _WORDS.findall(type_.lower())
    last = words[-1] if words else ""
    return last if last in TYPES else _LIKE.get(last, "lesson")


def facts_of(entries: Iterable[Entry | Note]) -> SessionSummary:
    """What notes say, oldest first: a decision with its reason (`what because why`), done and plan as items of the
    plan, lessons, issues. What is done replaces what was planned in the very same words, and nothing else. What a
    compaction noted as the next step is none of it: it held then. Texts are on one line each, and sanitised."""
    items: dict[Any, _Item] = {}
    for entry in entries:
        text = folded(sanitized(clean(entry.text)))
        if text:
            key, item = _item(kind_of(entry.type), text)
            items[key] = item  # at its first place, as said last
    found = items.values()
    return merge(
        SessionSummary(),
        SessionSummary(
            decisions=tuple(i for i in found if isinstance(i, DecisionFact)),
            files=tuple(i for i in found if isinstance(i, FileFact)),
            todos=tuple(i for i in found if isinstance(i, Todo)),
            tests=tuple(i for i in found if isinstance(i, TestRun)),
            commits=tuple(i for i in found if isinstance(i, Commit)),
            open_issues=tuple(i.text for i in found if isinstance(i, _Text) and i.kind == "issue"),
            learnings=tuple(i.text for i in found if isinstance(i, _Text) and i.kind == "lesson"),
        ),
    )


class _Text(NamedTuple):
    kind: str
    text: str


_Item = DecisionFact | FileFact | Todo | TestRun | Commit | _Text


def _item(kind: str, text: str) -> tuple[Any, _Item]:
    """What a note says, and what it is about. kind: one of TYPES."""
    if kind == "decision":
        decision = _decision(text)
        return (kind, decision.what), decision
    if kind == "plan" and text.startswith(NEXT):
        return (NEXT, text), _Text(NEXT, text.removeprefix(NEXT))
    if kind == "plan":
        todo = _todo(text, planned=True)
        return ("todo", todo.text, todo.agent), todo
    if kind in ("done", "issue") and (match := _TEST.fullmatch(text)) is not None:
        return ("test", match[1]), TestRun(match[1], "passed" if match[2] == "passed" else "failed", match[3] or "")
    if kind != "done":
        return (kind, text), _Text(kind, text)
    if (match := _COMMIT.fullmatch(text)) is not None:
        return ("commit", text), Commit(match[2], match[1])
    if (match := _FILE.fullmatch(text)) is not None:
        actions = tuple(match[2].split(", ")) if match[2] else ()
        return ("file", text), FileFact(match[1] or match[3], "modified", actions)
    todo = _todo(text, planned=False)
    return ("todo", todo.text, todo.agent), todo


def _decision(text: str) -> DecisionFact:
    match = _BECAUSE.fullmatch(text)
    if match is None:
        return DecisionFact(text)
    return DecisionFact(match[1] or match[3], match[2] or match[4])


def _todo(text: str, *, planned: bool) -> Todo:
    agent = _AGENT.search(text)
    name = agent[1] if agent is not None else MAIN
    text = text if agent is None else text[: agent.start()]
    if not planned:
        return Todo(text, "done", name)
    given = _STATUS.search(text)
    if given is None:
        return Todo(text, "planned", name)
    return Todo(text[: given.start()], "doing" if given[1] == "doing" else "planned", name)


@dataclass(frozen=True, slots=True)
class Notebook:
    """The notes that a file held before a run. name: of the file."""

    name: str
    entries: Sequence[Entry]

    def untold(self, notes: Iterable[Note]) -> list[Note]:
        """Those notes that say something which the file does not say yet, whatever their words around it."""
        known = {_key(entry) for entry in self.entries}
        return [note for note in notes if _key(note) not in known]


def with_notes(session: SessionSummary, noted: Notebook, tools: Collection[str] = ()) -> SessionSummary:
    """The session's facts, and what the notes add. tools: that the session used.

    Where both name the same thing the session says how it stands: a plan that was noted once may be done by now. Of
    what an earlier compaction noted for the agent, the plan as it stood then gives way to a plan of the session, and
    the failure of a tool to what the session knows of that tool: either may be settled since.
    """
    planned = bool(session.todos)
    fresh = [e for e in noted.entries if not (planned and kind_of(e.type) == "plan" and _AS_IT_STOOD.search(e.text))]
    facts = facts_of(fresh)
    steps = [e.text.removeprefix(NEXT) for e in noted.entries if e.type == "plan" and e.text.startswith(NEXT)]
    failed = tuple(f"{tool}{sign}" for tool in tools for sign in (" ", ": "))
    return merge(
        replace(
            facts,
            open_issues=tuple(t for t in facts.open_issues if t in session.open_issues or not _of_tool(t, failed)),
            learnings=tuple(t for t in facts.learnings if t not in session.dead_ends),
            next_steps=tuple(folded(sanitized(clean(text))) for text in steps[-1:] if not planned),
        ),
        session,
    )


def _of_tool(text: str, names: tuple[str, ...]) -> bool:
    return text.startswith(names) and ": " in text


def _key(note: Entry | Note) -> Any:
    """What a note is about, and how that stands."""
    kind = kind_of(note.type)
    key, item = _item(kind, folded(sanitized(clean(note.text))))
    return (key, item.status) if isinstance(item, Todo) else (key, item.outcome) if isinstance(item, TestRun) else key
