"""What a model gets to read of blocks that leave."""

from __future__ import annotations

from collections.abc import Iterable

from ctxctl.model.window import Window


def material_of(window: Window, units: Iterable[int]) -> str:
    """All text of some units in the order of the window, each under who wrote it, what it is, and when. Reasoning stays
    out: what came of it stands in the answers."""
    numbers = sorted((b for u in units for b in window.present(u)), key=window.place)
    return "\n\n".join(
        f"[{block.role}, {block.kind}, turn {block.turn}]\n{block.text}"
        for block in map(window.block, numbers)
        if block.kind != "thinking" and block.text.strip()
    )
