"""The report of what changed since another run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ctxctl.health.compare import Change, Comparison
from ctxctl.reports.build.health import TITLES
from ctxctl.reports.document import Column, Fact, Finding, Report, Table
from ctxctl.reports.plot import plural

NAMES = {
    **TITLES,
    "cost": "cost per session",
    "cost_per_turn": "cost per call",
    "peak": "tokens of the fullest turn",
    "peak_utilization": "utilization of the fullest turn",
    "compaction_frequency": "full compactions per 100 turns",
    "token_drift": "|counted / reported - 1|",
    "turns": "turns per session",
}


def comparison_report(comparison: Comparison) -> Report:
    """What got worse, and then the rest. Figures are means per session."""
    worse = comparison.worse
    text = f"{plural(len(worse), 'thing')} got worse" if worse else "nothing got worse"
    better = sum(change.verdict == "better" for change in comparison.changes)
    facts = (
        Fact("Since then", text + (f", {better:,} better" if better else ""), level="warning" if worse else "green"),
        Fact("Compared", compared_text(comparison)),
    )
    rows: list[tuple[str, ...]] = []
    dimmed: set[int] = set()
    for change in comparison.changes:
        if change.level is None or change.verdict != "same":
            if change.verdict in ("same", "unknown"):
                dimmed.add(len(rows))
            rows.append(_row(change))
    columns = (
        Column("figure, or finding per session"),
        Column("base", "right"),
        Column("now", "right"),
        Column("change", "right"),
        Column("", flexible=True),
    )
    note = "means per session; a change within 5 %, or within the noise between sessions, is none"
    table = Table("Base and now", columns, tuple(rows), note, frozenset(dimmed))
    return Report(
        "health", f"Compared with {_base(comparison)}", facts=facts, tables=(table,), findings=tuple(_worse(comparison))
    )


def compared_text(comparison: Comparison) -> str:
    """How many sessions were compared, and how."""
    base, now = plural(comparison.base_sessions, "session"), f"{comparison.now_sessions:,} now"
    if comparison.how == "distribution":
        return f"the means of {base} of the base and of {now}; they have neither ids nor paths in common"
    common = "id" if comparison.how == "session" else "path"
    return f"{plural(comparison.pairs, 'pair')} with the same {common} (of {base} of the base and {now})"


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """`result.comparison`."""
    base = comparison.base
    return {
        "base": {
            "label": base.label,
            "ref": base.ref,
            "commit": base.commit,
            "time": base.time,
            "sessions": comparison.base_sessions,
        },
        "sessions": comparison.now_sessions,
        "how": comparison.how,
        "pairs": comparison.pairs,
        "worse": list(comparison.worse),
        "changes": [{**asdict(change), "relative": change.relative} for change in comparison.changes],
    }


def _base(comparison: Comparison) -> str:
    base = comparison.base
    details = [base.commit[:10]] if base.commit else []
    details += [base.time] if base.time else []
    return f"{base.label} ({', '.join(details)})" if details else base.label


def _row(change: Change) -> tuple[str, ...]:
    name = NAMES.get(change.name, change.name) if change.level is None else f"{change.name} ({change.level})"
    return name, _value(change, change.base), _value(change, change.now), _changed(change), _verdict(change)


def _verdict(change: Change) -> str:
    if change.verdict == "unknown":
        return "not measured on both sides"
    return "new" if change.new and change.verdict == "worse" else "" if change.verdict == "same" else change.verdict


def _value(change: Change, value: float | None) -> str:
    if value is None:
        return "-"
    if change.unit == "share":
        return f"{value:.1%}"
    if change.unit == "usd":
        return f"${value:,.4f}" if change.name == "cost_per_turn" else f"${value:,.2f}"
    return f"{value:,.0f}" if change.unit == "tokens" or change.name == "turns" else f"{value:,.2f}"


def _changed(change: Change) -> str:
    if not change.change:
        return "=" if change.change == 0 else ""
    if change.unit == "share":
        return f"{100 * change.change:+.1f} pp"
    return f"{change.relative:+.0%}" if change.relative is not None else f"{change.change:+,.2f}"


def _worse(comparison: Comparison) -> Iterator[Finding]:
    for change in comparison.changes:
        if change.verdict == "worse":
            name = NAMES.get(change.name, change.name) if change.level is None else f"{change.level} {change.name}"
            said = f"{name}: {_value(change, change.base)} before, {_value(change, change.now)} now"
            of = f" (means over {change.base_sessions:,} and {plural(change.now_sessions, 'session')})"
            yield Finding("warning", "regression", said + of)
