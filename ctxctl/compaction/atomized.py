"""What texts name. A live session or a replay weighs the same ones again whenever it compacts."""

from __future__ import annotations

import re
from functools import lru_cache

from ctxctl.model.remember import remembered
from ctxctl.trace.atoms import kind_of, words

NUMBERED = re.compile(r"^[ \t]*[0-9]{1,6}(?:\t|\u2192|[:|-])[ \t]*")
"""The number that tools put in front of a line."""


@remembered
def named(text: str) -> frozenset[str]:
    """The paths, identifiers, numbers and error names of a text."""
    return frozenset(word for word in words(text) if kind_of(word) is not None)


@lru_cache(maxsize=1 << 15)
def named_by(line: str) -> tuple[str, ...]:
    """Those of one line, without the number that tools put in front of it."""
    return tuple(word for word in words(NUMBERED.sub("", line)) if kind_of(word) is not None)
