"""What of one text is still in another: paths, identifiers, numbers and error names, word for word.

The measure for compaction (what was lost) and for summaries (what was made up). Classes are those of
`ctxctl.trace.atoms`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from ctxctl.model.block import Block
from ctxctl.trace.atoms import KEPT, call_text, kind_of

CLASSES = {"path": "paths", "identifier": "identifiers", "number": "numbers", "error": "errors"}
"""Classes of atoms by the name of their result."""

MOST = 50
"""Atoms that are named of a class; all are counted."""

_PART = 1 << 15
"""Characters of text that are cut into words at a time; in how many of such parts an atom stands is its frequency."""
_DIGITS = re.compile(rb"\d+")


@dataclass(frozen=True, slots=True)
class Kept:
    """One class. total: distinct atoms of it before; kept: those that are there after, too; lost: the others, the most
    frequent first, at most 50. share: None where there was none to keep."""

    kept: int
    total: int
    lost: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        return self.kept / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class Retention:
    """invented: atoms of the text after that the text before does not hold, not even as part of a word, by class, at
    most 50 of each; invented_count: how many in all."""

    paths: Kept
    identifiers: Kept
    numbers: Kept
    errors: Kept
    invented: dict[str, tuple[str, ...]]
    invented_count: int

    def items(self) -> Iterator[tuple[str, Kept]]:
        """The classes with their names."""
        for name in CLASSES.values():
            yield name, getattr(self, name)


def said(block: Block) -> str:
    """The text of a block for `retained`: of a call its arguments without the escapes of JSON."""
    return call_text(block.text) if block.kind == "tool_call" else block.text


def retained(before: Iterable[str], after: Iterable[str], both: Iterable[str] = (), *, named: bool = True) -> Retention:
    """What the texts before hold that the texts after hold too, and what these hold beyond. both: texts that stand
    before and after, so that they are read only once. named: whether the lost atoms are named, the most frequent first;
    telling how frequent they are takes as long as everything else. Texts are not kept. 20 MB take half a second at
    most."""
    had = _words(both, named)
    has = _words(after, named).keys() | had.keys()
    had.update(_words(before, named))
    kept: Counter[str] = Counter()
    lost: dict[str, list[tuple[int, str]]] = {name: [] for name in CLASSES}
    for atom, times in had.items():
        if (kind := kind_of(atom)) is None:
            continue
        if atom in has:
            kept[kind] += 1
        else:
            lost[kind].append((-times, atom))
    invented = _invented(had, (atom for atom in has if atom not in had))
    return Retention(
        **{
            name: Kept(
                kept[kind],
                kept[kind] + len(lost[kind]),
                tuple(a for _, a in sorted(lost[kind])[:MOST]) if named else (),
            )
            for kind, name in CLASSES.items()
        },
        invented={CLASSES[kind]: tuple(sorted(found)[:MOST]) for kind, found in invented.items()},
        invented_count=sum(map(len, invented.values())),
    )


def _words(texts: Iterable[str], counted: bool = True) -> Counter[str]:
    """Words that may be atoms, with the number of parts of the text that they stand in, or 1 where it is not
    counted."""
    found: Counter[bytes] = Counter()
    once: set[bytes] = set()
    for part in _parts(texts):
        # bytes, since their table and split take a fraction of the time of those of strings
        raws = part.encode("utf-8", "surrogatepass").translate(KEPT).split()
        if counted:
            found.update(set(raws))
        else:
            once.update(raws)
    found.update(once)
    words: Counter[str] = Counter()
    for raw, times in found.items():
        if raw.isalpha() and raw.islower():
            continue  # a plain word is no atom
        word = raw.removeprefix(b"./").removesuffix(b"/").strip(b".-")
        words[word.decode("utf-8", "surrogatepass")] += times
    return words


def _parts(texts: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= _PART:
            yield "\n".join(waiting)
            waiting, size = [], 0
    yield "\n".join(waiting)


def _invented(had: Iterable[str], candidates: Iterable[str]) -> dict[str, list[str]]:
    """Those of the candidates that are no part of a word before: `a.py` of `/w/src/a.py` is not made up."""
    found: dict[str, list[str]] = {name: [] for name in CLASSES}
    everything: str | None = None
    numbers: set[bytes] = set()
    for atom in candidates:
        kind = kind_of(atom)
        if kind is None:
            continue
        if everything is None:
            everything = "\n".join(had)
            numbers.update(chain.from_iterable(map(_DIGITS.findall, [everything.encode("utf-8", "surrogatepass")])))
        known = atom.encode() in numbers if kind == "number" else atom in everything
        if not known:
            found[kind].append(atom)
    return found
