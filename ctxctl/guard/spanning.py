"""Credentials that span lines: they must be taken out before single lines of a text are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ctxctl.model.block import Block

VALUE = re.compile(r"value\\{0,8}[\"']?:[ \t]")
NAMED = re.compile(
    r"(?:passw|pwd|passphrase|secret|key|token|credential|auth)[^\n]{0,60}(?:\n|\\{1,8}n)[\s\"'\\nr]{0,50}\Z",
    re.IGNORECASE,
)
NEAR = 140
"""Characters in front of a value in which its name stands."""


def spans_lines(text: str) -> bool:
    """Whether a text may hold a credential that a single line does not show: a private key, or the value of a list of
    names and values (see `ctxctl.guard.secrets` and `ctxctl.guard.assignments`)."""
    if "-----BEGIN " in text and "PRIVATE KEY" in text:
        return True
    return any(
        NAMED.search(text[max(0, value.start() - NEAR) : value.start()]) is not None for value in VALUE.finditer(text)
    )


def keyless(block: Block, clean: Callable[[str], str]) -> Block:
    """A block without credentials that span lines; itself when it holds none."""
    if not spans_lines(block.text):
        return block
    text = clean(block.text)
    return block if text == block.text else replace(block, text=text)
