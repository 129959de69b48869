"""Pinned text: `<preserve>...</preserve>` in what the user or the system prompt says.

Never in tool output: whoever writes a web page or a file could pin text with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.model.block import Block

OPEN, CLOSE = "<preserve>", "</preserve>"
KINDS = frozenset(("user_message", "system"))


@dataclass(frozen=True, slots=True)
class Pin:
    """block: number of the block. start, end: the span with its tags, in characters. text: what lies between."""

    block: int
    start: int
    end: int
    text: str


def spans(text: str) -> tuple[list[tuple[int, int]], int | None]:
    """The pinned spans of a text, and the position of a tag that is never closed (which pins nothing)."""
    found: list[tuple[int, int]] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        end = text.find(CLOSE, start + len(OPEN))
        if end < 0:
            return found, start
        position = end + len(CLOSE)
        found.append((start, position))
    return found, None


class PinFinder:
    """Collects pinned spans, and the lines of tags that are never closed."""

    def __init__(self) -> None:
        self.found: list[Pin] = []
        self.unclosed: list[int] = []

    def see(self, block: Block, number: int) -> None:
        """Take a block; user messages and system prompts matter."""
        if block.kind not in KINDS or OPEN not in block.text:
            return
        found, unclosed = spans(block.text)
        for start, end in found:
            self.found.append(Pin(number, start, end, block.text[start + len(OPEN) : end - len(CLOSE)]))
        if unclosed is not None:
            self.unclosed.append(block.source.line)
