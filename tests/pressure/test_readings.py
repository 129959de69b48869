"""Readings in columns are the readings that were put in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl import ContextPressureMonitor
from ctxctl.pressure.monitor import Reading
from ctxctl.pressure.readings import Readings

CUTS = st.sampled_from([None, "full", "micro", "rollback"])


def followed(window: int | None, steps: list[tuple[int, str | None]]) -> list[Reading]:
    monitor = ContextPressureMonitor(window)
    return [monitor.update(tokens, compaction=cut, source="counted" if cut else "reported") for tokens, cut in steps]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([None, 1, 1_000, 200_000, 10**9]),
    st.lists(st.tuples(st.integers(0, 10**9), CUTS), max_size=20),
)
def test_they_come_back_as_they_were(window: int | None, steps: list[tuple[int, str | None]]) -> None:
    readings = followed(window, steps)
    columns = Readings(readings)
    assert list(columns) == readings and columns == readings
    assert len(columns) == len(readings) and bool(columns) == bool(readings)
    assert list(columns.tokens) == [r.tokens for r in readings]
    assert [r.remaining for r in columns] == [r.remaining for r in readings]


def test_positions_and_slices() -> None:
    readings = followed(1_000, [(n * 100, None) for n in range(6)])
    columns = Readings(iter(readings))
    assert columns[0] == readings[0] and columns[-1] == readings[-1]
    assert columns[1:4] == readings[1:4] and columns[::-2] == readings[::-2]
    assert list(reversed(columns)) == readings[::-1] and readings[2] in columns
    with pytest.raises(IndexError):
        columns[6]


def test_empty() -> None:
    assert list(Readings()) == [] and not Readings()
