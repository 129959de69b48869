"""The curve in characters keeps its peaks, marks and thresholds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.reports.document import Point, Series
from ctxctl.reports.plot import bins, compact, plot, sparkline

VALUES = st.lists(st.integers(0, 10**7), min_size=1, max_size=300)


def rows(series: Series, width: int = 80, *, unicode: bool = True) -> list[str]:
    return ["".join(cell.text for cell in row) for row in plot(series, width, unicode=unicode)]


def curve(values: list[int], **more: object) -> Series:
    return Series("t", tuple(Point(n, float(v)) for n, v in enumerate(values, 1)), **more)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(1, 60))
def test_bins_keep_the_peak_and_the_order(values: list[int], width: int) -> None:
    found = bins(values, width)
    assert len(found) == min(width, len(values))
    assert max(found) == max(values)
    assert set(found) <= set(values)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(1, 60))
def test_a_sparkline_shows_the_peak_as_a_full_block(values: list[int], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set("▁▂▃▄▅▆▇█")
    if max(values) > 0:
        assert "█" in line


def test_a_sparkline_against_the_window() -> None:
    assert sparkline([0, 25, 50, 100], 10, 200) == "▁▁▂▄"
    assert sparkline([1, 2, 4, 8], 10) == "▁▂▄█"
    assert sparkline([0, 0], 10) == "▁▁"


def test_one_high_turn_among_a_thousand_is_seen() -> None:
    values = [10] * 1_000
    values[517] = 1_000
    assert sparkline(values, 20).count("█") == 1
    top = rows(curve(values))[0]
    assert top.count("█") == 1


@settings(max_examples=60, deadline=None)
@given(VALUES, st.integers(20, 120), st.booleans())
def test_a_plot_keeps_its_width_and_height(values: list[int], width: int, unicode: bool) -> None:
    found = rows(curve(values, bands=(("yellow", 5e5), ("red", 9e5)), top=1e6), width, unicode=unicode)
    assert len(found) == 12
    margin = max(len(row.partition("┤" if unicode else "|")[0]) for row in found[:10])
    assert all(len(row) <= max(width, margin + 14) for row in found)
    assert unicode or all(row.isascii() for row in found)


def test_marks_stand_under_their_turns() -> None:
    points = (
        Point(1, 5.0),
        Point(2, 9.0, "red", ("spike",)),
        Point(3, 1.0, None, ("compaction",)),
        Point(4, 10.0, None, ("spike", "overflow")),
    )
    line = rows(Series("t", points))[10]
    assert line.split() == ["!", "▼", "X"]
    assert rows(Series("t", points), unicode=False)[10].split() == ["!", "v", "X"]


def test_a_mark_within_a_run_of_turns_is_not_lost() -> None:
    points = [Point(n, 5.0) for n in range(1, 2_001)]
    points[777] = Point(778, 5.0, None, ("overflow",))
    assert rows(Series("t", tuple(points)))[10].count("X") == 1


def test_thresholds_and_axis_are_labelled() -> None:
    found = rows(curve([10_000, 60_000, 90_000], bands=(("yellow", 50_000), ("red", 90_000)), top=100_000))
    assert any("yellow 50k" in row for row in found) and any("red 90k" in row for row in found)
    assert found[9].lstrip().startswith("0 ")
    assert "turn 1" in found[11] and found[11].rstrip().endswith("3")


def test_nothing_to_plot() -> None:
    assert plot(Series("t", ()), 80) == []
    assert len(rows(curve([0]))) == 12


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (1_000, "1k"),
        (1_234, "1.23k"),
        (54_699, "54.7k"),
        (200_000, "200k"),
        (999_900, "1M"),
        (1_000_000, "1M"),
        (2_500_000_000, "2.5G"),
    ],
)
def test_compact(number: float, text: str) -> None:
    assert compact(number) == text
