"""The report for people: it fits the terminal, survives ASCII, and lets no transcript write escape codes."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ctxctl import AnalysisOptions, analyze, load_models
from ctxctl.budgets.cost import session_cost
from ctxctl.model.limits import ModelTable
from ctxctl.pressure.options import PressureThresholds
from ctxctl.reports.build.analysis import analysis_report
from ctxctl.reports.build.overview import overview_report
from ctxctl.reports.build.total import total_of
from ctxctl.reports.document import Column, Fact, Finding, Point, Report, Series, Table
from ctxctl.reports.text import render

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(p for p in (ROOT / "sample_transcripts").glob("*.*") if p.suffix != ".md")
GOLDEN = sorted((ROOT / "tests/formats/golden").glob("*/*.jsonl"))
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def table() -> ModelTable:
    return load_models()


def report_of(path: Path, table: ModelTable, window: int | None = None) -> Report:
    analysis = analyze(str(path), table, AnalysisOptions(window=window))
    cost = session_cost(analysis.transcript.usage, table, analysis.transcript.model)
    return analysis_report(analysis, PressureThresholds(), cost, table.date)


def printed(
    reports: list[Report], width: int = 80, *, terminal: bool = True, unicode: bool = True, verbose: bool = True
) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=terminal,
        no_color=not terminal,
        color_system="256" if terminal else None,
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    render(reports, console, unicode=unicode, verbose=verbose)
    return out.getvalue()


def widths(text: str) -> list[int]:
    return [cell_len(line.rstrip()) for line in ANSI.sub("", text).split("\n")]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
@pytest.mark.parametrize("window", [None, 60_000])
def test_samples_fit_eighty_columns(path: Path, window: int | None, table: ModelTable) -> None:
    text = printed([report_of(path, table, window)])
    assert max(widths(text)) <= 80
    assert "\x1b[" in text


def test_golden_cases_fit_eighty_columns(table: ModelTable) -> None:
    for path in GOLDEN:
        if path.name.startswith("agent-old"):
            continue
        assert max(widths(printed([report_of(path, table)]))) <= 80, path.name


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_overview_fits(width: int, table: ModelTable) -> None:
    pairs = [(analyze(str(p), table), 0.5) for p in SAMPLES]
    text = printed([overview_report(pairs, total_of([a for a, _ in pairs], table), 1, "2026-01-01")], width)
    assert max(widths(text)) <= width
    assert "axios-to-fetch" in text or width < 80


def test_the_headline_says_what_matters(table: ModelTable) -> None:
    text = printed([report_of(SAMPLES[0].with_name("axios-to-fetch.jsonl"), table)], 160, terminal=False)
    for word in ("Window", "Peak", "Curve", "Usage", "sawtooth", "1 compaction", "What fills the window", "Largest"):
        assert word in text
    assert re.search(r"\$\d+\.\d\d at list prices of \d{4}-\d\d-\d\d", text)
    assert re.search(r"Peak\s+54,699 tokens \(27%\) at turn 28", text)


def test_without_a_terminal_there_are_no_codes_and_no_boxes(table: ModelTable) -> None:
    text = printed([report_of(p, table) for p in SAMPLES], 400, terminal=False)
    assert "\x1b" not in text
    assert not set(text) & set("─│┌┐└┘├┬┴┼━┃╭╮╰╯║═")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_ascii_alone_is_enough(path: Path, table: ModelTable) -> None:
    text = printed([report_of(path, table, 60_000)], 400, terminal=False, unicode=False)
    assert [line for line in text.split("\n") if not line.isascii()] == []


NASTY = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "bell\x07 and \x08back",
    "[bold]not markup[/bold]",
    "[link=https://example.com]x[/link]",
    ":smile:",
    "lone \ud83d half",
    "\u202eright to left",
    "wide 世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界",
    "x" * 300,
    "line one\nline two",
    "\r overwritten",
    "",
]


def nasty_report(text: str) -> Report:
    return Report(
        "analyze",
        text,
        text,
        (Fact("Window", text, text, "red"), Fact("Peak", "5")),
        (
            Table(
                text,
                (Column("tool"), Column("n", "right"), Column("of", flexible=True)),
                ((text, "5", text), ("short", "10,000", "")),
                text,
            ),
        ),
        (Series(text, (Point(1, 5.0, "green"), Point(2, 9.0, "red", ("spike", "overflow"))), (("red", 8.0),), 10.0),),
        (Finding("critical", "code", text, text, 3), Finding("info", "note", text)),
        (text,),
    )


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_text_of_a_transcript_can_not_drive_the_terminal(text: str) -> None:
    out = printed([nasty_report(text)])
    out.encode("utf-8")
    bare = ANSI.sub("", out)
    assert not [c for c in bare if c != "\n" and not c.isprintable()]
    plain = printed([nasty_report(text)], terminal=False)
    assert "\x1b" not in plain
    if "[" in text and text.isprintable():
        assert text in plain


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_text_fits_too(text: str) -> None:
    assert max(widths(printed([nasty_report(text)]))) <= 80


def test_notes_are_shown_on_request_alone() -> None:
    report = Report("x", "t", findings=(Finding("info", "note", "only a note"), Finding("warning", "w", "a warning")))
    assert "only a note" not in printed([report], verbose=False)
    assert "only a note" in printed([report], verbose=True)
    assert "a warning" in printed([report], verbose=False)


def test_an_empty_report_is_its_title() -> None:
    assert printed([Report("x", "title")], terminal=False).strip() == "title"
    assert "Findings" not in printed([Report("x", "t", findings=(Finding("info", "n", "m"),))], verbose=False)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=120), st.sampled_from([40, 80, 133]), st.booleans())
def test_any_text_at_any_width(text: str, width: int, unicode: bool) -> None:
    out = printed([nasty_report(text)], width, unicode=unicode)
    assert not [c for c in ANSI.sub("", out) if c != "\n" and not c.isprintable()]
