"""The window: what is resident, in which order, and how much of it the next request has in common with the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

from ctxctl.model.block import Block, Source
from ctxctl.model.edits import SUMMARY, Drop, Edits
from ctxctl.model.unit import Unit

BOUND_KINDS = frozenset(("thinking", "tool_call", "tool_result"))
"""Kinds of units that a response binds while its reasoning is."""


class _Prefix:
    """Sums of tokens up to a position, under changes (a binary indexed tree: Fenwick 1994)."""

    def __init__(self) -> None:
        self._tree = [0]

    def copy(self) -> _Prefix:
        """The same sums, to be changed apart."""
        made = _Prefix()
        made._tree = self._tree.copy()
        return made

    def append(self, tokens: int) -> int:
        """A new last position with so many tokens; returns it (1-based)."""
        tree = self._tree
        at = len(tree)
        total, step = tokens, 1
        while step < (at & -at):
            total += tree[at - step]
            step <<= 1
        tree.append(total)
        return at

    def add(self, at: int, tokens: int) -> None:
        tree, size = self._tree, len(self._tree)
        while at < size:
            tree[at] += tokens
            at += at & -at

    def before(self, at: int) -> int:
        """Tokens of all positions before one."""
        tree, total = self._tree, 0
        at -= 1
        while at > 0:
            total += tree[at]
            at -= at & -at
        return total


class Entry(NamedTuple):  # a tuple: one is made whenever a block comes in
    """One resident block. number: of the block, negative for what the engine itself put in. place: in the order of the
    window. text: what stands there instead of the block's own, None while it is that; replaced: whether one does."""

    number: int
    place: int
    tokens: int
    replaced: bool = False
    text: str | None = None


