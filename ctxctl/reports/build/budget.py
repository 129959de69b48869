"""The report of `budget`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from ctxctl.budgets.advice import findings_of, next_steps
from ctxctl.budgets.components import RESERVE, SHARED, STATUSES, ComponentUse
from ctxctl.budgets.gates import usd
from ctxctl.budgets.result import Budget
from ctxctl.model.finding import Gate
from ctxctl.reports.build.paths import shared_folder
from ctxctl.reports.document import Column, Fact, Finding, Report, Table
from ctxctl.reports.plot import compact, plural

BAR = 20


def budget_report(budget: Budget, prices_of: str | None) -> Report:
    """Everything that people see of one budget. prices_of: date of the price table."""
    about = [budget.format, budget.model or "no model named", plural(budget.totals.turns, "turn")]
    return Report(
        "budget",
        f"Budget of {budget.path if budget.path != '-' else 'standard input'}",
        " · ".join(about),
        tuple(_facts(budget, prices_of)),
        (_components(budget), *_money(budget)),
        findings=tuple(_findings(budget)),
        next_steps=next_steps(budget),
    )


def _facts(budget: Budget, prices_of: str | None) -> Iterator[Fact]:
    used, window = budget.total_used, budget.window
    if used is not None:
        of = f" of {window:,} ({used / window:.0%})" if window else ""
        yield Fact("Window now", f"{used:,} tokens{of}", "" if window else "window unknown; --window sets it")
    if budget.burn_rate is not None:
        pace = f"{budget.seconds_per_turn:,.0f} s per turn" if budget.seconds_per_turn is not None else ""
        yield Fact("Burn rate", f"{budget.burn_rate:,.0f} tokens per turn", pace)
    if budget.turns_remaining is not None:
        yield Fact("Lasts", *_lasts(budget))
    plan = budget.forecast
    if plan is not None:
        done = f"{plan.done_steps or 0:,} of {plan.remaining_steps + (plan.done_steps or 0):,} steps done"
        if not plan.remaining_steps:
            yield Fact("Plan", done)
        else:
            said = f"{done}; the rest needs about {plural(plan.turns_needed, 'turn')}"
            level = "red" if plan.act else "green" if plan.act is False else None
            fits = {True: "it does not fit", False: "it fits", None: "whether it fits is unknown"}[plan.act]
            yield Fact("Plan", said, fits, level)
    money = budget.money
    if money.total is not None:
        each = f"{usd(money.per_turn)} per call" if money.per_turn is not None else ""
        yield Fact(
            "Cost", f"{usd(money.total)} in {plural(money.requests, 'call')}", f"{each}, list prices of {prices_of}"
        )
    elif money.recorded is not None:
        yield Fact("Cost", f"{usd(money.recorded)} as recorded", "no list price known")
    else:
        yield Fact("Cost", "unknown", "no usage reported" if not money.requests else "a call has no known price")
    if (growth := money.growth) is not None:
        first = f"{usd(growth.first_mean)} a call at first, {usd(growth.last_mean)} at last"
        yield Fact("Growth", first, _exponent(growth.exponent))
    if money.unreferenced is not None and money.unreferenced_share is not None and money.unreferenced > 0:
        yield Fact(
            "Unused",
            f"{usd(money.unreferenced)} ({money.unreferenced_share:.0%})",
            "for blocks that were never used again",
        )


def _lasts(budget: Budget) -> tuple[str, str]:
    turns, minutes = budget.turns_remaining or 0, budget.minutes_remaining
    if not turns:
        return "the room is used up", ""
    time = ""
    if minutes is not None:
        time = f"about {minutes:,.0f} minutes" if minutes < 120 else f"about {minutes / 60:,.0f} hours"
        time = "less than a minute" if minutes < 1 else time
    room = "with room kept for the answer"
    return f"about {plural(turns, 'turn')}", f"{time} of work, {room}" if time else room


def _exponent(exponent: float | None) -> str:
    return f"summed up ~ turns^{exponent:.2f} (1 linear, 2 quadratic)" if exponent is not None else ""


def _components(budget: Budget) -> Table:
    rows = [_row(use) for use in budget.components]
    if budget.unexplained:
        rows.append(("unexplained", f"{budget.unexplained:,}", "", "", "", ""))
    sources = {use.source for use in budget.components}
    note = f"{RESERVE}: what answers took of the room kept for them"
    if any(s is not None and s.endswith(SHARED) for s in sources):
        note = "~ not in the file: both are measured as one figure, shared out here"
    return Table(
        "Components",
        (
            Column("component"),
            Column("used", "right"),
            Column("limit", "right"),
            Column("full", "right"),
            Column(""),
            Column("status"),
        ),
        tuple(rows),
        note,
        frozenset(n for n, use in enumerate(budget.components) if not use.used),
    )


def _row(use: ComponentUse) -> tuple[str, ...]:
    used = "-" if use.used is None else f"{use.used:,}"
    if use.source is not None and use.source.endswith(SHARED):
        used = f"~{used}"
    limit = f"{use.limit:,}" if use.limit is not None else "-"
    if use.utilization is None:
        return use.component, used, limit, "-", "", use.status or ""
    filled = min(BAR, round(use.utilization * BAR))
    status = {"ok": "", "soft": "soft limit", "hard": "HARD LIMIT"}[use.status or "ok"]
    bar = "█" * filled + "·" * (BAR - filled)
    return use.component, used, limit, f"{use.utilization:.0%}", bar, status


def _money(budget: Budget) -> Iterator[Table]:
    money = budget.money
    if not money.total:
        return
    parts = (
        ("read anew", money.input),
        ("cache reads", money.cache_read),
        ("cache writes", money.cache_write),
        ("answers", money.output),
    )
    shown = [(name, usd(part), part / money.total) for name, part in parts if part]
    yield Table(
        "Where the money went",
        (Column("for"), Column("cost", "right"), Column("share", "right"), Column("")),
        tuple((name, cost, f"{share:.0%}", "█" * round(share * BAR)) for name, cost, share in shown),
    )


def _findings(budget: Budget) -> Iterator[Finding]:
    for gate in budget.gates:
        if not gate.ok:
            yield Finding("critical", "gate", f"failed: {gate.text}")
    for finding in findings_of(budget):
        yield Finding(finding.level, finding.code, finding.message)
    for note in budget.notes:
        level = "info" if note.code in ("shared_residual", "window_unknown") else "warning"
        yield Finding("info" if level == "info" else "warning", note.code, note.message, note.hint)


def overview_report(budgets: Sequence[Budget], failed: int, cost: float | None, gates: Sequence[Gate] = ()) -> Report:
    """One line per session, the fullest first. cost: USD of all, each call once; gates: over all of them."""
    folder = shared_folder([b.path for b in budgets])
    ranked = sorted(budgets, key=lambda b: (-(b.total_utilization or 0.0), b.path))
    unpriced = sum(b.money.total is None for b in budgets)
    idle = [b.money.unreferenced for b in budgets if b.money.unreferenced is not None]
    facts = [Fact("Sessions", f"{len(budgets):,}" + (f", {failed:,} could not be read" if failed else ""))]
    over = sum(any(c.status == "hard" for c in b.components) for b in budgets)
    facts.append(Fact("At a hard limit", plural(over, "session"), level="red" if over else "green"))
    if cost is not None:
        facts.append(Fact("Cost", usd(cost), f"{unpriced:,} without a known price" if unpriced else ""))
    if idle and fsum(idle) > 0:
        facts.append(Fact("Unused", usd(fsum(idle)), "for blocks that were never used again"))
    return Report(
        "budget",
        "All sessions",
        f"in {folder}" if folder else "",
        tuple(facts),
        (
            Table(
                "Budgets",
                (
                    Column("session", flexible=True),
                    Column("used", "right"),
                    Column("full", "right"),
                    Column("turns left", "right"),
                    Column("cost", "right"),
                    Column("at its limit", flexible=True),
                ),
                tuple(_line(b, folder) for b in ranked),
            ),
        ),
        findings=(
            *(Finding("critical", "gate", f"failed: {gate.text}") for gate in gates if not gate.ok),
            *(
                Finding("critical", "gate", f"{b.path}: failed: {gate.text}")
                for b in budgets
                for gate in b.gates
                if not gate.ok
            ),
        ),
    )


def _line(budget: Budget, folder: str) -> tuple[str, ...]:
    worst = [c for c in budget.components if c.status in ("soft", "hard")]
    worst.sort(key=lambda c: (-STATUSES.index(c.status or "ok"), -(c.utilization or 0.0)))
    return (
        budget.path[len(folder) :].lstrip("/") if folder else budget.path,
        compact(budget.total_used) if budget.total_used is not None else "-",
        f"{budget.total_utilization:.0%}" if budget.total_utilization is not None else "-",
        f"{budget.turns_remaining:,}" if budget.turns_remaining is not None else "-",
        usd(budget.money.total) if budget.money.total is not None else "-",
        ", ".join(f"{c.component} {c.utilization:.0%}" for c in worst if c.utilization is not None),
    )
