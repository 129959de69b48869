"""Text that may come from anywhere and must go out as UTF-8."""

from __future__ import annotations

MARK = "[summary]"
SUMMARIES = (MARK, "[摘要]")
"""How texts start that stand for something longer; summaries do not nest (requirement C9)."""

NO_RESULT = "[no result was recorded for this call]"
"""What is written as the result of a call that never got one, where a provider demands one."""


def is_summary(text: str) -> bool:
    """Whether a text is marked as a summary."""
    return text.startswith(SUMMARIES)


def stands_for_many(text: str) -> bool:
    """Whether a text is a summary of turns, and not what a single block shrank to."""
    return any(text.startswith(f"{mark} turns ") for mark in SUMMARIES)


def clean(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD (and pairs of them joined): UTF-8 has no form for them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
