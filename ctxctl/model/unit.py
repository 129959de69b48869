"""Units: what may leave the window together; and the trace that a transcript becomes for replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxctl.model.block import Block
from ctxctl.model.usage import Usage

ANSWER_KINDS = frozenset(("assistant", "thinking", "tool_call"))
"""What the model writes: the call that wrote it does not read it, the next one does."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest set of blocks that may leave the window together (requirement E11).

    number: its place in the order of arrival. id: of its first block. blocks: their numbers. turn: the first call that
    reads its newest block. kind: `tool_result` for a call with its result; otherwise that of its block. tokens: of all
    its blocks. pinned: why it never leaves (`system`, `task`, `preserve`, ...), None when it may. response: of what the
    model wrote; units of one response are bound while its thinking is. pending: a call without a result.
    """

    number: int
    id: str
    kind: str
    turn: int
    blocks: tuple[int, ...]
    tokens: int = 0
    tool_name: str | None = None
    target: str | None = None
    exchange: int = 0
    pinned: str | None = None
    response: str | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A later turn uses something that an earlier unit holds.

    turn: of the call. atom: number of what is used. kind: `path`, `identifier`, `number`, `line`, `error` or `call`
    (the same tool call again). weight: see `ctxctl.trace.references`. smallest: the smallest unit that held it then,
    which a miss pays for. first_use: the agent had not repeated it itself before. evidence: the text.
    """

    turn: int
    atom: int
    kind: str
    weight: float
    smallest: int
    first_use: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call of the main thread.

    arrivals: blocks that it reads first. leaving: blocks that the client itself took back before it (a rewind, a
    rollback). unseen: tokens by which the reported prompt grew beyond what arrived, so that sums match the bill.
    references: what its answer uses of earlier units; credits: (unit, times) as a policy may see them, told from the
    past alone. usage: as reported, None where nothing was.
    """

    index: int
    arrivals: tuple[int, ...]
    leaving: tuple[int, ...] = ()
    unseen: int = 0
    output: int = 0
    prompt: int | None = None
    usage: Usage | None = None
    time: float | None = None
    references: tuple[Reference, ...] = ()
    credits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedCut:
    """What the agent itself did to its window before a call. kept: blocks that stay, None: all but those in `cleared`,
    whose content went. summary: blocks that came in for it, which no other policy would have seen. unseen: tokens by
    which the reported prompt then differs from what is known to be in it."""

    turn: int
    kept: frozenset[int] | None
    cleared: tuple[int, ...]
    summary: tuple[int, ...]
    unseen: int = 0

    def stays(self, number: int, kind: str) -> bool:
        """Whether a resident block outlives a compaction. What came in with the summary stands behind it."""
        if self.kept is None or number in self.kept or kind in ("system", "tool_definitions"):
            return True
        return bool(self.summary) and number >= min(self.summary)


CLEARED_TOKENS = 8
"""What stands for a result that an agent cleared: one short sentence in the runtimes that do."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A transcript as a sequence of calls over units; nothing in it depends on a policy.

    blocks: of the main thread. tokens, unit_of: of each. units: in the order of arrival. turns: one per call.
    overhead: tokens that the file does not hold (system prompt, tools). atoms: of each block, those that some reference
    is about; names: of the atoms. counter: what counted. memo: what
    replays of the trace work out once for all of them.
    """

    id: str | None
    path: str
    model: str | None
    blocks: Sequence[Block]
    tokens: Sequence[int]
    unit_of: Sequence[int]
    units: Sequence[Unit]
    turns: Sequence[Turn]
    overhead: int = 0
    atoms: Sequence[Sequence[int]] = ()
    names: Sequence[str] = ()
    recorded: Mapping[int, RecordedCut] = field(default_factory=dict)
    counter: str = ""
    rereads: int = 0
    placebo: float | None = None
    ratio: float = 1.0
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def evictable(self) -> int:
        """Tokens of all units that may leave."""
        return sum(u.tokens for u in self.units if u.pinned is None)

    def until(self, turn: int) -> Trace:
        """The trace as it was known before the answer of a call: later turns cut off."""
        return replace(self, turns=[t for t in self.turns if t.index <= turn])


class Grouper:
    """Sorts blocks into units as they arrive.

    A call and its result are one unit, with the pictures of the result; all thinking of one response is one. Whatever
    else there is stands for itself.
    """

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.unit_of: list[int] = []
        self._calls: dict[str, int] = {}
        self._thinking: dict[str, int] = {}
        self._nameless: list[int] = []

    def add(self, block: Block, tokens: int, enters: int, pinned: str | None = None) -> int:
        """The unit of the next block; it is new, or an earlier one that grows."""
        number = len(self.unit_of)
        home = self._home(block)
        if home is None:
            home = len(self.units)
            self.units.append(
                Unit(
                    home,
                    block.id,
                    block.kind,
                    enters,
                    (number,),
                    tokens,
                    block.tool_name,
                    block.target,
                    block.exchange,
                    pinned,
                    block.response_id,
                    block.kind == "tool_call",
                )
            )
            self._file(block, home)
        else:
            unit = self.units[home]
            answered = block.kind != "tool_call" and unit.kind in ("tool_call", "tool_result")
            self.units[home] = replace(
                unit,
                kind="tool_result" if answered else unit.kind,
                turn=max(unit.turn, enters),
                blocks=(*unit.blocks, number),
                tokens=unit.tokens + tokens,
                pinned=unit.pinned or pinned,
                pending=False if answered else unit.pending,
            )
        self.unit_of.append(home)
        return home

    def _home(self, block: Block) -> int | None:
        if block.kind == "thinking":
            return self._thinking.get(block.response_id) if block.response_id is not None else None
        if block.kind in ("tool_result", "image", "document"):
            if block.call_id is not None:
                return self._calls.get(block.call_id)
            if block.kind == "tool_result":  # the retired function role pairs by order and name
                for at, unit in enumerate(self._nameless):
                    if block.tool_name in (None, self.units[unit].tool_name):
                        return self._nameless.pop(at)
        return None

    def _file(self, block: Block, home: int) -> None:
        if block.kind == "tool_call":
            if block.call_id is not None:
                self._calls[block.call_id] = home
            else:
                self._nameless.append(home)
        elif block.kind == "tool_result" and block.call_id is not None:
            self._calls.setdefault(block.call_id, home)
        elif block.kind == "thinking" and block.response_id is not None:
            self._thinking[block.response_id] = home


def group_blocks(blocks: Sequence[Block], tokens: Sequence[int], enters: Sequence[int]) -> Grouper:
    """All blocks in units."""
    grouper = Grouper()
    for block, size, turn in zip(blocks, tokens, enters, strict=True):
        grouper.add(block, size, turn)
    return grouper
