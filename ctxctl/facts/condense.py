"""Less text for what was there: a first line, a placeholder, an extract. Deterministic, without a model."""

from __future__ import annotations

from ctxctl.model.block import Block

LINE = 200


def first_line(text: str, most: int = LINE) -> str:
    """The first line that holds something, at most so many characters."""
    for line in text.split("\n"):
        if stripped := line.strip():
            return stripped[:most]
    return ""


def placeholder(block: Block, tokens: int) -> str:
    """What stands for a tool result that was cleared: tool, target and size, so that it can be asked for again."""
    name = block.tool_name or "tool"
    target = f" {block.target}" if block.target else ""
    return f"[cleared: {name}{target}, {tokens:,} tokens]"
