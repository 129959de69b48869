"""Near duplicates without a model: how many of a text's lines a later one holds.

Containment of hashed lines, after Broder, "On the resemblance and containment of documents" (1997), with lines for
shingles. It finds what was read twice, not what says the same in other words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Set
from zlib import crc32

SHORTEST = 5
"""Lines that a text needs to be compared; fewer agree by chance."""
FEWEST_SHARED = 3
"""Lines that two texts must have in common before they are compared in full."""
SMALLEST = 10_000
"""Lines that the index holds before it is cleared of what has left."""

_NUMBERED = re.compile(r"[ \t]*(\d+)(?:→|\t)[^\n]*\n[ \t]*(\d+)(?:→|\t)[^\n]*\n[ \t]*(\d+)(?:→|\t)")
_NUMBERS = re.compile(r"^[ \t]*\d+(?:→|\t)", re.MULTILINE)


def _unnumbered(text: str) -> str:
    """A text without the line numbers that a tool wrote in front, told by three in a row. Lines stay lines."""
    first = _NUMBERED.match(text)
    if first is None or not int(first[1]) + 2 == int(first[2]) + 1 == int(first[3]):
        return text
    return _NUMBERS.sub("", text)


def plain_lines(text: str) -> list[str]:
    """The lines of a text without the space around them and without line numbers."""
    return [line.strip() for line in _unnumbered(text).split("\n")]


def hashes(text: str) -> frozenset[int]:
    """A number for each different line that holds something; the same in every process."""
    text = _unnumbered(text)
    found = set(map(crc32, map(bytes.strip, text.encode("utf-8", "surrogatepass").split(b"\n"))))
    found.discard(0)  # of an empty line
    return frozenset(found)


def containment(one: Set[int], other: Set[int]) -> float:
    """The share of one set that the other holds too; 0 for an empty one."""
    return len(one & other) / len(one) if one else 0.0


class NearDuplicates:
    """Finds, as each text comes in, the earlier ones that it holds nearly all lines of.

    An inverted index from a line to the newest text that holds it: a line costs the same however many texts share it.
    share: of the lines of an earlier text, from which on a later one is a near duplicate. An excerpt of what is there
    already is none: to merge it would move the whole to save a part.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._lines: dict[int, frozenset[int]] = {}
        self._owner: dict[int, int] = {}
        self._twin: dict[int, int] = {}
        self._most = SMALLEST

    def add(self, number: int, text: str, there: Container[int]) -> list[int]:
        """File a text under a number; returns the numbers of its near duplicates, the oldest first. there: numbers that
        still count; others are forgotten."""
        if text.count("\n") < SHORTEST - 1:
            return []
        mine = hashes(text)
        if len(mine) < SHORTEST:
            return []
        owner, lines = self._owner, self._lines
        found: list[int] = []
        seen: set[int] = {number}
        for owning, shared in Counter(map(owner.get, mine)).items():
            if owning is None or shared < FEWEST_SHARED:
                continue
            other = self._heir(owning, there)
            if other is None or other in seen or other not in lines:
                continue
            seen.add(other)
            if containment(lines[other], mine) >= self._share:
                found.append(other)
        found.sort()
        lines[number] = mine
        owner.update(dict.fromkeys(mine, number))
        if found:
            self._twin[number] = found[-1]
        if len(owner) > self._most:
            self._clear(number, there)
        return found

    def _heir(self, number: int, there: Container[int]) -> int | None:
        """A text, or when it has left what it was a duplicate of, whose lines it had taken over."""
        passed: set[int] = set()
        while number not in there:
            passed.add(number)
            twin = self._twin.get(number)
            if twin is None or twin in passed:
                return None
            number = twin
        return number

    def _clear(self, number: int, there: Container[int]) -> None:
        """Forget what has left, so that the index grows with the window and not with the session."""
        heirs = {old: self._heir(old, there) for old in set(self._owner.values())}
        heirs[number] = number
        self._owner = {line: new for line, old in self._owner.items() if (new := heirs[old]) is not None}
        self._lines = {n: found for n, found in self._lines.items() if n in there or n == number}
        self._twin = {n: twin for n, twin in self._twin.items() if n in self._lines}
        self._most = max(SMALLEST, 2 * len(self._owner))