class Window:
    """Resident blocks in their order.

    blocks, unit_of, units: the tables that numbers refer to; a live manager lets them grow. overhead: tokens in
    front that are in no block; hidden: growth of the prompt that no block explains. tokens: these and all resident
    blocks. turn: the next call. exchange: the current one. references, used: per unit, how often turns used it
    lately and when last; a policy reads them. summaries: units that hold a summary of others; kept: units that are to
    stay for now. time: of the next call, seconds since 1970; last_time: of the one before; prompt, output: tokens of
    the last request and its answer. stand_ins: made blocks that stood for a block which came in again since, oldest
    first.
    """

    def __init__(
        self, blocks: Sequence[Block], unit_of: Sequence[int], units: Sequence[Unit], overhead: int = 0
    ) -> None:
        self.blocks = blocks
        self.unit_of = unit_of
        self.units = units
        self.overhead = overhead
        self.tokens = overhead
        self.hidden = 0
        self.turn = 1
        self.exchange = 0
        self.time: float | None = None
        self.last_time: float | None = None
        self.prompt = 0
        self.output = 0
        self.entries: dict[int, Entry] = {}
        self.resident: dict[int, int] = {}
        self.fixed: dict[int, int] = {}
        self.entered: dict[int, int] = {}
        self.references: dict[int, int] = {}
        self.used: dict[int, int] = {}
        self.pending: set[int] = set()
        self.fresh: set[int] = set()
        self.asked: set[int] = set()
        self.thinking: set[int] = set()
        self.summaries: set[int] = set()
        self.kept: set[int] = set()
        self.made: list[Block] = []
        self.stand_ins: dict[int, int] = {}
        self._responses: dict[str, dict[int, None]] = {}
        self._anchored: set[str] = set()
        self._whole: set[str] = set()
        self._batches: set[str] = set()
        self._prefix = _Prefix()
        self._changed: int | None = None

    def block(self, number: int) -> Block:
        """A block by its number, also one that the engine put in."""
        return self.blocks[number] if number >= 0 else self.made[-number - 1]

    def text(self, number: int) -> str:
        """What stands in the window for a resident block; empty when it is not known."""
        entry = self.entries[number]
        return (entry.text or "") if entry.replaced else self.block(number).text

    def enter(self, number: int, tokens: int) -> None:
        """A block comes in at the end."""
        self.entries[number] = Entry(number, self._prefix.append(tokens), tokens)
        self.tokens += tokens
        if number < 0:
            return
        home = self.unit_of[number]
        unit = self.units[home]
        if unit.pinned is not None:
            # a call may get pinned by its result
            self.fixed[home] = self.fixed.get(home, 0) + self.resident.pop(home, 0) + tokens
        else:
            self.resident[home] = self.resident.get(home, 0) + tokens
        self.entered[home] = self.turn
        kind = self.blocks[number].kind
        if unit.response is not None and (kind == "thinking" or kind == "tool_call" or unit.pinned is not None):
            self._join(unit)
        if kind == "tool_call":
            self.pending.add(home)
        elif kind == "user_message" or (kind in ("image", "document") and self._attached(number)):
            if self.blocks[number].exchange > self.exchange:
                self.exchange = self.blocks[number].exchange
                self.asked.clear()
            if self.blocks[number].exchange == self.exchange:  # an older one may come in again
                self.asked.add(home)
        elif kind == "thinking":
            self.thinking.add(home)
        elif kind in ("tool_result", "image", "document"):
            self.pending.discard(home)
            self.fresh.add(home)

    def _attached(self, number: int) -> bool:
        """Whether a picture or document came with a prompt, and not with a tool's result."""
        block, unit = self.blocks[number], self.units[self.unit_of[number]]
        return block.call_id is None and block.exchange > 0 and unit.kind in ("image", "document")

    def _join(self, unit: Unit) -> None:
        """Reasoning and calls of one response know of each other, and of a pinned one among them."""
        response = unit.response
        if response is not None and unit.kind in BOUND_KINDS:
            self._responses.setdefault(response, {})[unit.number] = None
            if unit.pinned is not None:
                self._anchored.add(response)

    def drop(self, number: int) -> int:
        """A block leaves; returns its tokens."""
        entry = self.entries.pop(number)
        self.stand_ins.pop(number, None)
        self._touch(entry.place)
        self._prefix.add(entry.place, -entry.tokens)
        self.tokens -= entry.tokens
        if number >= 0:
            self._resize(number, -entry.tokens)
        return entry.tokens

    def replace(self, number: int, text: str | None, tokens: int) -> int:
        """A block's content becomes something else; returns the tokens that it had."""
        entry = self.entries[number]
        self._touch(entry.place)
        self._prefix.add(entry.place, tokens - entry.tokens)
        self.tokens += tokens - entry.tokens
        self.entries[number] = Entry(number, entry.place, tokens, True, text)
        if number >= 0:
            self._resize(number, tokens - entry.tokens)
        return entry.tokens

    def insert(self, kind: str, role: str, text: str | None, tokens: int) -> int:
        """A block of the engine's own comes in at the end; returns its (negative) number."""
        number = -len(self.made) - 1
        self.made.append(Block(f"made.{-number}", kind, role, text or "", self.turn, self.exchange, Source(0)))
        self.enter(number, tokens)
        return number

    def detach(self, number: int) -> None:
        """What stands for a replaced block stays where it is as the engine's own, so that the block can come in
        again."""
        entry = self.entries.pop(number)
        block = self.block(number)
        made = -len(self.made) - 1
        self.made.append(
            Block(f"made.{-made}", block.kind, block.role, entry.text or "", self.turn, block.exchange, block.source)
        )
        self.entries[made] = Entry(made, entry.place, entry.tokens, True, entry.text)
        self.stand_ins[made] = number
        self._resize(number, -entry.tokens)

    def _resize(self, number: int, tokens: int) -> None:
        home = self.unit_of[number]
        sizes = self.fixed if self.units[home].pinned is not None else self.resident
        sizes[home] += tokens
        if not any(b in self.entries for b in self.units[home].blocks):
            del sizes[home]
            for members in (self.pending, self.fresh, self.asked, self.thinking, self.summaries, self.kept):
                members.discard(home)

    def _touch(self, place: int) -> None:
        if self._changed is None or place < self._changed:
            self._changed = place

    def place(self, number: int) -> int:
        """Where a resident block stands; only the order means something."""
        return self.entries[number].place

    def tokens_before(self, place: int) -> int:
        """Tokens in front of a place, with the overhead."""
        return self.overhead + self._prefix.before(place)

    def stable_prefix(self, last_prompt: int) -> int:
        """Tokens that the next request has in common with the last one, whose prompt was so long: all of it, or what
        lies before the first change. Asking begins a new request."""
        changed, self._changed = self._changed, None
        if changed is None:
            return min(last_prompt, self.tokens)
        return max(0, min(last_prompt, self.tokens_before(changed)))

    def held(self, unit: int) -> bool:
        """Whether a unit may not leave now for a reason of its own: a call without a result, a result that no call has
        answered yet, or the message of the current exchange."""
        return unit in self.fresh or unit in self.pending or unit in self.asked

    def protected(self) -> set[int]:
        """Units that may not leave now beside the pinned ones (requirement E8): the message of the current exchange,
        calls without a result, results that no call has answered yet, and what is bound to one of them; summaries,
        which hold all that is left of others; and what was asked to be kept."""
        held = self.pending | self.fresh | self.asked | self.summaries | self.kept
        if self.thinking or self._batches:
            for unit in tuple(held):
                held.update(self.together(unit))
            for response in self._anchored:
                held.update(self._open(response))
        return held

    def together(self, unit: int) -> tuple[int, ...]:
        """The resident units that leave only together with a unit, itself among them: reasoning of the open tool loop
        and the calls of its response (requirement E11)."""
        response = self.units[unit].response
        if response is None or unit not in self._responses.get(response, ()):
            return (unit,)
        if not self.thinking and response not in self._batches:
            return (unit,)
        group = self._open(response)
        return group if unit in group else (unit,)

    def bind(self, response: str) -> None:
        """An answer with reasoning leaves only as a whole from now on, its text included: the newest one is sent back
        with its reasoning byte for byte, or not at all."""
        self._whole.add(response)
        for unit in sorted((*self.resident, *self.fixed)):
            if self.units[unit].response == response:
                self._responses.setdefault(response, {})[unit] = None

    def bind_calls(self) -> None:
        """Calls that stand side by side in one answer leave only together from now on: a batch of which some are gone
        is not what the model sent."""
        for response, members in self._responses.items():
            if sum(self.units[u].kind in ("tool_call", "tool_result") for u in members) > 1:
                self._batches.add(response)

    def anchored(self, unit: int) -> bool:
        """Whether a unit is reasoning or a call that is bound to a pinned call."""
        response = self.units[unit].response
        return response in self._anchored and unit in self._open(response or "")

    def _open(self, response: str) -> tuple[int, ...]:
        """Resident reasoning and calls of a response while they are bound; empty once the exchange is over."""
        there = tuple(u for u in self._responses.get(response, ()) if u in self.resident)
        thinking, exchange = self.thinking, self.exchange
        if response in self._whole and any(u in thinking for u in there):
            return there
        if any(u in thinking and self.units[u].exchange == exchange for u in there):
            return there
        return tuple(u for u in there if u not in thinking) if response in self._batches else ()

    def bound(self) -> list[tuple[int, ...]]:
        """All groups of units that leave only together, by the first of each."""
        groups: dict[tuple[int, ...], None] = {}
        calls = (u for r in self._batches for u in self._responses.get(r, ()) if u in self.resident)
        for unit in sorted((*self.thinking, *calls) if self._batches else self.thinking):
            group = self.together(unit)
            if len(group) > 1:
                groups[group] = None
        return list(groups)

    def present(self, unit: int) -> Iterator[int]:
        """The resident blocks of a unit."""
        return (b for b in self.units[unit].blocks if b in self.entries)

    def copy(self) -> Window:
        """A window to try edits on. It shares what edits leave alone: the tables, and what is in them."""
        apart = copy(self)
        for name, value in vars(self).items():
            if name not in ("blocks", "unit_of", "units"):
                setattr(apart, name, value.copy() if isinstance(value, dict | set | list | _Prefix) else value)
        return apart

    def spare(self, tokens: float) -> list[Drop]:
        """What stood for blocks that came in again since, the oldest first, until so many tokens are free: worth least
        of all that is there."""
        drops: list[Drop] = []
        for made, number in self.stand_ins.items():
            if tokens <= 0:
                break
            size = self.entries[made].tokens
            drops.append(Drop(self.unit_of[number], (made,), size, "stood for what came in again"))
            tokens -= size
        return drops

    def apply(self, edits: Edits) -> tuple[int, int]:
        """Carry out edits; returns the tokens that left, and those by which content shrank."""
        dropped = sum(self.drop(block) for drop in edits.drops for block in drop.blocks)
        shrunk = 0
        for change in edits.replaces:
            shrunk += self.replace(change.block, change.text, change.tokens) - change.tokens
            if change.kind == SUMMARY and change.block >= 0:
                self.summaries.add(self.unit_of[change.block])
        for new in edits.inserts:
            self.insert(new.kind, new.role, new.text, new.tokens)
            shrunk -= new.tokens
        return dropped, shrunk

    def grow(self, tokens: int) -> int:
        """The prompt grew, or shrank, by tokens of no known block. What grew stands where the window ends now, hidden;
        what shrank is taken from the overhead, and is no more than what no policy evicts. Returns by how many it
        changed."""
        changed = max(tokens, -max(0, self.overhead + self.hidden + sum(self.fixed.values())))
        self.tokens += changed
        if changed > 0:
            self._prefix.append(changed)
            self.hidden += changed
        else:
            self.overhead += changed
        return changed

    def settle(self, prompt: int) -> int:
        """The provider reported so many tokens of prompt; returns by how many the window changed. What the first
        request held beyond its blocks stands in front of them: the system prompt and the tools."""
        if self.prompt or prompt <= self.tokens:
            return self.grow(prompt - self.tokens)
        first = prompt - self.tokens
        self.overhead += first
        self.tokens = prompt
        return first

    def check(self) -> None:
        """Raise AssertionError unless every sum is the sum of its parts."""
        entries = sum(entry.tokens for entry in self.entries.values())
        total = self.overhead + self.hidden + entries
        if self.tokens != total:
            raise AssertionError(f"the window holds {total} tokens, its counter says {self.tokens}")
        units = sum(self.resident.values()) + sum(self.fixed.values())
        own = sum(entry.tokens for number, entry in self.entries.items() if number < 0)
        if units + own != entries:
            raise AssertionError(f"units hold {units} tokens and made blocks {own}, the window's blocks {entries}")
