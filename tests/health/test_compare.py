"""Comparison: pairs and distributions, tolerance at, below and above, and what it is compared with."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from healths import a_session, measure, said
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import CtxctlError, InputError, NothingFoundError, UsageError
from ctxctl.health.compare import T99, Base, Change, Comparison, base_of, compare, compared
from ctxctl.health.figures import FIGURES, Measured, measured
from ctxctl.health.history import Where, record
from ctxctl.health.result import Health
from ctxctl.reports.build.compare import comparison_data, comparison_report
from ctxctl.reports.build.health_data import health_data
from ctxctl.reports.json import dumps, envelope

WHEN = datetime(2026, 5, 1, 10, 0, 0, tzinfo=UTC)


def against(base: list[Health], now: list[Health]) -> Comparison:
    return compare(Base("main", tuple(measured(h) for h in base)), now)


def named(comparison: Comparison, name: str, level: str | None = None) -> Change:
    (change,) = [c for c in comparison.changes if c.name == name and c.level == level]
    return change


def costing(*costs: float, prefix: str = "x", **more: Any) -> list[Health]:
    return [a_session(f"{prefix}{n}", cost=cost, **more) for n, cost in enumerate(costs)]


# -- how sessions are matched --------------------------------------------------------------------------------------


def test_sessions_with_the_same_id_are_pairs_wherever_they_lie() -> None:
    base = [a_session("a", path="/old/a.jsonl"), a_session("b"), a_session("gone")]
    got = against(base, [a_session("b", path="x"), a_session("a", path="y", peak=200_000)])
    assert (got.how, got.pairs, got.base_sessions, got.now_sessions) == ("session", 2, 3, 2)
    assert named(got, "peak").base == 120_000 and named(got, "peak").now == 160_000


def test_where_a_format_has_no_ids_the_file_is_the_session() -> None:
    base = [a_session("a"), a_session("b", session=None), a_session("c", session=None)]
    got = against(base, [a_session("a", path="moved"), a_session("b", session=None), a_session("c")])
    assert (got.how, got.pairs) == ("session", 2)


def test_other_sessions_at_the_same_path_are_pairs() -> None:
    base = [a_session("a", path="/base/runs/t1.jsonl"), a_session("b", path="/base/runs/t2.jsonl")]
    now = [a_session("c", path="/now/runs/t1.jsonl"), a_session("d", path="/now/runs/t2.jsonl")]
    assert (against(base, now).how, against(base, now).pairs) == ("path", 2)
    same = [replace(h, path=b.path) for h, b in zip(now, base, strict=True)]
    assert against(base, same).how == "path"


def test_sessions_with_nothing_in_common_are_distributions() -> None:
    got = against([a_session("a", path="a/1"), a_session("b", path="b/2")], [a_session("c", path="c/3")])
    assert (got.how, got.pairs) == ("distribution", 0)
    assert "means of 2 sessions of the base and of 1 now" in comparison_report(got).facts[1].value


def test_a_name_that_stands_twice_matches_nothing() -> None:
    base = [a_session("a", path="p"), a_session("a", path="p")]
    assert against(base, [a_session("a", path="p")]).how == "distribution"


# -- tolerance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base", "within", "beyond"),
    [
        ("cost", 10.0, 10.5, 10.51),
        ("cost", 0.01, 0.02, 0.0201),
        ("peak", 100_000, 105_000, 105_001),
        ("peak", 2_000, 3_000, 3_001),
        ("peak_utilization", 0.8, 0.84, 0.8401),
        ("peak_utilization", 0.1, 0.12, 0.1201),
    ],
)
def test_a_change_within_5_percent_or_the_floor_is_none(name: str, base: float, within: float, beyond: float) -> None:
    of = [a_session(**{name: base})]
    assert named(against(of, [a_session(**{name: within})]), name).verdict == "same"
    assert named(against(of, [a_session(**{name: beyond})]), name).verdict == "worse"
    assert named(against([a_session(**{name: beyond})], of), name).verdict in ("better", "same")


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_every_figure_knows_which_way_is_better(figure: Any) -> None:
    def one(value: float) -> Measured:
        return Measured("p", "s", {figure.name: value})

    low, high = 1.0, 1.0 + max(1.0, 2 * figure.floor)
    rose = named(compared(Base("b", (one(low),)), [one(high)]), figure.name).verdict
    fell = named(compared(Base("b", (one(high),)), [one(low)]), figure.name).verdict
    assert (rose, fell) == {
        "lower": ("worse", "better"),
        "higher": ("better", "worse"),
        "neither": ("changed", "changed"),
    }[figure.better]


def test_drift_is_compared_by_its_size() -> None:
    got = against([a_session(metrics=measure(token_drift=0.09))], [a_session(metrics=measure(token_drift=-0.09))])
    assert named(got, "token_drift").verdict == "same"


def test_a_session_that_went_on_cost_more_which_is_no_fault() -> None:
    base, now = [a_session(cost=5.0)], [a_session(cost=10.0, turns=100, requests=100)]
    got = against(base, now)
    assert named(got, "cost").verdict == named(got, "turns").verdict == "changed" and got.worse == ()
    assert named(against(base, [a_session(cost=10.0)]), "cost").verdict == "worse"
    assert named(against(base, [replace(now[0], session="new")]), "cost").verdict == "worse"


# -- noise ---------------------------------------------------------------------------------------------------------


def test_the_margin_of_two_distributions_is_welchs() -> None:
    """The example of two samples with unequal variances, worked by hand: s^2/n = 2/3 and 1/3 * 200/3."""
    base = costing(10.0, 12.0, 11.0, prefix="a", path="")
    now = costing(20.0, 30.0, 40.0, prefix="b", path="")
    change = named(against(base, now), "cost")
    parts = (1 / 3, 100 / 3)
    freedom = int(sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 2))
    assert freedom == 2 and change.margin == pytest.approx(T99[1] * sum(parts) ** 0.5)
    assert change.change == 19 and change.verdict == "same"
    calm = named(against(base, costing(29.0, 30.0, 31.0, prefix="b", path="")), "cost")
    assert calm.verdict == "worse"


def test_the_margin_of_pairs_is_of_their_differences() -> None:
    base = [a_session(f"a{n}", path=f"p{n}", cost=c) for n, c in enumerate((1.0, 10.0, 100.0))]
    now = [a_session(f"b{n}", path=f"p{n}", cost=c) for n, c in enumerate((11.0, 20.0, 110.0))]
    assert named(against(base, now), "cost").verdict == "worse"  # each by 10, whatever lies between them
    mixed = [replace(h, cost=c) for h, c in zip(now, (1.0, 10.0, 130.0), strict=True)]
    assert named(against(base, mixed), "cost").verdict == "same"  # all of it in one of three


def test_a_single_session_has_the_spread_of_the_other_side() -> None:
    many = costing(4.0, 5.0, 6.0, 5.0, prefix="a", path="")
    assert named(against(many, costing(6.5, prefix="b", path="")), "cost").verdict == "same"
    assert named(against(many, costing(50.0, prefix="b", path="")), "cost").verdict == "worse"


def test_runs_that_differ_by_nothing_rarely_seem_worse() -> None:
    """Of two runs over sessions out of one distribution, with all figures and ten codes, at most one in ten."""
    chance = random.Random(7)

    def session() -> Measured:
        values = {figure.name: chance.lognormvariate(1, 0.6) for figure in FIGURES}
        return Measured("", None, values, {("warning", f"c{n}"): int(chance.random() < 0.2) for n in range(10)})

    wrong = 0
    for _ in range(100):
        base, now = (tuple(session() for _ in range(12)) for _ in range(2))
        wrong += bool(compared(Base("b", base), now).worse)
    assert wrong <= 10


# -- findings ------------------------------------------------------------------------------------------------------


def test_new_findings_and_more_of_the_old_ones_are_worse_and_observations_are_not() -> None:
    base = [a_session("a", findings=(said("reload"),)), a_session("b")]
    now = [
        a_session("a", findings=(said("reload"), said("reload"), said("occupancy", "info"))),
        a_session("b", alerts=(said("utilization_critical", "critical"),)),
    ]
    got = against(base, now)
    critical, more = named(got, "utilization_critical", "critical"), named(got, "reload", "warning")
    assert (critical.verdict, critical.new, critical.now) == ("worse", True, 0.5)
    assert (more.verdict, more.new, more.base, more.now) == ("worse", False, 0.5, 1.0)
    assert named(got, "occupancy", "info").verdict == "changed"
    assert got.worse == ("utilization_critical", "reload")
    assert against(now, base).worse == ()


def test_what_got_worse_comes_first_the_most_severe_in_front() -> None:
    now = a_session(peak=130_000, cost=20.0, alerts=(said("a"), said("b", "critical"), said("c", "info")))
    got = against([a_session()], [now])
    assert [c.name for c in got.changes if c.level is None][:2] == ["cost", "cost_per_turn"]
    assert [(c.level, c.name) for c in got.changes if c.level] == [("critical", "b"), ("warning", "a"), ("info", "c")]
    ranks = [("worse", "changed", "better", "unknown", "same").index(c.verdict) for c in got.changes if c.level is None]
    assert ranks == sorted(ranks)


def test_what_was_measured_on_one_side_alone_is_unknown_not_worse() -> None:
    got = against([a_session(cost=None)], [a_session(cost=9.0)])
    change = named(got, "cost")
    assert (change.verdict, change.base, change.now, change.change) == ("unknown", None, 9.0, None)
    assert got.worse == () and "cost_per_turn" not in got.worse


def test_nothing_on_a_side() -> None:
    assert against([], [a_session()]).worse == () and against([a_session()], []).worse == ()
    assert comparison_data(against([], []))["changes"] == []


VALUES = st.dictionaries(
    st.sampled_from([f.name for f in FIGURES]), st.none() | st.floats(0, 1e9, allow_nan=False), max_size=len(FIGURES)
)
SESSIONS = st.lists(
    st.builds(
        Measured,
        st.sampled_from(("a", "b", "x/c", "y/d", "")),
        st.none() | st.sampled_from(("s", "t", "u")),
        VALUES,
        st.dictionaries(st.tuples(st.sampled_from(("info", "critical")), st.sampled_from("ab")), st.integers(1, 9)),
    ),
    max_size=5,
)


@given(SESSIONS, SESSIONS)
def test_any_two_sides_can_be_compared(base: list[Measured], now: list[Measured]) -> None:
    got = compared(Base("b", tuple(base)), now)
    assert all((c.change is None) == (c.verdict == "unknown") for c in got.changes)
    assert all(abs(c.change or 0) <= (c.margin or 0) for c in got.changes if c.verdict == "same")
    json.loads(dumps(comparison_data(got)))
    comparison_report(got)
    same = compared(Base("b", tuple(base)), base)
    assert same.worse == () and {c.verdict for c in same.changes} <= {"same", "unknown"}


@given(st.lists(st.floats(0.5, 100), min_size=1, max_size=6), st.lists(st.floats(0.5, 100), min_size=1, max_size=6))
def test_worse_one_way_is_better_the_other_way_or_within_tolerance(base: list[float], now: list[float]) -> None:
    one, other = (
        [Measured("", None, {"overflow_turns": v}) for v in base],
        [Measured("", None, {"overflow_turns": v}) for v in now],
    )
    there = named(compared(Base("b", tuple(one)), other), "overflow_turns")
    back = named(compared(Base("b", tuple(other)), one), "overflow_turns")
    assert there.base == back.now == fmean(base)
    assert (there.verdict, back.verdict) in (
        *(("worse", "better"), ("better", "worse"), ("same", "same")),
        *(("worse", "same"), ("same", "better"), ("same", "worse"), ("better", "same")),
    )


# -- what it is compared with --------------------------------------------------------------------------------------


def report(*healths: Health, single: bool = False) -> bytes:
    data = [health_data(h) for h in healths]
    if single:
        return dumps(envelope("health", {}, data[0]))
    files = [{"path": h.path, "result": d} for h, d in zip(healths, data, strict=True)]
    files.append({"path": "broken", "error": {"code": "input"}})
    return dumps(envelope("health", {}, {"files": files, "total": {}}))


SOME = (
    a_session("a", alerts=(said("token_drift"),), findings=(said("token_drift"), said("reload", "info"))),
    a_session("b", cost=None, metrics=measure(fidelity=None, token_drift=-0.2)),
)


def test_reports_of_health_hold_the_same_figures(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_bytes(report(*SOME))
    assert base_of(str(path)).sessions == tuple(map(measured, SOME))
    path.write_bytes(report(SOME[0], single=True))
    assert base_of(str(path)).sessions == (measured(SOME[0]),)
    lines = [{"path": h.path, **envelope("health", {}, health_data(h))} for h in SOME]
    path.write_bytes(b"".join(map(dumps, [*lines, {**envelope("health", {}, None), "error": {}}])))
    assert base_of(str(path)).sessions == tuple(map(measured, SOME))


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"", "no JSON", None),
        (b"{", "no JSON", None),
        (b"[1, 2]", "no report of ctxctl", None),
        (b'{"schema": "ctxctl.analyze/1", "result": {}}', "a report of ctxctl.analyze/1, not of health", None),
        (b'{"schema": "ctxctl.health/1", "result": {"files": []}}', "holds no session", None),
        (b'{"schema": "ctxctl.health/1"}\n{"schema"\n', "no JSON", 2),
    ],
)
def test_what_is_no_report_is_told(tmp_path: Path, data: bytes, message: str, line: int | None) -> None:
    path = tmp_path / "base.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as told:
        base_of(str(path))
    assert (told.value.path, told.value.line) == (str(path), line) and "ctxctl health --json -o" in str(told.value.hint)


KEYS = st.sampled_from(("files", "result", "metrics", "session", "alerts", "findings", "path", "id", "level", "code"))
PLAIN = st.none() | st.booleans() | st.floats() | st.text(max_size=5)
JSON = st.recursive(PLAIN, lambda of: st.lists(of, max_size=3) | st.dictionaries(KEYS, of, max_size=4), max_leaves=12)


@given(JSON)
def test_any_report_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, result: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(dumps(envelope("health", {}, result)))
    try:
        base_of(str(path))
    except CtxctlError as error:
        assert error.hint


def test_the_newest_run_at_a_ref_or_of_another_history(tmp_path: Path) -> None:
    path = tmp_path / "ctxctl.db"
    for name, where in (("old", Where("main")), ("new", Where("main", None, "c" * 40)), ("else", Where("topic"))):
        record(path, [a_session(name)], WHEN, where=where)
    got = base_of("main", path, folder=tmp_path)
    assert (got.label, got.ref, got.commit, got.time) == ("main", "main", "c" * 40, "2026-05-01T10:00:00Z")
    assert [s.session for s in got.sessions] == ["new"]
    assert [s.session for s in base_of(str(path)).sessions] == ["else"]


def test_a_ref_that_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "ctxctl.db"
    with pytest.raises(UsageError, match="--compare-to main: no such file") as usage:
        base_of("main")
    assert usage.value.hint
    with pytest.raises(InputError, match="no such history"):
        base_of("main", path)
    record(path, [a_session()], WHEN, where=Where("main"))
    with pytest.raises(NothingFoundError, match="no run is recorded at 'mian'") as told:
        base_of("mian", path, folder=tmp_path)
    assert str(told.value.hint).startswith("did you mean 'main'?")


# -- the report ----------------------------------------------------------------------------------------------------


def test_the_report_says_what_got_worse_first() -> None:
    now = a_session(cost=7.5, alerts=(said("low_fidelity"),), metrics=measure(fidelity=0.5))
    got = against([a_session()], [now])
    report = comparison_report(got)
    assert report.facts[0].value == "4 things got worse" and report.facts[0].level == "warning"
    assert report.facts[1].value == "1 pair with the same id (of 1 session of the base and 1 now)"
    assert ("cost per session", "$5.00", "$7.50", "+50%", "worse") in report.tables[0].rows
    assert ("fidelity of compactions", "90.0%", "50.0%", "-40.0 pp", "worse") in report.tables[0].rows
    assert ("low_fidelity (warning)", "0.00", "1.00", "+1.00", "new") in report.tables[0].rows
    assert report.findings[0].code == "regression" and "$5.00 before, $7.50 now" in report.findings[0].message
    data = comparison_data(got)
    assert data["worse"] == list(got.worse) and data["how"] == "session" and data["base"]["label"] == "main"
    assert {"name", "base", "now", "change", "relative", "verdict", "margin", "level", "new"} <= set(data["changes"][0])
    assert comparison_report(against([a_session()], [a_session()])).facts[0].value == "nothing got worse"
