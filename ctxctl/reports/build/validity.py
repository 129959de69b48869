"""The report and the JSON of `check`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

from ctxctl.reports.document import Column, Fact, Finding, Level, Report, Table
from ctxctl.validity import findings as found
from ctxctl.validity.findings import CODES, Checked, Repair
from ctxctl.validity.repair import Repaired

LEVELS: dict[found.Level, Level] = {"error": "critical", "warning": "warning", "info": "info"}
MOST_SHOWN = 20
"""Findings of one code in the text; the JSON has all."""


def check_data(checked: Checked, repaired: Repaired | None = None) -> dict[str, Any]:
    """`result` of one transcript; with a repair, what was done and what the output still has."""
    data: dict[str, Any] = {
        "valid": checked.valid,
        "format": checked.format,
        "messages": checked.messages,
        "findings": [_finding(f) for f in checked.findings],
        "counts": asdict(checked.counts),
        "repairable": checked.repairable,
    }
    if repaired is not None:
        data["repairs"] = [asdict(r) for r in repaired.repairs]
        data["repaired"] = {
            "valid": repaired.after.valid,
            "findings": [_finding(f) for f in repaired.after.findings],
            "counts": asdict(repaired.after.counts),
        }
    return data


def _finding(finding: found.Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "level": finding.level,
        "line": finding.line,
        "message": finding.message,
        "id": finding.id,
        "number": finding.number,
        "other": finding.other,
        "repairable": finding.fixable,
    }


COLUMNS = ("path", "line", "number", "level", "code", "message", "id")


def check_records(checked: Checked) -> list[tuple[Any, ...]]:
    """One row of COLUMNS per finding."""
    return [(checked.path, f.line, f.number, f.level, f.code, f.message, f.id) for f in checked.findings]


def check_report(checked: Checked, repaired: Repaired | None = None) -> Report:
    """What people read of one transcript."""
    errors = sum(1 for f in checked.findings if f.level == "error")
    warnings = sum(1 for f in checked.findings if f.level == "warning")
    counts = checked.counts
    state = "yes" if checked.valid else "no"
    notes = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    calls = f"{counts.calls} calls, {counts.results} results"
    facts = [
        Fact("valid", state, ", ".join(notes), "green" if checked.valid else "red"),
        Fact("read", f"{counts.records} records, {calls}", f"{checked.messages} messages would be sent"),
    ]
    if counts.pending_calls:
        facts.append(Fact("pending", str(counts.pending_calls), "newest calls that wait for their results"))
    tables: tuple[Table, ...] = ()
    if repaired is not None:
        facts.append(Fact("repaired", str(len(repaired.repairs)), "valid now" if repaired.after.valid else "not valid"))
        if repaired.repairs:
            tables = (_repairs(repaired.repairs),)
    steps = []
    if repaired is None and checked.repairable and checked.path != "-":
        made, given = shlex.quote(repaired_name(checked.path)), shlex.quote(checked.path)
        steps.append(f"ctxctl check --repair -o {made} {given}")
    return Report(
        "check",
        checked.path,
        checked.format,
        tuple(facts),
        tables,
        findings=tuple(_shown(checked)),
        next_steps=tuple(steps),
    )


def _shown(checked: Checked) -> list[Finding]:
    seen: dict[str, int] = {}
    worst: dict[str, Level] = {}
    shown = []
    for f in checked.findings:
        seen[f.code] = seen.get(f.code, 0) + 1
        worst[f.code] = LEVELS[f.level]
        if seen[f.code] <= MOST_SHOWN:
            place = f"message {f.number}: " if f.number is not None else ""
            id_ = f" ({f.id})" if f.id is not None else ""
            shown.append(Finding(LEVELS[f.level], f.code, f"{place}{f.message}{id_}", line=f.line))
    for code, n in seen.items():
        if n > MOST_SHOWN:
            more = f"{n - MOST_SHOWN} more: {CODES.get(code, code)} (--json lists all)"
            shown.append(Finding(worst[code], code, more))
    return shown


def _repairs(repairs: tuple[Repair, ...]) -> Table:
    rows = tuple(
        (
            "" if r.line is None else str(r.line) if r.number is None else f"{r.line}, message {r.number}",
            r.code,
            r.action,
            r.id or "",
        )
        for r in repairs
    )
    columns = (
        Column("line", "right"),
        Column("code"),
        Column("what was done", prose=True),
        Column("id", flexible=True),
    )
    return Table("Repairs", columns, rows)


def repaired_name(path: str) -> str:
    """A name for the repaired copy of a transcript, beside it."""
    from pathlib import Path

    plain = Path(path)
    while plain.suffix in (".gz", ".zst"):
        plain = plain.with_suffix("")
    ending = "".join(plain.suffixes[-2:]) if plain.name.endswith(".traj.json") else plain.suffix
    return str(plain.with_name(f"{plain.name.removesuffix(ending)}.repaired{ending}"))


def repair_lines(repaired: Repaired) -> list[str]:
    """One line per repair, for the log."""
    lines = []
    for r in repaired.repairs:
        where = "" if r.line is None else f":{r.line}"
        number = "" if r.number is None else f" message {r.number}:"
        id_ = "" if r.id is None else f" ({r.id})"
        lines.append(f"repaired: {repaired.before.path}{where}:{number} {r.action}{id_} [{r.code}]")
    return lines
