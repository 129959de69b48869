"""The pressure curve in characters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ctxctl.reports.document import Point, Series

EIGHTHS = " ▁▂▃▄▅▆▇█"
ASCII_STEPS = "  ..::||#"
MARKS = (("overflow", "X"), ("compaction", "▼"), ("spike", "!"))


@dataclass(frozen=True, slots=True)
class Cell:
    """One character of a plot. level: the pressure level that colours it."""

    text: str
    level: str | None = None


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """A curve in one line of at most `width` characters, each the highest value of its turns."""
    columns = bins(values, width)
    peak = max([*columns, top or 0.0]) or 1.0
    return "".join(EIGHTHS[max(1, min(8, round(v / peak * 8)))] for v in columns)


def bins(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values: the highest of each run, so that no peak is lost."""
    if len(values) <= width:
        return list(values)
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    return [max(values[a:b]) for a, b in itertools.pairwise(edges)]


def plot(series: Series, width: int, height: int = 10, *, unicode: bool = True) -> list[list[Cell]]:
    """Rows of cells: y axis with thresholds, a column per turn (or run of turns), marks, x axis."""
    points = series.points
    if not points:
        return []
    ceiling = max([p.y for p in points] + ([series.top] if series.top else [])) or 1.0
    labels = _labels(series, ceiling, height)
    margin = max(len(text) for text, _ in labels)
    room = max(10, width - margin - 3)
    groups = _groups(points, room)
    rows = []
    steps = EIGHTHS if unicode else ASCII_STEPS
    for row in range(height):
        label, rule = labels[row]
        cells = [Cell(f"{label:>{margin}} {'┤' if unicode else '|'}")]
        bottom = (height - 1 - row) / height * ceiling
        for group in groups:
            peak = max(group, key=lambda p: p.y)
            fill = (peak.y - bottom) / (ceiling / height)
            if fill <= 0.06:
                cells.append(Cell(("┈" if unicode else "-") if rule else " "))
            else:
                cells.append(Cell(steps[max(1, min(8, round(fill * 8)))], peak.level))
        rows.append(cells)
    rows.append(_marks(groups, margin, unicode))
    rows.append([Cell(_axis(points, margin, len(groups)))])
    return rows


def _groups(points: Sequence[Point], room: int) -> list[list[Point]]:
    """Points per column; a short curve gets columns of several characters."""
    if len(points) <= room:
        repeat = min(4, room // len(points)) or 1
        return [[point] for point in points for _ in range(repeat)]
    edges = [round(i * len(points) / room) for i in range(room + 1)]
    return [list(points[a:b]) for a, b in itertools.pairwise(edges)]


def _labels(series: Series, ceiling: float, height: int) -> list[tuple[str, bool]]:
    """Label of each row, and whether a threshold runs through it."""
    labels = [("", False)] * height
    labels[height - 1] = ("0", False)
    labels[0] = (compact(ceiling), False)
    for name, y in series.bands:
        row = height - 1 - min(height - 1, int(y / ceiling * height)) if y <= ceiling else None
        if row is not None and 0 <= row < height:
            labels[row] = (f"{name} {compact(y)}", True)
    return labels


def _marks(groups: list[list[Point]], margin: int, unicode: bool) -> list[Cell]:
    cells = [Cell(" " * (margin + 2))]
    before: list[Point] = []
    for group in groups:
        names = {name for point in group for name in point.marks}
        sign = next((sign for name, sign in MARKS if name in names), " ")
        if group == before:  # the further characters of a wide column
            sign = " "
        before = group
        cells.append(Cell("v" if sign == "▼" and not unicode else sign))
    return cells


def _axis(points: Sequence[Point], margin: int, columns: int) -> str:
    first, last = f"turn {points[0].x}", str(points[-1].x)
    return " " * (margin + 2) + first + last.rjust(max(len(last) + 1, columns - len(first)))


def plural(number: int, what: str) -> str:
    """`1 turn`, `2 turns`, `no turns`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else f"no {what}s"


def compact(number: float) -> str:
    """`1,234` as `1.2k`, `200000` as `200k`, `1000000` as `1M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 0.9995:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
