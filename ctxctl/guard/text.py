"""Text as rules look at it, and spans within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

GROWS = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
"""The one character whose lower case has more characters than it."""


SMALL = 1 << 12
"""Characters up to which a text is searched as it is."""


def fold(text: str) -> str:
    """Lower case, of the same length: a span in it is a span in the text."""
    return text.lower() if text.isascii() else text.replace(GROWS, "i").lower()


class Sieved:
    """A text prepared for many searches. text: as given; folded: see `fold`.

    Most of a large text is the same words again: a string without white space is looked for among the different words
    first, a tenth of the text or so, and in the text itself only when it is there.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = fold(text)
        self._words = "\n".join(set(self.folded.split())) if len(text) > SMALL else self.folded
        self._known: dict[str, list[int]] = {}

    def has(self, word: str) -> bool:
        """Whether a string (lower case, without white space) occurs, in whatever case."""
        return word in self._words

    def places(self, needle: str) -> list[int]:
        """Where a string (lower case) begins, in whatever case."""
        found = self._known.get(needle)
        if found is None:
            there = self.has(max(needle.split(), key=len))
            found = self._known[needle] = list(places(self.folded, needle)) if there else []
        return found


def places(text: str, needle: str) -> Iterator[int]:
    """Where a string begins in a text, overlaps left out."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def regions(starts: Iterable[int], before: int, after: int, end: int) -> Iterator[tuple[int, int]]:
    """The surroundings of ascending places, joined where they touch: no character lies in two of them."""
    low = high = -1
    for at in starts:
        first, last = max(0, at - before), min(end, at + after)
        if first > high:
            if high >= 0:
                yield low, high
            low = first
        high = last
    if high >= 0:
        yield low, high


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, overlapping ones as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
