"""References: what a later turn used of earlier units, told from the recording itself.

A reference is (call k, atom a): a occurs in what the model wrote at call k, in an earlier evictable unit, in no pinned
one, and in at most half of all blocks. Its providers are all earlier evictable units that contain it. Weight:
ln(1 + N / df(a)) times the measured precision of its class (`ctxctl.trace.atoms.PRECISION`), N blocks, df(a) of them
with a.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import log

from ctxctl.model.block import Block
from ctxctl.model.unit import Reference, Unit
from ctxctl.trace.atoms import (
    HEADLINE,
    LONGEST_LINE,
    PRECISION,
    call_text,
    fenced_command,
    key_of,
    kind_of,
    lines,
    words,
)

WRITTEN = frozenset(("assistant", "tool_call"))
"""What of an answer uses earlier text; reasoning is not sent back and may only weigh what it does not use."""


@dataclass(frozen=True, slots=True)
class Found:
    """References and credits per turn; atoms of each block (those that a reference is about); how many references the
    recording itself made by repeating a call; of what the model wrote, the words by turn (for the placebo)."""

    references: dict[int, list[Reference]]
    credits: dict[int, dict[int, int]]
    atoms: list[tuple[int, ...]]
    names: list[str]
    rereads: int
    written: dict[int, set[str]]


def find_references(
    blocks: Sequence[Block],
    enters: Sequence[int],
    unit_of: Sequence[int],
    units: Sequence[Unit],
    leaving: Mapping[int, Sequence[int]] | None = None,
    foreign: frozenset[int] = frozenset(),
) -> Found:
    """All references of a transcript's main thread, in one pass over its texts.

    enters: the call that reads each block first. leaving: blocks that the client itself took back before a call.
    foreign: blocks that came in for the agent's own compactions, so that no other policy would have seen them. Neither
    provides anything.
    """
    outputs, keys = _written(blocks)
    numbers: dict[str, int] = {}
    for atoms in outputs.values():
        for atom in sorted(atoms):  # the order of a set differs between processes
            numbers.setdefault(atom, len(numbers))
    names = list(numbers)
    wanted = numbers.keys()
    any_line = any(kind == "line" for atoms in outputs.values() for kind in atoms.values())
    count = len(names)
    df = [0] * count
    pinned = bytearray(count)
    held: list[list[int]] = []
    for number, block in enumerate(blocks):
        text = call_text(block.text) if block.kind == "tool_call" else block.text
        found = words(text) & wanted
        if any_line and len(text) >= 24:
            found |= lines(text) & wanted
        if (key := keys.get(number)) is not None and key in numbers:
            found.add(key)
        mine = sorted(numbers[a] for a in found)
        held.append(mine)
        fixed = units[unit_of[number]].pinned is not None
        for a in mine:
            df[a] += 1
            if fixed:
                pinned[a] = 1
    total = len(blocks)
    usable = bytearray(int(not pinned[a] and df[a] * 2 <= max(total, 2)) for a in range(count))
    providers = _Providers(unit_of, units, held, foreign, leaving or {})
    return _link(blocks, enters, providers, outputs, names, numbers, df, usable)


def _written(blocks: Sequence[Block]) -> tuple[dict[int, dict[str, str]], dict[int, str]]:
    """Atoms with their class of what each call wrote, by turn; and the call key of each block that has one. A result
    has the key of its call, so that reading the same again refers to it."""
    outputs: dict[int, dict[str, str]] = {}
    keys: dict[int, str] = {}
    by_call: dict[str, str] = {}
    fenced: tuple[int, str] | None = None
    for number, block in enumerate(blocks):
        if block.kind == "tool_result":
            if block.call_id is not None and block.call_id in by_call:
                keys[number] = by_call[block.call_id]
            elif block.call_id is None and fenced is not None and fenced[0] + 1 == block.turn:
                keys[number] = fenced[1]
            continue
        if block.kind not in WRITTEN:
            continue
        atoms = outputs.setdefault(block.turn, {})
        text = call_text(block.text) if block.kind == "tool_call" else block.text
        for word in words(text):
            kind = kind_of(word)
            if kind is not None:
                atoms[word] = kind
        for line in lines(text):
            atoms[line] = "line"
        key = key_of(block.text) if block.kind == "tool_call" else fenced_command(block.text)
        if key is not None:
            atoms[key] = "call"
            if block.kind == "assistant":
                fenced = block.turn, key
            elif block.call_id is not None:
                by_call[block.call_id] = key
            else:
                keys[number] = key
    return outputs, keys


class _Providers:
    """Of each atom the smallest and the newest unit that hold it and may leave, as blocks come and go; fixed: atoms
    that a pinned block held so far."""

    def __init__(
        self,
        unit_of: Sequence[int],
        units: Sequence[Unit],
        held: Sequence[Sequence[int]],
        foreign: frozenset[int],
        leaving: Mapping[int, Sequence[int]],
    ) -> None:
        self.held = held
        self.smallest: dict[int, int] = {}
        self.newest: dict[int, int] = {}
        self.fixed: set[int] = set()
        self._unit_of, self._units, self._foreign = unit_of, units, foreign
        self.leaving = sorted(leaving.items(), reverse=True)
        self._gone: set[int] = set()
        # of atoms that some block takes away with it, all holders: (tokens of the unit, when, block), smallest first
        self._all: dict[int, list[tuple[int, int, int]]] = {
            a: [] for blocks in leaving.values() for b in blocks for a in held[b]
        }
        self._order: dict[int, list[int]] = {a: [] for a in self._all}

    def come(self, block: int, when: int) -> None:
        """A block came in."""
        home = self._unit_of[block]
        unit = self._units[home]
        if unit.pinned is not None:
            self.fixed.update(self.held[block])
            return
        if block in self._foreign:
            return
        smallest, newest, units = self.smallest, self.newest, self._units
        for a in self.held[block]:
            newest[a] = home
            if a not in smallest or unit.tokens < units[smallest[a]].tokens:
                smallest[a] = home
            if a in self._all:
                heappush(self._all[a], (unit.tokens, when, block))
                self._order[a].append(block)

    def leave(self, blocks: Sequence[int]) -> None:
        """Blocks were taken back."""
        self._gone.update(blocks)
        for a in {a for b in blocks for a in self.held[b]}:
            heap, order = self._all[a], self._order[a]
            while heap and heap[0][2] in self._gone:
                heappop(heap)
            while order and order[-1] in self._gone:
                order.pop()
            if not heap:
                self.smallest.pop(a, None)
                self.newest.pop(a, None)
            else:
                self.smallest[a] = self._unit_of[heap[0][2]]
                self.newest[a] = self._unit_of[order[-1]]


def _link(
    blocks: Sequence[Block],
    enters: Sequence[int],
    providers: _Providers,
    outputs: dict[int, dict[str, str]],
    names: list[str],
    numbers: dict[str, int],
    df: list[int],
    usable: bytearray,
) -> Found:
    """Walk through the calls: what each wrote, against what had arrived before it."""
    count, total, held = len(names), len(blocks), providers.held
    smallest, newest, fixed, leaving = providers.smallest, providers.newest, providers.fixed, providers.leaving
    seen_df = [0] * count
    said = bytearray(count)
    referred = bytearray(count)
    references: dict[int, list[Reference]] = {}
    credits: dict[int, dict[int, int]] = {}
    rereads = 0
    order = sorted(range(total), key=lambda b: enters[b])  # stable: blocks of one turn stay in file order
    at = 0
    for turn in sorted(outputs):
        while at < total and enters[order[at]] <= turn:
            number = order[at]
            while leaving and leaving[-1][0] <= enters[number]:
                providers.leave(leaving.pop()[1])
            at += 1
            for a in held[number]:
                seen_df[a] += 1
            providers.come(number, at)
        while leaving and leaving[-1][0] <= turn:
            providers.leave(leaving.pop()[1])
        found: list[Reference] = []
        used: dict[int, int] = {}
        for name, kind in sorted(outputs[turn].items()):
            a = numbers[name]
            home = newest.get(a)
            if home is None:
                said[a] = 1
                continue
            if kind in HEADLINE and a not in fixed and seen_df[a] * 2 <= max(at, 2):
                used[home] = used.get(home, 0) + 1
            if usable[a]:
                weight = log(1 + total / df[a]) * PRECISION[kind]
                found.append(Reference(turn, a, kind, weight, smallest[a], not said[a], name[:LONGEST_LINE]))
                referred[a] = 1
                rereads += kind == "call"
            said[a] = 1
        if found:
            references[turn] = found
        if used:
            credits[turn] = used
    atoms = [tuple(a for a in mine if referred[a]) for mine in held]
    return Found(references, credits, atoms, names, rereads, {t: set(atoms) for t, atoms in outputs.items()})


class Index:
    """The same credits, told while a session runs: `find_references` with the past alone.

    It remembers of each atom the newest unit that holds it and how many blocks do.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._fixed: set[str] = set()
        self._df: dict[str, int] = {}
        self._blocks = 0
        self._keys: dict[str, str] = {}
        self._fenced: str | None = None

    def hold(self, block: Block, unit: int, pinned: bool) -> None:
        """A block came in."""
        self._blocks += 1
        text = call_text(block.text) if block.kind == "tool_call" else block.text
        atoms = {w for w in words(text) if kind_of(w) in HEADLINE} | lines(text)
        key = None
        if block.kind == "tool_call":
            key = key_of(block.text)
            if key is not None and block.call_id is not None:
                self._keys[block.call_id], key = key, None
        elif block.kind == "assistant":
            self._fenced = fenced_command(block.text)
        elif block.kind == "tool_result":
            key = self._keys.get(block.call_id) if block.call_id is not None else self._fenced
        if key is not None:
            atoms.add(key)
        for atom in atoms:
            self._df[atom] = self._df.get(atom, 0) + 1
            if pinned:
                self._fixed.add(atom)
            else:
                self._newest[atom] = unit

    def credit(self, texts: Sequence[str], calls: Sequence[str]) -> list[tuple[int, int]]:
        """(unit, times) that an answer uses; calls: `NAME ARGUMENTS` of each."""
        atoms: set[str] = set()
        for text in (*texts, *map(call_text, calls)):
            atoms |= {w for w in words(text) if kind_of(w) in HEADLINE} | lines(text)
        atoms |= {key for text in calls if (key := key_of(text)) is not None}
        atoms |= {key for text in texts if (key := fenced_command(text)) is not None}
        used: dict[int, int] = {}
        for atom in sorted(atoms):
            unit = self._newest.get(atom)
            if unit is not None and atom not in self._fixed and self._df[atom] * 2 <= max(self._blocks, 2):
                used[unit] = used.get(unit, 0) + 1
        return list(used.items())
