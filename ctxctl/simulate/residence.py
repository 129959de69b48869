"""What is still there when a turn needs it: hits, misses, and what the misses would fetch again (replay measures)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxctl.model.edits import Edits
from ctxctl.model.unit import Trace, Turn
from ctxctl.model.window import Window
from ctxctl.trace.atoms import HEADLINE, lines, words


@dataclass(frozen=True, slots=True)
class Missed:
    """What one turn used and did not find. units: those that are fetched again, tokens: theirs; references, misses: how
    many."""

    units: Sequence[int]
    tokens: int
    references: int
    misses: int


class Residence:
    """Counts, per atom, the resident blocks (and the texts in their place) that hold it."""

    def __init__(self, trace: Trace, window: Window) -> None:
        self._trace = trace
        self._window = window
        self._made = 0
        self._atoms = trace.atoms
        self._there = [0] * len(trace.names)
        self._held: dict[int, Sequence[int]] = {}
        self._known: dict[str, list[int]] = trace.memo.setdefault("atoms of texts", {})
        self.hits = self.misses = 0
        self.weight = self.missed_weight = 0.0
        self.used_turns = self.missed_turns = 0
        self.first_uses = self.first_misses = 0
        self._paid: set[int] = set()  # fetched again and not seen to leave since
        self.demand = self.refetched = self.refetches = self.excess = 0

    def _hold(self, block: int, atoms: Sequence[int]) -> None:
        there = self._there
        for a in self._held.get(block, ()):
            there[a] -= 1
        self._held[block] = atoms
        for a in atoms:
            there[a] += 1

    def arrived(self, blocks: Iterable[int]) -> None:
        """Blocks came in as they are."""
        there, atoms, held = self._there, self._atoms, self._held
        for block in blocks:
            mine = atoms[block]
            if mine:
                if held.get(block):
                    self._hold(block, ())
                held[block] = mine
                for a in mine:
                    there[a] += 1

    def gone(self, blocks: Iterable[int]) -> None:
        """Blocks left."""
        held, there = self._held, self._there
        for block in blocks:
            for a in held.pop(block, ()):
                there[a] -= 1

    def edited(self, edits: Edits) -> None:
        """The manager changed the window.

        What it reports may be older than the window is: a block that was cut down as it came in can have left since,
        and one that left can have come in again. So the window says what is there.
        """
        entries = self._window.entries
        for drop in edits.drops:
            self.gone(b for b in drop.blocks if b not in entries)
        for change in edits.replaces:
            entry = entries.get(change.block)
            if entry is not None and entry.replaced:
                self._hold(change.block, self._of(entry.text))
        self._sync()

    def _sync(self) -> None:
        """What the engine itself put in since last asked."""
        made = self._window.made
        while self._made < len(made):
            self._made += 1
            if (entry := self._window.entries.get(-self._made)) is not None:
                self._hold(-self._made, self._of(entry.text if entry.replaced else made[self._made - 1].text))

    def _of(self, text: str | None) -> list[int]:
        """The atoms of a text that stands for others."""
        if not text:
            return []
        found = self._known.get(text)
        if found is None:
            memo = self._trace.memo
            if "numbers" not in memo:
                memo["numbers"] = {name: a for a, name in enumerate(self._trace.names) if name}
            numbers = memo["numbers"]
            found = self._known[text] = [numbers[w] for w in (words(text) | lines(text)) & numbers.keys()]
        return found

    def judge(self, turn: Turn) -> Missed:
        """Hold what a turn's answer used against what is there."""
        there, units = self._there, self._trace.units
        wanted: set[int] = set()
        missed: dict[int, bool] = {}
        misses = 0
        for reference in turn.references:
            wanted.add(reference.smallest)
            lost = there[reference.atom] <= 0
            if reference.first_use:
                self.first_uses += 1
                self.first_misses += lost
            if reference.kind in HEADLINE:
                self.weight += reference.weight
                if lost:
                    self.missed_weight += reference.weight
            if lost:
                misses += 1
                again = reference.kind == "call"  # the recording fetched it again itself
                missed[reference.smallest] = missed.get(reference.smallest, False) or again
        count = len(turn.references)
        self.hits += count - misses
        self.misses += misses
        self.used_turns += count > 0
        self.missed_turns += misses > 0
        self.demand += sum(units[u].tokens for u in wanted)
        due = [u for u in missed if u not in self._paid]
        self._paid.update(due)
        tokens = sum(units[u].tokens for u in due)
        self.refetched += tokens
        self.refetches += len(due)
        self.excess += sum(not missed[u] for u in due)
        return Missed(sorted(missed), tokens, count, misses)

    def restored(self, unit: int) -> None:
        """A unit came in again as it was; what had replaced it still stands, and holds nothing more."""
        self._paid.discard(unit)
        self._sync()
        entries = self._window.entries
        self.arrived(
            b for b in self._trace.units[unit].blocks if b in entries and self._held.get(b) is not self._atoms[b]
        )
