"""What `budget` says of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxctl.budgets.components import ComponentUse
from ctxctl.budgets.forecast import PlanForecast
from ctxctl.budgets.money import Money
from ctxctl.model.finding import Gate


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the reader of the figures must know. code: for machines."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a session did as a whole. peak: tokens of the fullest turn; total: tokens of all calls, prompts and
    answers; requests: calls of every thread, turns: of the main one; compactions: full ones."""

    turns: int = 0
    requests: int = 0
    peak: int | None = None
    total: int | None = None
    compactions: int = 0
    overflow_turns: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """One session.

    window: tokens of the model's window, None while unknown; components: of the window now, the reserve with the
    expected output; total_used: tokens of the window now, unexplained: those of them that belong to no component that
    the file tells of (below 0: blocks that hold more than was reported). burn_rate: tokens per turn,
    seconds_per_turn: of turns that did not wait for the user. memory: tokens of memory_injection by where they stand
    (`injected`, `reminders`, `instructions`, `tool`). forecast: of the plan, None without one.
    """

    path: str
    session: str | None
    format: str
    model: str | None
    window: int | None
    components: tuple[ComponentUse, ...]
    total_used: int | None
    total_utilization: float | None
    unexplained: int | None
    burn_rate: float | None
    seconds_per_turn: float | None
    turns_remaining: int | None
    minutes_remaining: float | None
    money: Money
    forecast: PlanForecast | None
    totals: Totals = field(default_factory=Totals)
    memory: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    gates: tuple[Gate, ...] = ()

    def component(self, name: str) -> ComponentUse:
        """One of its components."""
        return next(c for c in self.components if c.component == name)
