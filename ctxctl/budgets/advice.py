"""What is wrong with a budget, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from ctxctl.budgets.components import SHARED, SKELETON
from ctxctl.budgets.forecast import FORECAST
from ctxctl.budgets.result import Budget
from ctxctl.model.finding import Finding

SOFT, HARD = "budget_soft", "budget_hard"
CODES = (SOFT, HARD, FORECAST)
"""Codes of the findings of `budget`."""
IDLE = 0.2
"""Share of the money for what was never used again from which on it is worth a word."""
IDLE_USD = 0.05
"""And what it must come to."""


BOTH = "system_prompt with tool_definitions"


@dataclass(frozen=True, slots=True)
class _Full:
    """A component, or two that are known only together, against its limits."""

    name: str
    used: int
    limit: int
    soft: int | None
    status: str | None

    def with_(self, other: _Full) -> _Full:
        """Both as one; they are equally full."""
        worst = max(self.status or "ok", other.status or "ok", key=("ok", "soft", "hard").index)
        soft = (self.soft or 0) + (other.soft or 0)
        return _Full(BOTH, self.used + other.used, self.limit + other.limit, soft, worst)


def findings_of(budget: Budget) -> tuple[Finding, ...]:
    """Components at their limits (B2: soft is a warning, hard critical), and a plan that does not fit."""
    return tuple(_findings(budget))


def _findings(budget: Budget) -> Iterator[Finding]:
    full = [
        _Full(u.component, u.used, u.limit, u.soft_limit, u.status) for u in budget.components if u.used and u.limit
    ]
    if all(budget.component(name).source == SHARED for name in SKELETON):
        pair, full = full[:2], full[2:]  # one figure, shared out: it is one thing to look at
        if len(pair) == 2:
            full.insert(0, pair[0].with_(pair[1]))
    full.sort(key=lambda f: f.limit - f.used)  # stable; what is over by most comes first
    for found in full:
        if found.status not in ("soft", "hard"):
            continue
        hard = found.status == "hard"
        over = f"{found.used - found.limit:,} tokens over" if found.used > found.limit else "at"
        said = f"{over} its limit of {found.limit:,}" if hard else f"past its soft limit of {found.soft:,}"
        message = f"{found.name} holds {found.used:,} tokens, {said}"
        hint = hint_of(found.name, hard, budget.path)
        yield Finding(HARD if hard else SOFT, "critical" if hard else "warning", message, hint)
    plan = budget.forecast
    if plan is not None and plan.act:
        message = (
            f"{plan.turns_remaining:,} turns remain, and the {plan.remaining_steps:,} open steps of the plan need "
            f"about {plan.turns_needed:,}"
        )
        hint = f"save the state with `ctxctl checkpoint {quoted(budget.path)}`, or compact before the next step"
        yield Finding(FORECAST, "warning", message, hint)


def hint_of(component: str, hard: bool, path: str) -> str:
    """What takes tokens out of a component, with the command where there is one. hard: at its hard limit."""
    where = quoted(path)
    if component == "tool_results":
        return f"condense old results: `ctxctl compact -s tool-results --dry-run {where}`"
    if component == "message_history":
        strategy = "conversation" if hard else "progressive"
        return f"summarize what is old: `ctxctl compact -s {strategy} --dry-run {where}`"
    if component == "memory_injection":
        return f"let injected text age out: `ctxctl simulate --policy type-ttl {where}` shows what that saves"
    if component == "tool_definitions":
        return "turn off tools and MCP servers that this task does not need"
    if component == BOTH:
        return "turn off tools and MCP servers that this task does not need, and shorten the instructions"
    if component == "system_prompt":
        return "move rarely used text into files that are read when they are needed"
    return "ask for shorter answers, or raise budget.allocations.output_reserved"


def next_steps(budget: Budget) -> tuple[str, ...]:
    """What to do next, the most pressing first; nothing when all is well."""
    return tuple(_steps(budget))


def _steps(budget: Budget) -> Iterator[str]:
    found = findings_of(budget)
    for code in (FORECAST, HARD, SOFT):
        for finding in found:
            if finding.code == code:
                yield finding.hint[0].upper() + finding.hint[1:] + "."
    share, spent = budget.money.unreferenced_share, budget.money.unreferenced
    if share is not None and spent is not None and share >= IDLE and spent >= IDLE_USD:
        yield (
            f"{share:.0%} of the money went to blocks that were never used again: "
            f"`ctxctl simulate {quoted(budget.path)}` shows which policy saves most of it."
        )
    if budget.window is None:
        yield "Say how large the window is with --window 200k (or max_context_tokens in .ctxctl.yaml)."


def quoted(path: str) -> str:
    """A path as a shell takes it; FILE for standard input."""
    return shlex.quote(path) if path and path != "-" else "FILE"
