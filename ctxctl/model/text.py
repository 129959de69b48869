"""Text that may come from anywhere and must go out as UTF-8."""

from __future__ import annotations


def clean(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD (and pairs of them joined): UTF-8 has no form for them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
