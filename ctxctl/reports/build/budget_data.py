"""The JSON and the flat rows of `budget`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import fsum
from typing import Any

from ctxctl.budgets.result import Budget

COLUMNS = (
    "path",
    "component",
    "used",
    "limit",
    "soft_limit",
    "utilization",
    "status",
    "source",
)


def budget_data(budget: Budget) -> dict[str, Any]:
    """`result` of one session (the JSON contract's names first).

    `cost.unreferenced` is what calls of the main thread paid for blocks that no later turn used: at each call the money
    of its prompt is shared out token by token, the cached ones at the price of a cache read; counted are tool calls and
    results, media, injected memory and reasoning from the call after their last use on.
    """
    money = budget.money
    return {
        "window": budget.window,
        "components": [asdict(c) for c in budget.components],
        "total_used": budget.total_used,
        "total_utilization": budget.total_utilization,
        "burn_rate": budget.burn_rate,
        "turns_remaining": budget.turns_remaining,
        "minutes_remaining": budget.minutes_remaining,
        "cost": {
            "total": money.total,
            "per_turn": money.per_turn,
            "cache_read_share": money.cache_read_share,
            "unreferenced_share": money.unreferenced_share,
            "cache_write_share": money.cache_write_share,
            "input": money.input,
            "cache_read": money.cache_read,
            "cache_write": money.cache_write,
            "output": money.output,
            "unreferenced": money.unreferenced,
            "recorded": money.recorded,
            "requests": money.requests,
            "growth": None if money.growth is None else asdict(money.growth),
        },
        "forecast": None if budget.forecast is None else asdict(budget.forecast),
        "gates": [asdict(gate) for gate in budget.gates],
        "unexplained": budget.unexplained,
        "seconds_per_turn": budget.seconds_per_turn,
        "memory": dict(budget.memory),
        "session": {
            "path": budget.path,
            "id": budget.session,
            "format": budget.format,
            "model": budget.model,
            **asdict(budget.totals),
        },
        "notes": [asdict(note) for note in budget.notes],
    }


def turn_costs(budget: Budget) -> list[dict[str, Any]]:
    """What each call of the main thread cost."""
    running, rows = 0.0, []
    for call in budget.money.calls:
        running += call.total
        rows.append({**asdict(call), "total": call.total, "cumulative": running})
    return rows


def component_records(budget: Budget) -> Iterator[tuple[Any, ...]]:
    """The rows of the CSV, in the order of COLUMNS: one per component."""
    for use in budget.components:
        yield (budget.path, *(getattr(use, name) for name in COLUMNS[1:]))


def total_data(budgets: Sequence[Budget], cost: float | None, failed: int, skipped: int) -> dict[str, Any]:
    """The sums over several sessions. cost: USD of their calls with a price, each call once; unpriced: sessions that
    have a call without."""
    idle = [b.money.unreferenced for b in budgets if b.money.unreferenced is not None]
    return {
        "files": len(budgets) + failed,
        "failed": failed,
        "skipped": skipped,
        "usage": {
            "total": sum(b.totals.total or 0 for b in budgets),
            "requests": sum(b.totals.requests for b in budgets),
        },
        "cost": {
            "total": cost,
            "unpriced": sum(b.money.total is None and b.totals.turns > 0 for b in budgets),
            "unreferenced": fsum(idle) if idle else None,
        },
        "turns": sum(b.totals.turns for b in budgets),
        "soft": sum(any(c.status == "soft" for c in b.components) for b in budgets),
        "hard": sum(any(c.status == "hard" for c in b.components) for b in budgets),
        "forecast": sum(b.forecast is not None and b.forecast.act is True for b in budgets),
    }
