"""Text made fit for a summary, a checkpoint, a notes file or a prompt (requirement G3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxctl.guard.payloads import DATA_MARKER, HEX_MARKER, data_uris, hex_runs
from ctxctl.guard.scan import Finding, blocked_spans, scan
from ctxctl.guard.secrets import MARKER, find_secrets
from ctxctl.guard.text import Sieved
from ctxctl.model.text import clean

PASSES = 8
"""What stands in a marker's place may have kept two halves of something apart: passes are made until one finds nothing,
at most so many."""


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A sanitized text, and how many spans of each sort were replaced (surrogates: characters). findings: what looks
    injected, low ones included, with places in the text as it was given."""

    text: str
    secrets: int = 0
    data_uris: int = 0
    hex: int = 0
    injections: int = 0
    surrogates: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def changed(self) -> int:
        """Replacements in all."""
        return self.secrets + self.data_uris + self.hex + self.injections + self.surrogates


Span = tuple[int, int, str]


def sanitize(text: str, *, tool_output: bool = True, surrogates: bool = True) -> Sanitized:
    """Take out base64 data URIs, long hexadecimal runs, credentials and lone surrogates, then what looks like an
    injected instruction of medium or high severity, each replaced by a marker that says what was there.

    tool_output: whether the text came from a tool. Instructions are only taken out of such; in what a person or a model
    wrote they are findings and stay. surrogates: False leaves lone surrogates, which stand for bytes in text that was
    decoded with `surrogateescape`. Clean text is returned as it is, the same object; a second call changes nothing.
    """
    result = _once(text, tool_output, surrogates)
    total = result
    for _ in range(PASSES):
        if not result.changed:
            break
        result = _once(result.text, tool_output, surrogates)
        total = replace(
            total,
            text=result.text,
            secrets=total.secrets + result.secrets,
            data_uris=total.data_uris + result.data_uris,
            hex=total.hex + result.hex,
            injections=total.injections + result.injections,
            surrogates=total.surrogates + result.surrogates,
        )
    return total


def _once(text: str, tool_output: bool, surrogates: bool) -> Sanitized:
    sieved = Sieved(text)
    uris = list(data_uris(text, sieved))
    runs = _outside(list(hex_runs(text)), uris)
    bulk = sorted((*uris, *runs))
    secrets = _outside(find_secrets(text, sieved), bulk)
    findings = scan(text, sieved)
    blocks = blocked_spans(findings) if tool_output else []
    spans = [
        *((*span, DATA_MARKER) for span in uris),
        *((*span, HEX_MARKER) for span in runs),
        *((*span, MARKER) for span in secrets),
        *((start, end, f"[injection-blocked:{kind}]") for start, end, kind in blocks),
    ]
    out = _replaced(text, spans) if spans else text
    cleaned = clean(out) if surrogates else out
    return Sanitized(
        text if cleaned == text else cleaned,
        len(secrets),
        len(uris),
        len(runs),
        len(blocks),
        0 if cleaned is out else _lone(out),
        tuple(findings),
    )


def _lone(text: str) -> int:
    """How many lone surrogates a text holds; joined pairs count too, as they are written differently."""
    return sum(1 for c in text if "\ud800" <= c <= "\udfff")


def _outside(spans: list[tuple[int, int]], others: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of ordered spans that touch none of ordered others; where one reaches over an other, what is in front of
    it and behind it is kept as spans."""
    if not others or not spans:
        return spans
    kept: list[tuple[int, int]] = []
    position = 0
    for start, end in spans:
        while position < len(others) and others[position][1] <= start:
            position += 1
        at = position
        while at < len(others) and others[at][0] < end:
            if others[at][0] > start:
                kept.append((start, others[at][0]))
            start = max(start, others[at][1])
            at += 1
        if start < end:
            kept.append((start, end))
    return kept


def _replaced(text: str, spans: list[Span]) -> str:
    """The text with markers in place of spans. What lies within another span goes with it; of two that overlap in part
    each leaves its marker."""
    parts: list[str] = []
    done = 0
    for start, end, marker in sorted(spans, key=lambda s: (s[0], -s[1])):
        if end <= done:
            continue
        parts += (text[done:start], marker) if start >= done else (marker,)
        done = end
    parts.append(text[done:])
    return "".join(parts)
