"""Whatever is written into a summary passes the sanitizer (requirement G3), and what it took out is counted.

Finished texts pass it, but half of a credential has no shape by which it is known. So a text is cut between words
(`ctxctl.model.text.shortened`), since a credential on one line holds no space, and those that span lines are taken out
of a text before lines of it are chosen (`keyless`). Cleaning all that is shortened would be exact as well, and take a
second for 10 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxctl.guard.spanning import keyless as keyless
from ctxctl.model.remember import remembered

if TYPE_CHECKING:
    from ctxctl.guard.sanitize import Sanitized

KINDS = ("secrets", "data_uris", "hex", "injections", "surrogates")


@remembered
def _sanitized(text: str) -> Sanitized:
    from ctxctl.guard.sanitize import sanitize

    return sanitize(text, tool_output=True)


@dataclass(slots=True)
class Cleaner:
    """Cleans texts and keeps count. on: whether it does anything."""

    on: bool = True
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def __call__(self, text: str) -> str:
        """The text without credentials, payloads and injected instructions."""
        if not self.on or not text:
            return text
        cleaned = _sanitized(text)
        for kind in KINDS:
            self.counts[kind] += getattr(cleaned, kind)
        return cleaned.text
