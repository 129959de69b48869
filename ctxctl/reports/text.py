"""The report that people look at, on a terminal or as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from ctxctl.model.text import clean
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
ASCII = str.maketrans({"·": "-", "█": "#", "▼": "v", "…": "~", "→": ">", "±": "~", "×": "x"})
"""What stands for the signs of a report where only ASCII can be shown."""


def render(reports: Sequence[Report], console: Console, *, unicode: bool = True, verbose: bool = False) -> None:
    """Print reports on a console. unicode: False for terminals that can only show ASCII."""
    renderer = _Renderer(console, unicode, verbose)
    for number, report in enumerate(reports):
        if number:
            console.print()
        renderer.report(report)


class _Renderer:
    """Prints the parts of a report; every text of a transcript passes `clean` on its way out."""

    def __init__(self, console: Console, unicode: bool, verbose: bool) -> None:
        self.console = console
        self.unicode = unicode
        self.verbose = verbose

    def clean(self, text: str) -> str:
        """No control characters, no lone surrogates, and nothing that the terminal can't show."""
        text = clean(text)
        text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
        if self.unicode:
            return text
        return text.translate(ASCII).encode("ascii", "replace").decode()

    def report(self, report: Report) -> None:
        self.console.print(Text(self.clean(report.title), style="bold"))
        if report.subtitle:
            self.console.print(Text(self.clean(report.subtitle), style="dim"))
        if report.facts:
            self.console.print()
            self.facts(report.facts)
        for series in report.series:
            if series.points:
                self.series(series)
        for table in report.tables:
            if table.rows:
                self.table(table)
        if report.meaning:
            self.heading("What this means")
            for line in report.meaning:
                self.bullet("-", Text(self.clean(line)))
        self.findings(report.findings)
        if report.next_steps:
            self.heading("What to do next")
            for step in report.next_steps:
                self.bullet("-", Text(self.clean(step)))

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.print(Text(self.clean(text), style="bold"))

    def facts(self, facts: Sequence[Fact]) -> None:
        width = max(len(fact.label) for fact in facts)
        for fact in facts:
            value = Text(self.clean(fact.value), style=COLOURS.get(fact.level or "", ""))
            if fact.note:
                value.append(f"  {self.clean(fact.note)}", style="dim")
            self.bullet(f"{fact.label:<{width}}", value)

    def bullet(self, head: str, text: Text) -> None:
        """A head and a text beside it that wraps under itself."""
        grid = RichTable.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(f"  {head}"), text)
        self.console.print(grid)

    def series(self, series: Series) -> None:
        self.heading(series.title)
        for cells in plot(series, min(PLOT_WIDTH, self.console.width - 2), unicode=self.unicode):
            line = Text("  ")
            for cell in cells:
                line.append(cell.text, style=COLOURS.get(cell.level or "", ""))
            line.rstrip()
            self.console.print(line, no_wrap=True, overflow="crop")

    def table(self, table: Table) -> None:
        self.heading(table.title)
        rows = [[self.clean(cell).replace("\n", " ") for cell in row] for row in table.rows]
        grid = RichTable(box=None, padding=(0, 1), pad_edge=False, header_style="dim", show_edge=False)
        grid.add_column("  ", width=1)
        widths = [max(len(c.title), *(cell_len(row[i]) for row in rows)) for i, c in enumerate(table.columns)]
        # what does not fit is taken from the flexible columns: the last of them gives first
        excess = sum(widths) + 2 * len(widths) + 1 - self.console.width
        for i in reversed([i for i, column in enumerate(table.columns) if column.flexible]):
            given = min(max(0, excess), max(0, widths[i] - NARROWEST))
            widths[i] -= given
            excess -= given
        # then whole columns go, from the right: half a number says something else
        shown = list(range(len(widths)))
        while excess > 0 and len(shown) > 2:
            last = next(i for i in reversed(shown) if not table.columns[i].flexible or len(shown) == 3)
            shown.remove(last)
            excess -= widths[last] + 2
        for i in shown:
            column = table.columns[i]
            fold = column.prose
            grid.add_column(
                escape(column.title),
                justify=column.align,
                no_wrap=not fold,
                overflow="fold" if fold else "crop",
                width=widths[i],
            )
        for number, row in enumerate(rows):
            style = "dim" if number in table.dimmed else ""
            cells = (row[i] if table.columns[i].prose else self.middle(row[i], widths[i]) for i in shown)
            grid.add_row("", *(Text(cell, style=style) for cell in cells))
        self.console.print(grid)
        if table.note:
            self.console.print(Text(f"  {self.clean(table.note)}", style="dim"))

    def middle(self, text: str, width: int) -> str:
        """A text that is too long loses its middle: commands tell by their start, paths by their end."""
        if cell_len(text) <= width or width < NARROWEST:
            return text
        head = (width - 1) // 3
        return f"{text[:head]}{'…' if self.unicode else '~'}{text[len(text) - (width - 1 - head) :]}"

    def findings(self, findings: Sequence[Finding]) -> None:
        shown = [f for f in findings if self.verbose or f.level != "info"]
        if not shown:
            return
        self.heading("Findings")
        for finding in shown:
            where = f"line {finding.line}: " if finding.line is not None else ""
            text = Text(f"{where}{self.clean(finding.message)}")
            text.append(f" [{finding.code}]", style="dim")
            if finding.hint:
                text.append(f"\n{self.clean(finding.hint)}", style="dim")
            self.bullet({"info": "i", "warning": "!", "critical": "!!"}[finding.level], text)
