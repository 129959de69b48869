"""Components of the window: which kind of block belongs to which, and what each may hold (requirements B1 to B3)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Literal

from ctxctl.budgets.options import BudgetOptions
from ctxctl.errors import UsageError
from ctxctl.model.block import KINDS, Block
from ctxctl.registry import closest

Status = Literal["ok", "soft", "hard"]
STATUSES: tuple[Status, ...] = ("ok", "soft", "hard")
"""The mildest first."""
COMPONENTS = (
    "system_prompt",
    "tool_definitions",
    "message_history",
    "tool_results",
    "memory_injection",
    "output_reserved",
)
RESERVE = "output_reserved"
"""Room that is kept free for the answer: it is held against the expected output, and is no part of what is used."""
SKELETON = ("system_prompt", "tool_definitions")
"""What every request carries; too large a one is an error, since nothing can be taken from it while a task runs."""
SHARED = "shared residual"
"""Source of a figure that is one measured for both of these, shared out."""
_OF_KIND = {
    "system": "system_prompt",
    "tool_definitions": "tool_definitions",
    "tool_result": "tool_results",
    "memory_injection": "memory_injection",
}


def component_of(name: str) -> str:
    """The component of that name, or of a kind of block. Raises UsageError with a did-you-mean for any other name."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is no component", hint=f"known: {', '.join(COMPONENTS)}")
    word = name.strip().lower().replace("-", "_")
    if word in COMPONENTS:
        return word
    if word in KINDS:
        return _OF_KIND.get(word, "message_history")
    near = closest(word, [*COMPONENTS, *KINDS])
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(COMPONENTS)}"
    raise UsageError(f"unknown component {name!r}", hint=hint)


def component_of_block(block: Block) -> str:
    """The component of a block; media of a tool's result go with it."""
    if block.kind in ("image", "document") and block.call_id is not None:
        return "tool_results"
    return _OF_KIND.get(block.kind, "message_history")


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens that a component may hold. soft: from which on it is warned (at >=)."""

    hard: int
    soft: int

    def status(self, used: int) -> Status:
        """soft from the soft limit on, hard from the limit on; an empty component is always ok."""
        if not used:
            return "ok"
        return "hard" if used >= self.hard else "soft" if used >= self.soft else "ok"


def limits_of(window: int, options: BudgetOptions) -> dict[str, Limits]:
    """The limits of every component, whole tokens. Shares are taken as they are written in decimal, so that 12 % of
    128,000 is 15,360."""
    soft = Fraction(repr(options.soft_limit_pct))
    found = {}
    for name in COMPONENTS:
        hard = floor(Fraction(repr(getattr(options.allocations, name))) * window)
        found[name] = Limits(hard, ceil(soft * hard))
    return found


@dataclass(frozen=True, slots=True)
class ComponentUse:
    """One component now. used: tokens; of the reserve: the expected output. limit, soft_limit, utilization, status:
    None while the window is unknown; utilization: used / limit, not clamped, None where the limit is 0. source: where
    the figure comes from, see `ctxctl.budgets.measure`."""

    component: str
    used: int | None
    limit: int | None = None
    soft_limit: int | None = None
    utilization: float | None = None
    status: Status | None = None
    source: str | None = None


def use_of(component: str, used: int | None, limits: Limits | None, source: str | None = None) -> ComponentUse:
    """A component against its limits."""
    if limits is None or used is None:
        hard, soft = (limits.hard, limits.soft) if limits is not None else (None, None)
        return ComponentUse(component, used, hard, soft, source=source)
    share = used / limits.hard if limits.hard else None
    return ComponentUse(component, used, limits.hard, limits.soft, share, limits.status(used), source)


def tokens(name: str, value: int, least: int = 0) -> int:
    """A whole number of tokens; ValueError for anything else (a fraction, NaN, a bool) and below the least."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of tokens, {least} or more, not {value!r}")
    return value


def duration(value: float | None) -> float | None:
    """A duration in seconds, or None; ValueError for anything that is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ValueError(f"seconds must be a finite number, 0 or more, not {value!r}")
    return value
