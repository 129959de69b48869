"""Names of files in messages."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.model.text import clean

SHOWN = 5
"""Names that a message lists."""


def shown(text: str) -> str:
    """A name on one line: control characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clean(text))


def names(paths: Sequence[str], most: int = SHOWN) -> str:
    """Some of the paths, and how many more there are."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(shown(path) for path in paths[:most]) + more
