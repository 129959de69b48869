"""The audit trail for people: its records in a table, and what verifying it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxctl.reports.build.recall import printable
from ctxctl.reports.document import Column, Fact, Finding, Report, Table
from ctxctl.reports.plot import plural
from ctxctl.state.audit_verify import Verified

COLUMNS = ("seq", "time", "type", "turn", "transcript", "data", "prev", "hash")
"""Columns of the CSV; `data` is JSON."""


def audit_report(path: str, records: Sequence[Mapping[str, Any]], found: int) -> Report:
    """Records of a trail, oldest first. found: how many there are, of which these are the newest."""
    rows = tuple(
        (
            str(record["seq"]),
            _cell(record.get("time")),
            _cell(record.get("type")),
            _cell(record.get("turn")),
            ", ".join(_pairs("", record.get("data"))) or "-",
        )
        for record in records
    )
    what = Column("what", flexible=True)
    columns = (Column("seq", "right"), Column("time"), Column("type"), Column("turn", "right"), what)
    note = f"the newest {len(records):,} of {found:,}; --last N shows more" if found > len(records) else ""
    return Report("audit", plural(found, "record"), path, tables=(Table("Audit trail", columns, rows, note),))


def verified_report(path: str, found: Verified) -> Report:
    """What verifying a trail found."""
    facts = [
        Fact("Chain", "intact" if found.intact else "broken", level=None if found.intact else "critical"),
        Fact("Records", f"{found.records:,}"),
        Fact("Head", found.anchor or "-"),
    ]
    findings = [Finding("critical", "broken", said, line=line) for line, said in told(found)]
    more = found.faults - len(found.broken)
    if more:
        findings.append(Finding("critical", "broken", f"and {plural(more, 'more place')} where it does not hold"))
    findings += [Finding("warning", "torn", TORN, line=line) for line in found.torn[:5]]
    return Report("audit", "Audit trail", path, facts=tuple(facts), findings=tuple(findings))


TORN = "half a line, as a writer leaves it that was ended while it wrote; the chain around it is whole"


def told(found: Verified) -> Iterator[tuple[int | None, str]]:
    """Line and words for each broken place."""
    for broken in found.broken:
        subject = "the line" if broken.seq is None else f"record {broken.seq}"
        yield broken.line, broken.why if broken.line is None else f"{subject} {broken.why}"


def verified_data(path: str, found: Verified) -> dict[str, Any]:
    """The `result` of `audit verify`."""
    return {
        "path": path,
        "intact": found.intact,
        "records": found.records,
        "head": None if found.head is None else {"seq": found.head[0], "hash": found.head[1]},
        "anchor": found.anchor,
        "broken": [{"line": b.line, "seq": b.seq, "why": b.why} for b in found.broken],
        "faults": found.faults,
        "torn": list(found.torn),
    }


def csv_rows(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """A row of COLUMNS for each record."""
    from ctxctl.reports.json import dumps

    for record in records:
        values = [record.get(name) for name in COLUMNS]
        yield tuple(dumps(v).decode().rstrip("\n") if isinstance(v, dict | list) else v for v in values)


def _pairs(name: str, value: Any) -> Iterator[str]:
    """A value's members, those of inner objects by their path; what is empty is left out."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _pairs(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value, 1):
            yield from _pairs(f"{name}.{number}", item)
    elif value not in (None, "", []):
        text = " ".join(_cell(item) for item in value) if isinstance(value, list) else _cell(value)
        yield f"{name} {text}" if name else text


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(printable(str(value)).split())
