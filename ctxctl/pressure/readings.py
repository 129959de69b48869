"""The readings of a session in columns: 40 bytes a turn instead of 200. Sessions of a gigabyte have 100,000 turns."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import overload

from ctxctl.pressure.monitor import Reading

NONE = -2
"""Stands for None in columns whose numbers are -1 or more."""


class Readings(Sequence[Reading]):
    """An immutable sequence of readings; each is made anew when it is asked for."""

    def __init__(self, readings: Iterable[Reading] = ()) -> None:
        self._turn, self._tokens, self._added = array("i"), array("q"), array("q")
        self._velocity, self._utilization = array("d"), array("d")
        self._overflow = array("q")
        self._words = bytearray()
        self._known: dict[tuple[str, str | None, str | None, int | None], int] = {}
        for reading in readings:
            self._append(reading)
        self._rows = list(self._known)

    def _append(self, reading: Reading) -> None:
        self._turn.append(reading.turn)
        self._tokens.append(reading.tokens)
        self._added.append(NONE if reading.added is None else reading.added)
        self._velocity.append(reading.velocity)
        self._utilization.append(NONE if reading.utilization is None else reading.utilization)
        self._overflow.append(NONE if reading.turns_until_overflow is None else reading.turns_until_overflow)
        # source, level, compaction and window take few values: one byte names the combination
        words = (reading.source, reading.level, reading.compaction, reading._window)
        self._words.append(self._known.setdefault(words, len(self._known)))

    @property
    def tokens(self) -> Sequence[int]:
        """Tokens in the window, by position."""
        return self._tokens

    def at(self, turn: int | None) -> Reading | None:
        """The reading of a turn, None where there is none."""
        position = self.index_of(turn)
        return None if position is None else self[position]

    def index_of(self, turn: int | None) -> int | None:
        """The position of a turn's reading, None where there is none."""
        position = bisect_left(self._turn, turn) if turn is not None else len(self)
        return position if position < len(self) and self._turn[position] == turn else None

    def __len__(self) -> int:
        return len(self._turn)

    @overload
    def __getitem__(self, index: int) -> Reading: ...
    @overload
    def __getitem__(self, index: slice) -> list[Reading]: ...
    def __getitem__(self, index: int | slice) -> Reading | list[Reading]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        source, level, compaction, window = self._rows[self._words[index]]
        utilization, overflow, added = self._utilization[index], self._overflow[index], self._added[index]
        return Reading(
            self._turn[index],
            self._tokens[index],
            source,
            None if utilization == NONE else utilization,
            level,
            self._velocity[index],
            None if overflow == NONE else overflow,
            None if added == NONE else added,
            compaction,
            window,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
