"""Markdown: for pull requests, job summaries and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.model.text import clean
from ctxctl.reports.document import Report, Table
from ctxctl.reports.plot import sparkline


def render(reports: Sequence[Report]) -> str:
    """All reports, one after the other."""
    return "\n".join(line for report in reports for line in _report(report)) + "\n"


def _report(report: Report) -> Iterator[str]:
    yield f"# {_text(report.title)}"
    yield ""
    if report.subtitle:
        yield _text(report.subtitle)
        yield ""
    for fact in report.facts:
        note = f" ({_text(fact.note)})" if fact.note else ""
        yield f"- **{_text(fact.label)}**: {_text(fact.value)}{note}"
    if report.facts:
        yield ""
    for series in report.series:
        if series.points:
            yield f"**{_text(series.title)}**: `{sparkline([p.y for p in series.points], 60, series.top)}`"
            yield ""
    for item in report.tables:
        if item.rows:
            yield from table(item)
    if report.meaning:
        yield "## What this means"
        yield ""
        yield from (f"- {_text(line)}" for line in report.meaning)
        yield ""
    if report.findings:
        yield "## Findings"
        yield ""
        for finding in report.findings:
            where = f" (line {finding.line})" if finding.line is not None else ""
            hint = f" — {_text(finding.hint)}" if finding.hint else ""
            yield f"- {finding.level} `{finding.code}`{where}: {_text(finding.message)}{hint}"
        yield ""
    if report.next_steps:
        yield "## What to do next"
        yield ""
        yield from (f"- {_text(step)}" for step in report.next_steps)
        yield ""


def table(of: Table) -> Iterator[str]:
    """The lines of one table under its title."""
    yield f"## {_text(of.title)}"
    yield ""
    yield "| " + " | ".join(_text(c.title) for c in of.columns) + " |"
    yield "|" + "|".join("---:" if c.align == "right" else "---" for c in of.columns) + "|"
    for row in of.rows:
        yield "| " + " | ".join(_text(cell) for cell in row) + " |"
    yield ""
    if of.note:
        yield _text(of.note)
        yield ""


def _text(text: str) -> str:
    """Text from a transcript must not become markup."""
    words = " ".join(clean(text).split())
    for mark in "\\`|<>[]*_":
        words = words.replace(mark, f"\\{mark}")
    return words
