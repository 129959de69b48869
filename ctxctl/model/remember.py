"""Work on texts that come up again and again, done once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")

LONGEST = 100_000
"""Characters of a text that is remembered at most: what is longer is mostly a summary, and the next one differs."""
MOST = 4_000_000
"""Characters of texts that are remembered, a window of a million tokens; beyond that all are forgotten."""


def remembered(work: Callable[[str], T]) -> Callable[[str], T]:
    """A function of a text that keeps what it made. What it returns must not be changed."""
    made: dict[str, T] = {}
    held = 0

    @wraps(work)
    def again(text: str) -> T:
        nonlocal held
        if text in made:
            return made[text]
        result = work(text)
        if len(text) > LONGEST:
            return result
        held += len(text)
        if held > MOST:
            made.clear()
            held = len(text)
        made[text] = result
        return result

    return again
