"""Instructions in text that goes back into the window: where, of which kind, how likely.

A help, not a security boundary. It looks for phrases, so it does not see what is encoded (base64, hex, rot13), written
with look-alike letters (Cyrillic "а" for Latin "a"), split by zero-width characters, spoken of indirectly, or in a
language that it has no rules for. What holds an agent back is its sandbox, its tool policy and a person's approval.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ctxctl.guard.english import ENGLISH
from ctxctl.guard.languages import CHINESE, EUROPEAN
from ctxctl.guard.rules import KINDS, SEVERITIES, Kind, Rule, Severity
from ctxctl.guard.text import Sieved, places, regions

LIMITS = (
    "Phrases only: not seen are encoded text (base64), look-alike letters (homoglyphs), words split by zero-width "
    "characters, and languages without rules. This is not a security boundary: the controls are the sandbox, the tool "
    "policy and human approval."
)
RANK: dict[Severity, int] = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Finding:
    """What looks like an instruction to the model. start, end: characters of the text that was given, end exclusive;
    line: 1-based line of it where the span starts (lines end at line feeds); text: the span itself."""

    kind: Kind
    severity: Severity
    start: int
    end: int
    line: int
    text: str

    @property
    def blocked(self) -> bool:
        """Whether sanitizing takes it out of tool output: medium and high; low is only reported."""
        return self.severity != "low"


def scan(text: str, sieved: Sieved | None = None) -> list[Finding]:
    """What looks injected in a text, by place; of findings of one kind within another the weaker is left out.

    sieved: the text prepared, where it is already. Linear in the text's length.
    """
    hits = _hits(sieved or Sieved(text))
    if not hits:
        return []
    ends: list[int] | None = None
    findings: list[Finding] = []
    for start, end, kind, severity in _strongest(hits):
        if ends is None:
            ends = list(places(text, "\n"))
        # a feed at `start` is the end of the line before the finding's words
        line = bisect_right(ends, start) + 1
        findings.append(Finding(kind, severity, start, end, line, text[start:end]))
    return findings


def blocked_spans(findings: Iterable[Finding]) -> list[tuple[int, int, Kind]]:
    """The spans that sanitizing takes out: medium and high, overlapping ones as one, with the kind of the strongest
    (the first of equals)."""
    spans: list[tuple[int, int, Kind]] = []
    rank = -1
    for finding in sorted((f for f in findings if f.blocked), key=lambda f: (f.start, -f.end)):
        if spans and finding.start < spans[-1][1]:
            start, end, kind = spans[-1]
            if RANK[finding.severity] > rank:
                kind, rank = finding.kind, RANK[finding.severity]
            spans[-1] = (start, max(end, finding.end), kind)
        else:
            spans.append((finding.start, finding.end, finding.kind))
            rank = RANK[finding.severity]
    return spans


Hit = tuple[int, int, Kind, Severity]


def _hits(sieved: Sieved) -> list[Hit]:
    hits: list[Hit] = []
    for rules in (ENGLISH, EUROPEAN) if sieved.text.isascii() else (ENGLISH, EUROPEAN, CHINESE):
        for rule in rules:
            for needle in rule.needles:
                if found := sieved.places(needle):
                    _apply(rule, sieved.folded, found, hits)
    return hits


def _apply(rule: Rule, text: str, found: list[int], hits: list[Hit]) -> None:
    if rule.before == 0:
        match = rule.pattern.match
        for at in found:
            if (hit := match(text, at)) is not None:
                hits.append((*_trimmed(text, *hit.span()), rule.kind, rule.severity))
        return
    for low, high in regions(found, rule.before, rule.after, len(text)):
        for hit in rule.pattern.finditer(text, low, high):
            hits.append((*_trimmed(text, *hit.span()), rule.kind, rule.severity))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space around its words."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _strongest(hits: list[Hit]) -> list[Hit]:
    """Hits by place, each span and kind once with its highest severity, none within a stronger one of its kind."""
    kept: list[Hit] = []
    reach: dict[tuple[Kind, int], int] = {}  # how far the spans of a kind and severity reach so far
    for hit in sorted(set(hits), key=lambda h: (h[0], -h[1], -RANK[h[3]], KINDS.index(h[2]))):
        _, end, kind, severity = hit
        rank = RANK[severity]
        if any(reach.get((kind, above), -1) >= end for above in range(rank, len(SEVERITIES))):
            continue
        reach[kind, rank] = max(end, reach.get((kind, rank), -1))
        kept.append(hit)
    # a weaker span may also begin in front of a stronger one that it overlaps: one finding is enough for a reader
    return [
        hit
        for at, hit in enumerate(kept)
        if hit[3] != "low" or not any(_covers(other, hit) for other in kept[max(0, at - 3) : at + 4])
    ]


def _covers(other: Hit, hit: Hit) -> bool:
    return other[2] == hit[2] and RANK[other[3]] > RANK[hit[3]] and other[0] < hit[1] and hit[0] < other[1]
