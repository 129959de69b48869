"""Less text for what was there: a first line, a placeholder, an extract. Deterministic, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable

from ctxctl.model.block import Block
from ctxctl.model.text import MARK as MARK
from ctxctl.model.text import SUMMARIES as SUMMARIES
from ctxctl.model.text import is_summary as is_summary
from ctxctl.model.text import shortened

Clean = Callable[[str], str]

LINE = 200

CLEARED, SAME = "[cleared: ", "[same as "
PLACEHOLDERS = (CLEARED, SAME, "[Old tool result content cleared]")
"""How texts start that stand for a block whose content went: our own, what Claude Code writes, and what stands for a
near duplicate."""

EXTRACT = 800
"""Characters of an extract at most: the 200 tokens of key findings of requirement C4."""
SHARE = 4
"""An extract has at most one part in so many of the text."""
SHORT = 120
"""Characters that an extract may have of any text."""
SCANNED = 15
"""Lines of a text that are weighed, from its beginning and from its end; between them those with a sign of failure."""
VERDICT = re.compile(r"^[^\n]*\b\d+ (?:passed|failed|passing|failing|errors?)\b[^\n]*$|^test result: [^\n]*$", re.M)
VERDICT_WITHIN = 2_000
"""Characters at the end of an output in which a run of tests says how it ended."""
SIGNS = ("rror", "xception", "arning", "ailed", "FAIL")
_COMPOUND = re.compile(r"[A-Za-z0-9][_.][A-Za-z]|[a-z][A-Z]")
_DIGITS = re.compile(r"\b\d{3,}\b")


def first_line(text: str, most: int = LINE, clean: Clean | None = None) -> str:
    """The first line that holds something, at most so many characters, cut between words (see `shortened`)."""
    for line in text.split("\n"):
        if stripped := line.strip():
            return shortened(stripped, most, clean)
    return ""


def is_placeholder(text: str) -> bool:
    """Whether a text stands for a block whose content went."""
    return text.startswith(PLACEHOLDERS)


def placeholder(block: Block, tokens: int, recall: str = "") -> str:
    """What stands for a tool result that was cleared: tool, target and size, so that it can be asked for again. One
    that is a placeholder already stays as it is. recall: the command that brings it back."""
    if is_placeholder(block.text):
        return block.text
    name = block.tool_name or "tool"
    target = f" {block.target}" if block.target else ""
    back = f"; {recall}" if recall else ""
    return f"{CLEARED}{name}{target}, {tokens:,} tokens{back}]"


def extract(
    block: Block, text: str | None = None, most: int = EXTRACT, mark: str = MARK, clean: Clean | None = None
) -> str:
    """A marked summary of a block in its own words: turn, kind and tool, the first line, then the lines that hold most
    of what can be needed again, in their order, and how many were left out.

    text: what stands in the window for the block, its own text where None. At most `most` characters, and a quarter of
    the text or a short line. What is marked as a summary, is a placeholder, or would not get shorter stays as it is.
    mark: what it begins with. clean: takes credentials out of a line that is cut within a word.
    """
    text = block.text if text is None else text
    if is_summary(text) or is_placeholder(text):
        return text
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    if not lines:
        return text
    what = block.kind if block.tool_name is None else f"{block.kind} {block.tool_name}"
    target = f" {block.target}" if block.target else ""
    room = min(most, max(len(text) // SHARE, SHORT))
    heading = shortened(f"{mark} turn {block.turn}, {what}{target}: ", most)
    shown = shortened(lines[0], max(0, min(LINE, room - len(heading))), clean)
    room -= len(heading) + len(shown)
    last = len(lines) - SCANNED
    span = [at for at in range(1, len(lines)) if at < SCANNED or at >= last or any(s in lines[at] for s in SIGNS)]
    seen = {lines[0]}
    kept: list[int] = []
    worth = {at: found for at in span if (found := _worth(lines[at]))}
    for at in sorted(worth, key=lambda i: (-worth[i], i)):
        line = lines[at]
        if len(line) + 1 > room or line in seen:
            continue
        seen.add(line)
        kept.append(at)
        room -= len(line) + 1
    parts = [heading + shown, *(lines[at] for at in sorted(kept))]
    left = len(lines) - len(parts)
    if left and room > 0 and len(tail := f"({left:,} more lines)") + 1 <= room:
        parts.append(tail)
    made = "\n".join(parts).rstrip()
    return made if len(made) < len(text) else text


def heading(block: Block, ref: str | None = None) -> str:
    """How the text that stands for a block begins: turn, tool, source. ref: id by which the whole can be recalled."""
    what = " ".join(part for part in (block.kind, block.tool_name, block.target) if part)
    return f"{MARK} turn {block.turn}, {what}" + (f", recall id {ref}" if ref else "")


def verdict(block: Block) -> str:
    """The line in which a run of tests says how it ended, empty where there is none: whatever else is left out, a run
    that failed must not pass for one that went well."""
    if block.kind != "tool_result":
        return ""
    found = ""
    for match in VERDICT.finditer(block.text[-VERDICT_WITHIN:]):
        found = match.group().strip()
    return shortened(found, SHORT)


def findings(block: Block, lines: list[str], ref: str | None = None) -> str:
    """A marked text of chosen lines of a block, with how many were left out and how long it was."""
    total = sum(1 for line in block.text.split("\n") if line.strip())
    left = total - len(lines)
    said = verdict(block)
    if said and said not in lines:
        lines, left = [*lines, said], left - 1
    short = left > 0 or sum(map(len, lines)) < len(block.text.strip()) - len(lines)
    tail = [f"({left:,} of {total:,} lines left out, {len(block.text)} characters in all)"] if short else []
    return "\n".join([f"{heading(block, ref)}:", *lines, *tail])


def gist(block: Block, lines: list[str], most: int, clean: Clean | None = None) -> str:
    """A block in so many characters at most: marked, how it ended where it failed, and the lines that were chosen of
    it, or its first where there are none."""
    said = lines or [first_line(block.text, most, clean)]
    failed = next((line.strip() for line in block.text.split("\n") if any(sign in line for sign in SIGNS)), "")
    if block.is_error and failed and failed not in said:
        said = [f"failed: {failed}", *said]
    told = verdict(block)
    if told:
        said = [told, *(line for line in said if line != told)]
    text = "\n".join([f"{MARK} {said[0]}", *said[1:]])
    return shortened(text, most, clean).rstrip()


def _worth(line: str) -> int:
    """How much of what may be needed again a line seems to hold: failures, paths, identifiers, numbers. A glance, not
    the classes of `ctxctl.trace.atoms`: thousands of lines are weighed to keep a few."""
    failed = any(sign in line for sign in SIGNS)
    return 4 * failed + 2 * ("/" in line) + (_COMPOUND.search(line) is not None) + (_DIGITS.search(line) is not None)
