"""A report: what a result says, before it has a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxctl.errors import CtxctlError
from ctxctl.model import finding as model

Level = Literal["info", "warning", "critical"]
Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the headline. level: a pressure level or finding level that colours the value."""

    label: str
    value: str
    note: str = ""
    level: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. flexible: may be cut short when the terminal is narrow, or wrapped where it is prose."""

    title: str
    align: Align = "left"
    flexible: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text. note: a line below. dimmed: numbers of rows that matter less."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    dimmed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Point:
    """One turn of a series. mark: what happened there (`compaction`, `spike`, `overflow`)."""

    x: int
    y: float
    level: str | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """A curve. bands: (name, y) of the thresholds; top: y of the window, None when unknown."""

    title: str
    points: tuple[Point, ...]
    bands: tuple[tuple[str, float], ...] = ()
    top: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at, and what to do about it."""

    level: Level
    code: str
    message: str
    hint: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that people read of a result; machines get its data. meaning: what it says in plain words."""

    kind: str
    title: str
    subtitle: str = ""
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    series: tuple[Series, ...] = ()
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    meaning: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """One file and what was found in it, for the forms that CI systems read. path: as it was given; title: for people.
    findings: alerts and those of detectors. gates: that it was held against. error: why it could not be read; then
    there is nothing else."""

    path: str
    title: str
    findings: tuple[model.Finding, ...] = ()
    gates: tuple[model.Gate, ...] = ()
    error: CtxctlError | None = None
