"""What earlier summaries told beside their facts, as material for the next: it competes with what is newer, so it
neither nests nor grows."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.compaction.coverage import Source
from ctxctl.facts.layout import FOUND, SAID
from ctxctl.facts.parse import tales
from ctxctl.model.text import SUMMARIES
from ctxctl.model.window import Window

MOST = 400
"""Lines that are looked at, the last."""


def said_before(window: Window, numbers: Sequence[int]) -> list[str]:
    """The lines on what was said that earlier summaries among the blocks hold, oldest first."""
    return [line for title, lines in _tales(window, numbers) if title == SAID for line in lines][-MOST:]


def sources_before(window: Window, numbers: Sequence[int]) -> tuple[list[Source], dict[int, str]]:
    """The other lines as texts that compete, all as old as can be, and under what each stood. Their numbers are below
    those of any block."""
    found: list[tuple[str, list[str]]] = []
    for title, lines in _tales(window, numbers):
        if title == SAID:
            continue
        if title != FOUND or not lines or not _is_head(lines[0]):
            found.append((f"- {title[0].lower()}{title[1:]}:", []))
        for line in lines:
            if title == FOUND and _is_head(line):
                found.append((line, []))
            else:
                found[-1][1].append(line)
    while sum(len(lines) for _, lines in found) > MOST and len(found) > 1:
        found.pop(0)
    first = min((*window.entries, 0)) - len(found) - 1
    texts = {first + at: "\n".join(lines[-MOST:]) for at, (_, lines) in enumerate(found) if lines}
    return [Source(n, text, 1.0) for n, text in texts.items()], {n: found[n - first][0] for n in texts}


def marks_off(text: str) -> str:
    """A text that is told, without marks of summaries that it quotes: there is one (requirement C9)."""
    for mark in SUMMARIES:
        text = text.replace(f"{mark} ", "").replace(mark, "")
    return text


def _tales(window: Window, numbers: Sequence[int]) -> list[tuple[str, list[str]]]:
    return [tale for b in numbers for tale in tales(window.block(b).text)]


def _is_head(line: str) -> bool:
    return line.startswith("- ") and line.endswith(":")
