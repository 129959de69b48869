"""Bulk that no summary needs and that may hide anything: base64 data URIs and long hexadecimal runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxctl.guard.text import Sieved

DATA_MARKER = "[base64-data-redacted]"
HEX_MARKER = "[hex-redacted]"

URI = re.compile(
    r"data:[A-Za-z0-9!#$&^_.+*/-]{0,127}(?:;[A-Za-z0-9_.=+\"-]{1,100}){0,6};base64,"
    r"(?:[A-Za-z0-9+/=_-]++|%[0-9A-Fa-f]{2}|\\/)++",
    re.I,
)
LONGEST_HEAD = 800

SHORTEST_HEX = 64
STEP = 16
"""A run of 64 digits has four places that are multiples of 16: only where four such places in a row are hexadecimal
digits the text between is looked at."""
SAMPLED = re.compile(r"[0-9A-Fa-f]{4,}")
HEX = re.compile(r"[0-9A-Fa-f]{64,}")
TAIL = re.compile(r"[0-9A-Fa-f]*")

HASH_FIELD = re.compile(r"sha256[:\"'=\s]{1,4}$", re.I)
COMMIT = re.compile(
    r"(?:\b(?:commit|tree|parent|object|blob|tag|head|merge|index|revert(?:s|ed)?|fixup|onto|checkout|reset|from)"
    r"[ \t:\"'=(]{1,4}|[0-9a-f]{64}(?:\.\.\.?|[ \t]))$",
    re.I,
)
"""What stands in front of the 64 digits of a git object in a SHA-256 repository (git's own output, trailers)."""


def data_uris(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    """The spans of base64 data URIs (RFC 2397), from `data:` to the last character of the payload."""
    if not sieved.has(";base64,"):
        return
    done = 0
    for at in sieved.places(";base64,"):
        start = sieved.folded.rfind("data:", max(done, at - LONGEST_HEAD), at)
        if start < 0:
            continue
        match = URI.match(text, start)
        if match is not None:
            done = match.end()
            yield match.span()


def hex_runs(text: str) -> Iterator[tuple[int, int]]:
    """The spans of runs of 64 or more hexadecimal digits. Left alone are 64 digits that stand as a git object's id, or
    as a `sha256:` field, which is how ctxctl itself writes the hash of a file's content."""
    if len(text) < SHORTEST_HEX:
        return
    done = 0
    for sample in SAMPLED.finditer(text[::STEP]):
        first = max(done, (sample.start() - 1) * STEP)
        for run in _runs(text, first, sample.end() * STEP):
            done = run[1]
            if not (run[1] - run[0] == SHORTEST_HEX and _is_id(text, run[0])):
                yield run


def _runs(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Runs that begin between two places."""
    while (match := HEX.search(text, first, min(len(text), last + SHORTEST_HEX))) is not None:
        end = TAIL.match(text, match.end()).end()  # type: ignore[union-attr]
        yield match.start(), end
        first = end


def _is_id(text: str, start: int) -> bool:
    before = text[max(0, start - 80) : start]
    return HASH_FIELD.search(before) is not None or COMMIT.search(before) is not None
