"""Which lines of many texts to keep, so that as much as possible of what they name is still named once.

Budgeted maximum coverage, solved greedily by gain per token with lazy evaluation (Khuller, Moss and Naor 1999; Minoux
1978): a line is worth the paths, identifiers and numbers that no line kept so far holds, and itself. What is newer, and
what stands in several texts, is worth more: later turns use it more often (`benchmarks/retention.py` measures it).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import fsum, log1p

from ctxctl.compaction.atomized import NUMBERED, named, named_by
from ctxctl.model.text import shortened, through
from ctxctl.trace.atoms import PRECISION, kind_of

SHORTEST, LONGEST = 8, 200
"""Characters of a line that is worth a place; a longer one is cut."""
NOISE = re.compile(r"(?:</?[\w-]+>|#{1,6} .*|```.*|[-dl](?:[r-][w-][xsStT-]){3}.*|total \d+)$")
"""Lines that name things but say nothing: tags, headings, fences, listings of folders."""
HALF_LIFE = 0.35
"""Of the span of ages, after which a line is worth half."""
SCANNED = 600_000
"""Characters that are weighed at most, the newest; of what is older only first lines."""
CHARACTERS_PER_TOKEN = 3.6
WHOLE_LINE = 0.6
"""What a line is worth by itself, in atoms: later turns quote whole lines."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text whose lines compete. number: of its block; age: 0 for the newest, 1 for the oldest."""

    number: int
    text: str
    age: float


def chosen_lines(
    sources: Sequence[Source],
    most: int,
    count: Callable[[str], int],
    covered: Sequence[str] = (),
    caps: Mapping[int, int] | None = None,
    clean: Callable[[str], str] = str,
) -> dict[int, list[str]]:
    """The lines to keep of each text, in their order, together no more than so many tokens. covered: texts that stay
    anyway, the newest last, whose names need not be kept again. caps: of each text by its number at most so many
    characters. clean: takes out what must not be written, before a line is cut within a word."""
    known: set[str] = set()
    left = SCANNED
    for text in reversed(covered):
        known |= named(text)
        left -= len(text)
        if left < 0:
            break
    lines, rough = _candidates(sources)
    df: Counter[str] = Counter()
    per_source: dict[int, set[str]] = {}
    atoms: list[tuple[str, ...]] = []
    for source, _, line in lines:
        found = named_by(line)
        atoms.append(found)
        per_source.setdefault(source, set()).update(found)
    for mine in per_source.values():
        df.update(mine)
    value = {a: PRECISION[kind_of(a) or "number"] * (1 + log1p(df[a])) for a in df}
    fresh = [0.5 ** (sources[s].age / HALF_LIFE) for s, _, _ in lines]
    cost = [len(line) / CHARACTERS_PER_TOKEN + 1.5 for _, _, line in lines]

    def gain(at: int) -> float:
        new = fsum(value[a] for a in atoms[at] if a not in known)  # whatever the order in which a set gives them
        return float((WHOLE_LINE + new) * fresh[at] / cost[at])

    heap = [(-gain(at), at) for at in range(len(lines))]
    heapify(heap)
    kept: list[int] = []
    said: set[str] = set()
    room = dict(caps or {})
    spent = 0.0
    budget = float(most)
    while heap and spent < budget:
        worth, at = heappop(heap)
        now = gain(at)
        if -worth > now + 1e-12:
            heappush(heap, (-now, at))
            continue
        if at in rough:
            source, position, _ = lines[at]
            lines[at] = source, position, clean(rough.pop(at))[:LONGEST]
        line = lines[at][2]
        number = sources[lines[at][0]].number
        if line in said or spent + cost[at] > budget or (caps is not None and room[number] <= len(line)):
            continue
        if caps is not None:
            room[number] -= len(line) + 1
        said.add(line)
        known.update(atoms[at])
        kept.append(at)
        spent += cost[at]
    return _fitted(lines, kept, most, count, sources)


def _candidates(sources: Sequence[Source]) -> tuple[list[tuple[int, int, str]], dict[int, str]]:
    """(source, position, line) of all lines that may be kept; of what is beyond the newest 600,000 characters only
    the first line of each text. Long lines are cut between words; those that can't be, whole as far as the word goes in
    which they are cut, by their number among the lines."""
    found: list[tuple[int, int, str]] = []
    rough: dict[tuple[int, int], str] = {}
    left = SCANNED
    for s in range(len(sources) - 1, -1, -1):
        text = sources[s].text
        left -= len(text)
        for position, line in enumerate(text.split("\n")):
            stripped = line.strip()
            if len(stripped) < SHORTEST or NOISE.match(stripped):
                continue
            if len(NUMBERED.sub("", stripped)) >= SHORTEST:
                if len(stripped) > LONGEST:
                    kept = shortened(stripped, LONGEST)
                    if len(kept) < LONGEST // 2:
                        rough[s, position] = through(stripped, LONGEST)
                        kept = stripped[:LONGEST]
                    stripped = kept
                found.append((s, position, stripped))
                if left < 0:
                    break
    found.sort()
    return found, {at: rough[line[:2]] for at, line in enumerate(found) if line[:2] in rough} if rough else {}


def _fitted(
    lines: Sequence[tuple[int, int, str]],
    kept: list[int],
    most: int,
    count: Callable[[str], int],
    sources: Sequence[Source],
) -> dict[int, list[str]]:
    """Without the lines that came last, until the true count fits."""
    while kept:
        text = "\n".join(lines[at][2] for at in sorted(kept))
        tokens = count(text)
        if tokens <= most:
            break
        surplus = max(1, int(len(kept) * (1 - most / tokens)))
        del kept[-surplus:]
    result: dict[int, list[str]] = {}
    for at in sorted(kept):
        s, _, line = lines[at]
        result.setdefault(sources[s].number, []).append(line)
    return result
