"""The message that states the task, from the beginning of a transcript that is too long to be read whole."""

from __future__ import annotations

from contextlib import suppress

from ctxctl.errors import CtxctlError
from ctxctl.formats import scan
from ctxctl.model.block import MAIN, Block

MOST_BLOCKS = 2000
"""Blocks within which it must stand."""


class _EnoughError(Exception):
    """Enough was read."""


def first_prompt(path: str, *, format_name: str | None = None) -> str:
    """The first message that a human typed, empty when there is none near the beginning. Readers count an exchange for
    each typed prompt."""
    found = ""
    blocks = 0

    def emit(block: Block) -> None:
        nonlocal found, blocks
        blocks += 1
        if block.thread == MAIN and block.kind == "user_message" and block.exchange and block.text.strip():
            found = block.text
            raise _EnoughError
        if blocks >= MOST_BLOCKS:
            raise _EnoughError

    with suppress(_EnoughError, CtxctlError):  # what is wrong with the file is said where the rest of it is read
        scan(path, emit, format_name=format_name, companions=False)
    return found
