"""What a live manager knows of every block that ever came in: text, tokens, unit, and what later turns used of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.formats.content import target_of
from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper, Unit
from ctxctl.trace.references import Index

ROLES = {"system": "system", "tool_definitions": "system", "assistant": "assistant", "tool_result": "tool"}


def _target(arguments: str) -> str | None:
    """What a call acts on, as transcripts that are read tell it."""
    try:
        return target_of(orjson.loads(arguments.encode("utf-8", "replace")))
    except orjson.JSONDecodeError:
        return None


class Ledger:
    """Grows with the session. Each block is counted once, when it comes in."""

    def __init__(self, options: EvictionOptions, count: Callable[[str, str], int]) -> None:
        self.blocks: list[Block] = []
        self.tokens: list[int] = []
        self._grouper = Grouper()
        self._pinned = pins_of(options)
        self._count = count
        self._index = Index()
        self._exchange = 0
        self._calls: dict[str, tuple[str, str | None]] = {}

    @property
    def unit_of(self) -> list[int]:
        """Unit of each block."""
        return self._grouper.unit_of

    @property
    def units(self) -> list[Unit]:
        """All units so far."""
        return self._grouper.units

    def add(
        self,
        kind: str,
        text: str,
        turn: int,
        role: str | None = None,
        *,
        tool_name: str | None = None,
        call_id: str | None = None,
        target: str | None = None,
        is_error: bool = False,
        response_id: str | None = None,
        enters: int | None = None,
    ) -> int:
        """File a block; returns its number. turn: the call that wrote it or reads it first."""
        if kind == "user_message" and text.strip():
            self._exchange += 1
        if kind == "tool_call" and call_id is not None:
            self._calls[call_id] = (tool_name or "unknown", target)
        elif kind == "tool_result" and call_id in self._calls:
            name, of = self._calls[call_id or ""]
            tool_name, target = tool_name or name, target or of
        number = len(self.blocks)
        block = Block(
            f"{number + 1}.0",
            kind,
            role or ROLES.get(kind, "user"),
            text,
            turn,
            self._exchange,
            Source(number + 1),
            tool_name,
            call_id,
            response_id,
            is_error,
            target=target,
            message=number,
        )
        tokens = self._count(text, kind)
        self.blocks.append(block)
        self.tokens.append(tokens)
        unit = self._grouper.add(block, tokens, turn if enters is None else enters, self._pinned(block))
        self._index.hold(block, unit, self.units[unit].pinned is not None)
        return number

    def answer(self, text: str, calls: Sequence[tuple[str, str, str]], thinking: str, turn: int) -> list[int]:
        """File what a call wrote, in the order in which it is sent back: reasoning, text, calls."""
        response = f"turn-{turn}"
        numbers = []
        for kind, part in (("thinking", thinking), ("assistant", text)):
            if part:
                numbers.append(self.add(kind, part, turn, "assistant", response_id=response, enters=turn + 1))
        for call_id, name, arguments in calls:
            numbers.append(
                self.add(
                    "tool_call",
                    f"{name} {arguments}",
                    turn,
                    "assistant",
                    tool_name=name,
                    call_id=call_id,
                    target=_target(arguments),
                    response_id=response,
                    enters=turn + 1,
                )
            )
        return numbers

    def credits(self, text: str, calls: Sequence[tuple[str, str, str]]) -> list[tuple[int, int]]:
        """(unit, times): what an answer uses of the units before it."""
        return self._index.credit([text] if text else [], [f"{name} {arguments}" for _, name, arguments in calls])
