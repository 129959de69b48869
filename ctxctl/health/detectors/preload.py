"""What should be loaded ahead, and what should not: documents over many sessions of one project (requirement O6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import calls_of
from ctxctl.model.block import Block
from ctxctl.model.finding import Finding
from ctxctl.model.unit import ANSWER_KINDS
from ctxctl.trace.atoms import HEADLINE, kind_of, lines, words

SESSIONS = 5
"""Sessions of one project that a judgement needs."""
MOST, SELDOM = 0.5, 0.2
"""A file that more of them read at the start belongs to the preload; a preloaded one that at most so many used belongs
to just-in-time loading (requirement O6)."""
START = 5
"""Model calls of the first exchange that are its start."""
LEAST = 200
"""Tokens of a preloaded document from which on moving it pays."""
NOTED = 50
"""Files of one session that are remembered."""
_NAME = re.compile(
    r"(?:Contents of |# AGENTS\.md instructions for |instructions from:? |<document path=\")(?P<path>[^\s\"(:]+)"
)
_FILE = re.compile(
    r"[\w./~-]*\b(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|MEMORY|README|instructions|copilot-instructions)\.md\b"
)
_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|txt|adoc)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Note:
    """What is remembered of a session. project: its working folder; read: files that it read at the start with the
    tokens of that; given: documents that were put in at the start, with their tokens and whether they were used."""

    project: str
    read: dict[str, int]
    given: dict[str, tuple[int, bool]]


@DETECTORS.register("preload")
class Preload(Detector):
    """Signal, over at least 5 sessions of one project (working folder): a file that more than half of them read within
    their first 5 model calls, or a document of 200 tokens or more (project instructions, memory) put in at the start
    from which at most 20 % of them used a path, identifier, number or line.

    Rules of conduct are followed without being quoted; the finding says what was seen, and the hint to keep those.
    """

    code = "preload"
    signal = "over many sessions a file that most read first, or a preloaded document that hardly any used"
    fix = "put what most sessions need into the project instructions, and load what few need when it is needed"

    def note(self, session: Session) -> Any:
        project = session.transcript.cwd
        if not project:
            return None
        read: dict[str, int] = {}
        first = session.trace.blocks[0].exchange if session.trace.blocks else 0
        for call in calls_of(session):
            if call.turn > START or call.exchange > max(first, 1):
                break
            if len(call.reads) == 1 and not call.failed and call.result is not None and len(read) < NOTED:
                read.setdefault(call.reads[0].path, call.tokens)
        return Note(project, read, _given(session))

    def over(self, notes: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Finding]]:
        projects: dict[str, list[tuple[str, Note]]] = {}
        for path, note in notes:
            projects.setdefault(note.project, []).append((path, note))
        for project, sessions in sorted(projects.items()):
            if len(sessions) >= SESSIONS:
                yield from self._read_first(project, sessions)
                yield from self._not_used(project, sessions)

    def _read_first(self, project: str, sessions: list[tuple[str, Note]]) -> Iterator[tuple[str, Finding]]:
        readers: dict[str, list[tuple[str, int]]] = {}
        for path, note in sessions:
            for name, tokens in note.read.items():
                if name not in note.given:
                    readers.setdefault(name, []).append((path, tokens))
        for name, found in sorted(readers.items(), key=lambda item: (-len(item[1]), item[0])):
            if len(found) <= MOST * len(sessions):
                continue
            tokens = round(sum(tokens for _, tokens in found) / len(found))
            message = (
                f"{len(found):,} of {len(sessions):,} sessions in {project} read {name} within their first {START} "
                f"model calls, {tokens:,} tokens on average"
            )
            what = name if _DOCUMENT.search(name) else f"what sessions need of {name}"
            hint = f"put {what} into what every session begins with (the project instructions)"
            counts = {"sessions": len(sessions), "readers": len(found), "tokens": tokens}
            yield found[-1][0], self.finding(message, counts=counts, hint=hint)

    def _not_used(self, project: str, sessions: list[tuple[str, Note]]) -> Iterator[tuple[str, Finding]]:
        given: dict[str, list[tuple[str, int, bool]]] = {}
        for path, note in sessions:
            for name, (size, was) in note.given.items():
                given.setdefault(name, []).append((path, size, was))
        for name, found in sorted(given.items()):
            used = sum(1 for _, _, was in found if was)
            if len(found) < SESSIONS or used > SELDOM * len(found):
                continue
            tokens = round(sum(tokens for _, tokens, _ in found) / len(found))
            message = (
                f"{name} ({tokens:,} tokens) was put into {len(found):,} sessions in {project} at the start, and "
                f"{used:,} of them used a path, identifier, number or line of it"
            )
            hint = (
                f"keep the rules of {name} that hold for every task, and move the rest to a file that is read when "
                "it is needed"
            )
            counts = {"sessions": len(found), "users": used, "tokens": tokens}
            yield found[-1][0], self.finding(message, counts=counts, hint=hint)


def _given(session: Session) -> dict[str, tuple[int, bool]]:
    """Documents that were put in at the start, with their tokens and whether a later answer used any of them."""
    found: dict[str, tuple[int, bool]] = {}
    trace = session.trace
    said: list[Block] | None = None
    for block, tokens in zip(trace.blocks, trace.tokens, strict=True):
        if block.turn > 1:
            break
        if block.kind != "memory_injection" or tokens < LEAST:
            continue
        name = _name(block.text)
        if name is None:
            continue
        if said is None:
            said = [b for b in trace.blocks if b.kind in ANSWER_KINDS]
        found[name] = tokens, _used(block, trace.blocks, said)
    return found


def _name(text: str) -> str | None:
    """What a document that was put in is called; None where it does not say."""
    match = _NAME.search(text[:2_000])
    if match is not None:
        return "AGENTS.md" if "AGENTS.md instructions for" in match.group() else match["path"]
    match = _FILE.search(text[:2_000])
    return match.group() if match is not None else None


def _used(document: Block, blocks: Sequence[Block], said: Sequence[Block]) -> bool:
    """Whether an answer wrote an atom of a document that the user had not written."""
    atoms = _atoms(document.text)
    for block in blocks:
        if block.kind == "user_message":
            atoms -= _atoms(block.text)
    return any(not atoms.isdisjoint(_atoms(block.text)) for block in said)


def _atoms(text: str) -> set[str]:
    found = {
        word for word in words(text) if (kind := kind_of(word)) in HEADLINE and (kind != "number" or len(word) > 2)
    }
    return found | lines(text)
