"""Text that may come from anywhere and must go out as UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable

MARK = "[summary]"
SUMMARIES = (MARK, "[摘要]")
"""How texts start that stand for something longer; summaries do not nest (requirement C9)."""

RESUME, RESUME_END = "[CONTEXT_WINDOW_RESUME]", "[/CONTEXT_WINDOW_RESUME]"
"""The lines between which a resume prompt stands (requirement S4)."""

NO_RESULT = "[no result was recorded for this call]"
"""What is written as the result of a call that never got one, where a provider demands one."""


def is_summary(text: str) -> bool:
    """Whether a text is marked as a summary. A resume prompt is one as long as nobody wrote anything behind it."""
    return text.startswith(SUMMARIES) or (is_resume(text) and not behind_resume(text))


def is_resume(text: str) -> bool:
    """Whether a text begins with a resume prompt: its first line is the mark and nothing else."""
    return text.startswith(RESUME) and text[len(RESUME) : len(RESUME) + 1] in ("", "\n", "\r")


def behind_resume(text: str) -> str:
    """What stands behind the resume prompt that a text begins with: the request of whoever gave it. No line of a prompt
    but its last begins with the end mark, so nothing that it quotes can end it."""
    return text.partition(f"\n{RESUME_END}")[2].strip()


def marked(text: str, mark: str) -> str:
    """A text with `mark` in the place of the default mark that it begins with; any other stays as it is."""
    return mark + text[len(MARK) :] if text.startswith(MARK) else text


def stands_for_many(text: str) -> bool:
    """Whether a text is a summary of turns, and not what a single block shrank to."""
    return is_resume(text) or any(text.startswith(f"{mark} turns ") for mark in SUMMARIES)


def clean(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD (and pairs of them joined): UTF-8 has no form for them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_EDGE = re.compile(r"[\s\"]")
"""What stands between words. No credential on one line holds any of it."""
_PLAIN = re.compile(r"[\s\"]?[a-z]*")
"""A word that is no credential, in part or whole."""


def shortened(text: str, most: int, clean: Callable[[str], str] | None = None) -> str:
    """The beginning of a text, at most so many characters, cut between words: half of a credential is none by its shape
    any more, and would stay in what is written.

    clean: takes credentials out. A word of more than half of the length is cut behind it; without `clean` such a word
    goes whole, unless it is of plain letters or of a script that has no spaces.
    """
    if len(text) <= most:
        return text
    whole = _EDGE.match(text, most) is not None
    at = most if whole else max(text.rfind(edge, 0, most) for edge in ' "\t\n')
    if at * 2 >= most:
        return text[:at].rstrip()
    if clean is not None:
        return clean(through(text, most))[:most]
    at = max(at, 0)
    if _PLAIN.fullmatch(through(text, most)[at:]) is not None:
        return text[:most]
    wide = next((i for i in range(most, at, -1) if not text[i - 1].isascii()), at)
    return text[:wide].rstrip()


def through(text: str, most: int) -> str:
    """The beginning of a text, so many characters and the rest of the word that they end in."""
    edge = _EDGE.search(text, most)
    return text if edge is None else text[: edge.start()]
