"""Frontier, sums over transcripts, and intervals that compare policies on the same transcripts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.simulate.baseline import Baseline
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.rows import Run, frontier
from ctxctl.simulate.sweep import Sweep
from ctxctl.simulate.total import total_of


def run(policy: str, cost: float, missed: float, **more: object) -> Run:
    base = Run(policy, "policy", 1000, 0.75, 0.6, cost=Costs(cost, cost, cost), weight=100.0, missed_weight=missed)
    return replace(base, **more)  # type: ignore[arg-type]


def sweep(path: str, runs: list[Run], recorded: float = 10.0) -> Sweep:
    cost = Costs(recorded, recorded, recorded)
    baseline = Baseline(
        5, 100, cost, recorded, recorded, recorded * 1.02, 0.0, 0.02, 0.9, None, (0.1, -0.3), "why", "m", "d"
    )
    return Sweep(path, None, "m", 5, 1000, False, baseline, tuple(runs), (), None, 0, (0.1, 1.0), None)


def test_the_frontier_holds_what_nothing_beats() -> None:
    rows = frontier([run("a", 3, 1), run("b", 2, 5), run("c", 4, 1), run("d", 1, 9), run("e", 2.5, 6)])
    assert [r.policy for r in rows] == ["d", "b", "e", "a", "c"]
    assert [r.policy for r in rows if r.on_frontier] == ["d", "b", "a"]


def test_what_the_provider_refuses_is_no_choice() -> None:
    rows = frontier([run("over", 1, 0, overflow_turns=3), run("fits", 2, 0), run("no", 0, 0, unsupported="why")])
    assert [r.policy for r in rows if r.on_frontier] == ["fits"]
    assert rows[-1].policy == "no"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_frontier_against_the_definition(points: list[tuple[int, int]]) -> None:
    rows = frontier([run(str(i), c, m) for i, (c, m) in enumerate(points)])
    for row in rows:
        cost, loss = row.cost.best() or 0, row.missed_weight
        beaten = any((c <= cost and m <= loss) and (c < cost or m < loss) for c, m in points)
        if row.on_frontier:
            assert not beaten
    best = {(c, m) for c, m in points if not any(x <= c and y <= m and (x, y) != (c, m) for x, y in points)}
    assert {(r.cost.best(), r.missed_weight) for r in rows if r.on_frontier} == best


def test_sums_and_ratios_of_sums() -> None:
    total = total_of([sweep("a", [run("x", 5, 10)]), sweep("b", [run("x", 30, 30)], recorded=30)], own_windows=True)
    (row,) = total.runs
    assert row.sessions == 2
    assert row.run.cost.none == 35 and row.run.cost_ratio.none == pytest.approx(35 / 40)
    assert row.run.rmr == pytest.approx(0.2)
    assert row.run.capacity is None and row.run.on_frontier
    assert total.recorded_cost == 40 and total.total_error == pytest.approx(0.02)
    assert total.halves == (0.1, 0.3)
    assert [o.path for o in total.off] == ["a", "b"]


def test_intervals_hold_the_ratio_and_shrink_to_it_without_spread() -> None:
    same = total_of([sweep(str(i), [run("x", 5, 10)]) for i in range(8)], own_windows=True).runs[0]
    assert same.intervals["cost_ratio.ideal"] == pytest.approx((0.5, 0.5))
    assert same.intervals["rmr"] == pytest.approx((0.1, 0.1))
    spread = total_of([sweep(str(i), [run("x", 5 + i, 10 * i)]) for i in range(8)], own_windows=True).runs[0]
    low, high = spread.intervals["rmr"] or (0, 0)
    assert low < (spread.run.rmr or 0) < high
    one = total_of([sweep("a", [run("x", 5, 10)])], own_windows=True).runs[0]
    assert one.intervals["rmr"] is None


def test_intervals_are_paired() -> None:
    """A policy that is twice another on every transcript has twice its interval, whatever the transcripts are."""
    sweeps = [sweep(str(i), [run("x", 1 + i * i, i), run("y", 2 + 2 * i * i, 2 * i)]) for i in range(7)]
    x, y = total_of(sweeps, own_windows=True).runs
    assert y.intervals["cost_ratio.none"] == pytest.approx([2 * v for v in x.intervals["cost_ratio.none"] or ()])
    assert y.intervals["rmr"] == pytest.approx([2 * v for v in x.intervals["rmr"] or ()])


def test_sums_are_over_what_has_a_price() -> None:
    total = total_of(
        [sweep("a", [run("x", 5, 1)]), sweep("b", [replace(run("x", 5, 1), cost=Costs())])], own_windows=True
    )
    assert total.runs[0].run.cost.none == 5 and total.runs[0].run.cost_ratio.none == 0.5
    assert (total.runs[0].sessions, total.runs[0].priced) == (2, 1)
    nothing = total_of([sweep("a", [replace(run("x", 5, 1), cost=Costs())])] * 2, own_windows=True)
    assert nothing.runs[0].run.cost == Costs()
    assert nothing.runs[0].intervals["cost_ratio.none"] is None
