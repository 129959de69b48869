"""The report of `guard scan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxctl.reports.document import Column, Fact, Finding, Level, Report, Table
from ctxctl.reports.plot import plural

LEVELS: dict[str, Level] = {"low": "info", "medium": "warning", "high": "critical"}
SHOWN = 100
LONGEST = 100


def guard_report(title: str, result: Mapping[str, Any], limits: str) -> Report:
    """What was found in one input, by place, worst first in the counts; what the guard can't see as its last line."""
    findings: Sequence[Mapping[str, Any]] = result["findings"]
    severities = result["counts"]["by_severity"]
    found = ", ".join(f"{n} {s}" for s, n in reversed(severities.items()) if n)
    facts = [Fact("Looked at", result["looked_at"]), Fact("Findings", found or "none")]
    taken = [f"{n} {name.replace('_', ' ')}" for name, n in result["redactions"].items() if n]
    if taken:
        facts.append(Fact("Also there", ", ".join(taken), "`ctxctl guard clean` takes them out"))
    rows = tuple(
        (f["severity"], f["kind"], str(f["line"]), *((f["block"],) if "block" in f else ()), _short(f["text"]))
        for f in findings[:SHOWN]
    )
    columns = [Column("severity"), Column("kind"), Column("line", "right")]
    if findings and "block" in findings[0]:
        columns.append(Column("block"))
    table = Table(
        plural(len(findings), "finding"),
        (*columns, Column("text", flexible=True)),
        rows,
        f"{len(findings) - SHOWN:,} more; all with --json" if len(findings) > SHOWN else "",
    )
    worst = [f for f in findings if f["severity"] != "low"]
    notes = (
        (Finding("info", "only_reported", "what a person wrote is reported and never rewritten"),)
        if any(f.get("block_kind", "tool_result") != "tool_result" for f in worst)
        else ()
    )
    return Report(
        "guard", title, facts=tuple(facts), tables=(table,) if rows else (), findings=notes, meaning=(limits,)
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"
