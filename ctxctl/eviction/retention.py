"""What the three simple strategies share (requirement E12): a limit, a queue, and the loop that goes through it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from ctxctl.eviction.base import Policy, Setting
from ctxctl.eviction.tiers import SYSTEM, Stats, stats_of, tier_of
from ctxctl.model.edits import Drop, Edits, Replace
from ctxctl.model.window import Window

Row = tuple[int, int, int]
"""rank, stamp, unit: the lowest goes first."""
NOTHING = Edits()


@dataclass(frozen=True, slots=True)
class RetentionParameters:
    """reserve: share of the window that stays free; unset: that of the settings."""

    reserve: Annotated[float, Meta(ge=0, lt=1)] | None = None


class Retention(Policy):
    """Whenever a block comes in and before the context is handed out: while the window holds more than the limit, what
    is next in the queue goes.

    The system prompt is not in the queue, nor is anything pinned. What may not leave now is set aside until the next
    call. A unit that is larger than the limit by itself goes before others, which could not make room for it.
    """

    ranks = False
    at_each_add = True
    Parameters: ClassVar[type[Any]] = RetentionParameters
    limit: float = 0.0

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        told = self.parameters.reserve
        self.limit = round(setting.window * (1 - (setting.options.reserve if told is None else told)), 6)
        self._queue: list[Row] = []
        self._aside: list[tuple[list[Row], Row]] = []
        self._bound: list[tuple[list[Row], Row]] = []
        self._large: dict[int, None] = {}
        self._stamps: dict[int, int] = {}
        self._last = 0
        self._exchange = self._turn = 0
        self._complete = False
        self._tiers: dict[int, int] = {}

    def stats(self, window: Window) -> Stats:
        """How full the window is, by the effective limit."""
        return stats_of(window, self.limit, self._tiers)

    def tier(self, window: Window, unit: int) -> int:
        """The tier of a unit."""
        own = self._tiers.get(unit)
        return tier_of(window.units[unit].kind) if own is None else own

    def rank(self, window: Window, unit: int) -> int:
        """The lowest goes first; the oldest of equals."""
        return 0

    def why(self, window: Window, unit: int) -> str:
        """Why a unit goes."""
        return "oldest"

    def follow(self, window: Window) -> None:
        """All that arrived for a call is in; what was set aside may leave by now."""
        self._complete = True
        self._look_again(window)

    def _look_again(self, window: Window) -> None:
        self._turn = window.turn
        _file_again(self._aside)
        if window.exchange != self._exchange:
            self._exchange = window.exchange
            _file_again(self._bound)

    def record(self, window: Window, block: int) -> Replace | None:
        unit = window.unit_of[block]
        if window.units[unit].pinned is None and tier_of(window.units[unit].kind) != SYSTEM:
            self._last += 1
            self._stamps[unit] = self._last
            self._file(window, unit)
        return None

    def _file(self, window: Window, unit: int) -> None:
        """A unit is as old as its newest block; what comes in again is new."""
        self._tiers.pop(unit, None)
        heappush(self._queue, (self.rank(window, unit), self._last, unit))
        if window.resident[unit] > self.limit:
            self._large[unit] = None

    def rule(self, window: Window) -> Edits:
        complete, self._complete = self._complete, False
        over = window.tokens - self.limit
        if over <= 0:
            return NOTHING
        if window.turn != self._turn:  # the call before has answered what it was given
            self._look_again(window)
        drops = window.spare(over)
        over -= sum(drop.tokens for drop in drops)
        changes: list[Replace] = []
        if over > 0:
            over = self._shrink(window, over, complete, changes)
        saved = {change.block: window.entries[change.block].tokens - change.tokens for change in changes}
        while over > 0:
            group, reason = self._large_one(window, complete, saved), self._alone
            if group is None:
                group, reason = self._next(window, complete), ""
            if group is None:
                break
            for unit in group:
                drop = self._drop(window, unit, reason or self.why(window, unit))
                drops.append(drop)
                over -= drop.tokens - sum(saved.pop(block, 0) for block in drop.blocks)
        if over > 0 and complete:
            drops += self.last_resort(window, over)
        return Edits(
            drops, [c for c in changes if c.block in saved], reason=f"above the limit of {self.limit:,.0f} tokens"
        )

    @property
    def _alone(self) -> str:
        return f"larger than the limit of {self.limit:,.0f} tokens by itself"

    def last_resort(self, window: Window, over: float) -> list[Drop]:
        """What goes when nothing else may."""
        return []

    def _shrink(self, window: Window, over: float, complete: bool, changes: list[Replace]) -> float:
        """Make content smaller before anything goes; returns the tokens that are still too many."""
        return over

    def _drop(self, window: Window, unit: int, reason: str) -> Drop:
        self._stamps.pop(unit, None)
        self._tiers.pop(unit, None)
        return Drop(unit, tuple(window.present(unit)), window.resident[unit], reason)

    def _large_one(self, window: Window, complete: bool, saved: dict[int, int]) -> tuple[int, ...] | None:
        """The first unit that can't stay whatever else leaves."""
        found: tuple[int, ...] | None = None
        left: dict[int, None] = {}
        for unit in self._large:
            if unit not in self._stamps or unit not in window.resident:
                continue
            if window.resident[unit] - sum(saved.get(b, 0) for b in window.present(unit)) <= self.limit:
                continue
            group = window.together(unit)
            if found is None and not self._stays(window, group, complete):
                found = group
            else:
                left[unit] = None
        self._large = left
        return found

    def _next(self, window: Window, complete: bool) -> tuple[int, ...] | None:
        """The next unit that may leave, with those that leave with it."""
        found = self._pop(window, self._queue, complete)
        return None if found is None else window.together(found)

    def _pop(self, window: Window, queue: list[Row], complete: bool) -> int | None:
        """The next unit of a queue that need not stay."""
        while queue:
            row = heappop(queue)
            rank, stamp, unit = row
            if self._stamps.get(unit) != stamp or unit not in window.resident:
                continue
            group = window.together(unit)
            if self._stays(window, group, complete):
                self._aside.append((queue, row))
                continue
            highest = max(self.rank(window, u) for u in group)
            if highest > rank:  # a group is worth what the best of it is, while it is bound
                heappush(queue, (highest, stamp, unit))
                self._bound.append((queue, row))
                continue
            return unit
        return None

    def _stays(self, window: Window, group: Iterable[int], complete: bool) -> bool:
        """Whether units may not leave now. Reasoning that comes in waits for the calls that it may be bound to."""
        return any(
            window.held(u)
            or window.anchored(u)
            or (not complete and u in window.thinking and window.entered[u] == window.turn)
            for u in group
        )


def _file_again(rows: list[tuple[list[Row], Row]]) -> None:
    for queue, row in rows:
        heappush(queue, row)
    rows.clear()
