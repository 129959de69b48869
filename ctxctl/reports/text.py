"""The report that people look at, on a terminal or as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from ctxctl.reports.document import Fact, Finding, Report, Series, Table
from ctxctl.reports.plot import plot

COLOURS = {
    "green": "green",
    "yellow": "yellow",
    "orange": "dark_orange",
    "red": "red",
    "critical": "bold red",
    "warning": "yellow",
    "info": "cyan",
}
PLOT_WIDTH = 100
NARROWEST = 10


def render(reports: Sequence[Report], console: Console, *, unicode: bool = True, verbose: bool = False) -> None:
    """Print reports on a console. unicode: False for terminals that can only show ASCII."""
    for number, report in enumerate(reports):
        if number:
            console.print()
        _report(report, console, unicode, verbose)


def _report(report: Report, console: Console, unicode: bool, verbose: bool) -> None:
    console.print(Text(_clean(report.title), style="bold"))
    if report.subtitle:
        console.print(Text(_clean(report.subtitle), style="dim"))
    if report.facts:
        console.print()
        _facts(report.facts, console)
    for series in report.series:
        if series.points:
            _series(series, console, unicode)
    for table in report.tables:
        if table.rows:
            _table(table, console)
    _findings(report.findings, console, verbose)
    if report.next_steps:
        console.print()
        console.print(Text("What to do next", style="bold"))
        for step in report.next_steps:
            _bullet(console, "-", Text(_clean(step)))


def _facts(facts: Sequence[Fact], console: Console) -> None:
    width = max(len(fact.label) for fact in facts)
    for fact in facts:
        value = Text(_clean(fact.value), style=COLOURS.get(fact.level or "", ""))
        if fact.note:
            value.append(f"  {_clean(fact.note)}", style="dim")
        _bullet(console, f"{fact.label:<{width}}", value)


def _bullet(console: Console, head: str, text: Text) -> None:
    """A head and a text beside it that wraps under itself."""
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"  {head}"), text)
    console.print(grid)


def _series(series: Series, console: Console, unicode: bool) -> None:
    console.print()
    console.print(Text(_clean(series.title), style="bold"))
    for cells in plot(series, min(PLOT_WIDTH, console.width - 2), unicode=unicode):
        line = Text("  ")
        for cell in cells:
            line.append(cell.text, style=COLOURS.get(cell.level or "", ""))
        line.rstrip()
        console.print(line, no_wrap=True, overflow="crop")


def _table(table: Table, console: Console) -> None:
    console.print()
    console.print(Text(_clean(table.title), style="bold"))
    grid = RichTable(box=None, padding=(0, 1), pad_edge=False, header_style="dim", show_edge=False)
    grid.add_column("  ", width=1)
    widths = [max(len(c.title), *(cell_len(row[i]) for row in table.rows)) for i, c in enumerate(table.columns)]
    # what does not fit is taken from the flexible columns: the last of them gives first
    excess = sum(widths) + 2 * len(widths) + 1 - console.width
    for i in reversed([i for i, column in enumerate(table.columns) if column.flexible]):
        given = min(max(0, excess), max(0, widths[i] - NARROWEST))
        widths[i] -= given
        excess -= given
    for column, width in zip(table.columns, widths, strict=True):
        grid.add_column(escape(column.title), justify=column.align, no_wrap=True, overflow="ellipsis", width=width)
    for row in table.rows:
        grid.add_row("", *(Text(_middle(_clean(cell), width)) for cell, width in zip(row, widths, strict=True)))
    console.print(grid)
    if table.note:
        console.print(Text(f"  {_clean(table.note)}", style="dim"))


def _middle(text: str, width: int) -> str:
    """A text that is too long loses its middle: commands tell by their start, paths by their end."""
    if cell_len(text) <= width or width < NARROWEST:
        return text
    head = (width - 1) // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _findings(findings: Sequence[Finding], console: Console, verbose: bool) -> None:
    shown = [f for f in findings if verbose or f.level != "info"]
    if not shown:
        return
    console.print()
    console.print(Text("Findings", style="bold"))
    for finding in shown:
        where = f"line {finding.line}: " if finding.line is not None else ""
        text = Text(f"{where}{_clean(finding.message)}")
        text.append(f" [{finding.code}]", style="dim")
        if finding.hint:
            text.append(f"\n{_clean(finding.hint)}", style="dim")
        _bullet(console, {"info": "i", "warning": "!", "critical": "!!"}[finding.level], text)


def _clean(text: str) -> str:
    """Transcript text on a terminal: no control characters, no lone surrogates."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)
