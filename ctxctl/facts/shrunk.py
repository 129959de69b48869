"""What is left of a block's own words where it was made shorter before: without what was put around them.

A text that shrank says less than it did, and its heading is not the session's word: what it told was told from the
whole (`ctxctl.facts.session`), so it adds to that and does not stand against it.
"""

from __future__ import annotations

import re

from ctxctl.facts.condense import is_placeholder
from ctxctl.model.block import Block
from ctxctl.model.text import SUMMARIES, is_summary, stands_for_many

# `[summary] turn 12, tool_result Read src/a.py, recall id 40.0:` of condense.heading
_HEAD = re.compile(r" turn \d+, ")
_RECALL = re.compile(r",? recall id \S+?(?=:)")
_LEFT_OUT = re.compile(r"^\((?:[\d,]+ more lines|[\d,]+ of [\d,]+ lines left out, \d+ characters in all)\)$", re.M)
_CUT = re.compile(r"\n?\[… \d+ of \d+ characters left out …\]\n?")
_COMPACT = re.compile(r" \[[^\[\]\n]{1,120}, \d+ characters\]\Z")
_ENDS = (".", "!", "?", "。", "！", "？", ")", '"', "`", "*")


def left_of(block: Block) -> str | None:
    """The block's own words as far as they are left, empty where none are; None for a text that is whole."""
    text = block.text
    if is_placeholder(text):
        return ""
    if is_summary(text):
        return None if stands_for_many(text) else _LEFT_OUT.sub("", _headless(block, text)).strip("\n ")
    if "[… " in text and _CUT.search(text) is not None:
        return _CUT.sub("\n", text)
    if block.kind == "tool_result" and len(text) < 400 and _COMPACT.search(text) is not None:
        return _COMPACT.sub("", text)
    return None


def _headless(block: Block, text: str) -> str:
    mark = next(mark for mark in SUMMARIES if text.startswith(mark))
    rest = text.removeprefix(mark)
    match = _HEAD.match(rest)
    if match is None:
        return rest.lstrip()
    rest = rest[match.end() :].removeprefix(block.kind).lstrip(" ")
    for part in (block.tool_name, block.target):
        if part and rest.startswith(part):
            rest = rest[len(part) :].lstrip(" ")
    if (recall := _RECALL.match(rest)) is not None:
        rest = rest[recall.end() :]
    return rest[1:].lstrip(" \n") if rest.startswith(":") else rest.partition(":")[2].lstrip(" \n") or rest


def whole_lines(text: str) -> str:
    """The lines of a shrunk text that end like a sentence: others may have been cut."""
    return "\n".join(line for line in text.split("\n") if line.rstrip().endswith(_ENDS))
