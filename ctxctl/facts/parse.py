"""Reading a summary back: our own Markdown, and what other agents write when they compact."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ctxctl.facts import foreign
from ctxctl.facts.layout import EARLIER, GOAL, fields
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import SUMMARIES

_HEAD = re.compile(r"\S.{0,80}? turns (\d+)-(\d+)\b(.*)")


def parse(text: str) -> SessionSummary | None:
    """The facts of a summary, None where the text is none.

    Of one that another agent wrote, the lines go to `earlier`, but for what its sections give away.
    """
    head, _, rest = text.partition("\n")
    marked = text.startswith(SUMMARIES)
    match = _HEAD.match(head)
    turns = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if (marked or (match is not None and not match[3])) and (found := _own(rest)) is not None:
        return SessionSummary(turns=turns, **found)
    if marked:
        return replace(foreign.parse(rest if match is not None and not match[3] else text), turns=turns)
    return foreign.parse(text) if foreign.is_foreign(text) else None


def _own(text: str) -> dict[str, Any] | None:
    """The fields of our own Markdown, None where it is not that."""
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
            for name, value in made.items():
                found[name] = value if isinstance(value, str) else (*found.get(name, ()), *value)
        elif any(line.strip() and not line.startswith(("Originals: ", "(left out: ")) for line in lines):
            return None
        title, lines = line[3:].strip(), []
    return found if known else None


def _section(title: str, lines: list[str]) -> dict[str, Any] | None:
    if title in (GOAL, EARLIER):
        quoted = [line[2:] for line in lines if line.startswith("> ") or line == ">"]
        return {"goal": "\n".join(quoted)} if title == GOAL else {"earlier": tuple(filter(None, quoted))}
    return fields(title, [line[2:] for line in lines if line.startswith("- ") and line[2:].strip()])
