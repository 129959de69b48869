"""Reading a summary back: our own Markdown, short forms of it, resume prompts, and what other agents write when they
compact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ctxctl.facts import foreign, noted, resumed
from ctxctl.facts.layout import EARLIER, GOAL, TALES, fields
from ctxctl.model.summary import LeftOut, SessionSummary
from ctxctl.model.text import SUMMARIES, is_resume

_HEAD = re.compile(r"\S.{0,80}? turns (\d+)-(\d+)\b(.*)")
_MORE = re.compile(r"\((\d+) more\)")
_DIGEST = ("> User: ", "> Assistant: ", "> Context: ", "- Called ", "  -> ", " [media omitted]", "(… ")
"""How the lines begin that the extractive strategy writes (`ctxctl.compaction.digest`)."""


def parse(text: str) -> SessionSummary | None:
    """The facts of a summary, None where the text is none.

    What a summary tells beside its facts is not among them (see `tales`). Of one that another agent wrote, the lines go
    to `earlier`, but for what its sections give away.
    """
    if is_resume(text):
        return resumed.parse(text)
    head, _, rest = text.partition("\n")
    marked = text.startswith(SUMMARIES)
    match = _HEAD.match(head)
    turns = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if marked and match is not None and match[3].startswith(noted.POINTER):
        return replace(noted.parse(rest), turns=turns)
    if marked and match is not None and _is_tale(match[3], rest):
        return SessionSummary(turns=turns)
    if (marked or (match is not None and not match[3])) and (found := _own(rest)) is not None:
        return SessionSummary(turns=turns, **found)
    if marked:
        return replace(foreign.parse(rest if match is not None and not match[3] else text), turns=turns)
    return foreign.parse(text) if foreign.is_foreign(text) else None


def tales(text: str) -> list[tuple[str, list[str]]]:
    """What one of our summaries tells beside its facts, as (title, lines): its sections that are told, and the whole
    of one that has only lines, under its turns. Empty for any other text."""
    head, _, rest = text.partition("\n")
    match = _HEAD.match(head)
    if match is None or not text.startswith(SUMMARIES):
        return []
    said = match[3].removeprefix(": ")
    lines = [line for line in rest.split("\n") if line.strip() and not line.startswith(("Originals: ", "(… "))]
    if _is_tale(match[3], rest):
        return [(f"turns {match[1]}-{match[2]}", [*([said] if said else []), *lines])]
    if match[3]:
        return []
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("## ") and line[3:].strip() in TALES:
            found.append((line[3:].strip(), []))
        elif found:
            found[-1][1].append(line)
    return found


def _is_tale(said: str, rest: str) -> bool:
    """Whether a summary only tells: the result of a subtask, an exchange as one line, lines of the extractive
    strategy."""
    if said.startswith(": "):
        return not any(line.startswith("#") for line in rest.split("\n"))
    lines = [line for line in rest.split("\n") if line.strip()]
    return not said and bool(lines) and all(line.startswith(_DIGEST) for line in lines)


def _own(text: str) -> dict[str, Any] | None:
    """The fields of our own Markdown, None where it is not that. From the first section on that only tells, nothing is
    a fact: it stands behind them all, and what it quotes may look like anything."""
    found: dict[str, Any] = {}
    title, lines, known = "", [], False
    for line in [*text.split("\n"), "## "]:
        if not line.startswith("## "):
            lines.append(line)
            continue
        if title:
            made = _section(title, lines)
            if made is None:
                return None
            known = True
            found["left_out"] = (*found.get("left_out", ()), *_left_out(title, lines))
            for name, value in made.items():
                found[name] = value if isinstance(value, str) else (*found.get(name, ()), *value)
        elif any(line.strip() and not line.startswith(("Originals: ", "(left out: ")) for line in lines):
            return None
        title, lines = line[3:].strip(), []
        if title in TALES:
            return found
    return found if known else None


def _left_out(title: str, lines: list[str]) -> Iterator[LeftOut]:
    """What a section, or the line behind the last one, says that it has no place for."""
    for line in lines:
        if (more := _MORE.fullmatch(line)) is not None and title not in (GOAL, EARLIER):
            yield LeftOut(title.lower(), int(more[1]))
        elif line.startswith("(left out: "):
            inside = line.removeprefix("(left out: ").removesuffix(")")
            if inside.isdecimal():
                yield LeftOut("", int(inside))
            for part in inside.split(", "):
                name, _, count = part.rpartition(" ")
                if name and count.isdecimal() and name != EARLIER.lower():
                    yield LeftOut(name, int(count))


def _section(title: str, lines: list[str]) -> dict[str, Any] | None:
    if title in (GOAL, EARLIER):
        quoted = [line[2:] for line in lines if line.startswith("> ") or line == ">"]
        return {"goal": "\n".join(quoted)} if title == GOAL else {"earlier": tuple(filter(None, quoted))}
    return fields(title, [line[2:] for line in lines if line.startswith("- ") and line[2:].strip()])
