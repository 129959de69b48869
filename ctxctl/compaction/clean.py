"""Whatever is written into a summary passes the sanitizer (requirement G3), and what it took out is counted."""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("secrets", "data_uris", "hex", "injections", "surrogates")


@dataclass(slots=True)
class Cleaner:
    """Cleans texts and keeps count. on: whether it does anything."""

    on: bool = True
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def __call__(self, text: str) -> str:
        """The text without credentials, payloads and injected instructions."""
        if not self.on or not text:
            return text
        from ctxctl.guard.sanitize import sanitize

        cleaned = sanitize(text, tool_output=True)
        for kind in KINDS:
            self.counts[kind] += getattr(cleaned, kind)
        return cleaned.text
