"""Metrics for monitoring: what is exported, and that Prometheus' own parser and tool take it."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from ctxctl.cli.listening import Collector
from ctxctl.health.result import Health
from ctxctl.reports.build.families import NAMES, families
from ctxctl.reports.family import Family
from ctxctl.reports.prometheus import number, render

ROOT = Path(__file__).parents[2]
RULES = ROOT / "config" / "prometheus" / "ctxctl.rules.yaml"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def promtool() -> str | None:
    """$PROMTOOL, else the one on PATH."""
    named = os.environ.get("PROMTOOL")
    return named if named and os.access(named, os.X_OK) else shutil.which("promtool")


needs_promtool = pytest.mark.skipif(promtool() is None, reason="no promtool on PATH or in $PROMTOOL")


def parsed(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def samples_of(exported: list[Family]) -> Samples:
    return {(f.name, tuple(sorted(labels))): float(value) for f in exported for labels, value in f.samples}


def value(exported: list[Family], name: str, **labels: str) -> float | None:
    return samples_of(exported).get((name, tuple(sorted(labels.items()))))


class Fixed:
    """Families for the collector that the endpoint uses."""

    def __init__(self, exported: list[Family]) -> None:
        self.exported = exported

    def families(self) -> list[Family]:
        return self.exported


def test_each_value_of_a_session(health: Callable[..., Health]) -> None:
    a = families([health()], failed=2)
    ended = datetime.fromisoformat("2026-05-01T11:00:00+00:00").timestamp()
    gauges = {
        "ctxctl_context_tokens": 190_000,
        "ctxctl_context_window_tokens": 200_000,
        "ctxctl_context_peak_tokens": 196_000,
        "ctxctl_context_utilization_ratio": 0.95,
        "ctxctl_context_peak_utilization_ratio": 0.98,
        "ctxctl_turns_above_critical": 3,
        "ctxctl_burn_rate_tokens_per_turn": 2500,
        "ctxctl_burn_spike_ratio": 2.5,  # 500 / mean(100, 300, 200)
        "ctxctl_evictions_per_turn": 1.2,
        "ctxctl_cache_hit_ratio": 0.9,
        "ctxctl_cache_stable": 1,
        "ctxctl_fidelity_ratio": 0.8,
        "ctxctl_compression_ratio": 12.5,
        "ctxctl_token_drift_ratio": -0.02,
        "ctxctl_tool_result_ratio": 0.4,
        "ctxctl_resume_success_ratio": 0.5,
        "ctxctl_session_turns": 5,
        "ctxctl_session_requests": 7,
        "ctxctl_session_cost_usd": 1.25,
        "ctxctl_session_compactions": 2,
        "ctxctl_session_last_activity_timestamp_seconds": ended,
    }
    expected: Samples = {(name, (("session", "a"),)): v for name, v in gauges.items()}
    info = {"session": "a", "model": "claude-sonnet-4-5", "format": "claude-code", "file": "runs/a.jsonl"}
    expected["ctxctl_session_info", tuple(sorted(info.items()))] = 1
    for code, level, count in (
        ("utilization_critical", "critical", 1),
        ("repeated_calls", "warning", 2),
        ("prefix_break", "info", 1),
    ):
        whose = "ctxctl_alerts" if code == "utilization_critical" else "ctxctl_findings"
        expected["ctxctl_session_findings", (("code", code), ("level", level), ("session", "a"))] = count
        expected[whose, (("code", code), ("level", level))] = count
    for name, count in {
        "ctxctl_sessions": 1,
        "ctxctl_session_read_errors": 2,
        "ctxctl_unpriced_sessions": 0,
        "ctxctl_turns_total": 5,
        "ctxctl_requests_total": 7,
        "ctxctl_cost_usd_total": 1.25,
        "ctxctl_evicted_units_total": 6,
        "ctxctl_evicted_tokens_total": 600,
        "ctxctl_overflow_turns_total": 1,
    }.items():
        expected[name, ()] = count
    for kind, count in {"full": 2, "micro": 1, "rollback": 0}.items():
        expected["ctxctl_compactions_total", (("kind", kind),)] = count
    for type_, count in {"input": 1000, "output": 200, "cache_read": 3000, "cache_write": 400}.items():
        expected["ctxctl_tokens_total", (("type", type_),)] = count
    assert parsed(render(a)) == expected
    assert [f.name for f in a] == list(NAMES)


def test_what_was_not_measured_has_no_sample(unmeasured: Health) -> None:
    exported = families([unmeasured])
    measured = {f.name for f in exported if f.samples}
    assert measured == {
        "ctxctl_session_turns",
        "ctxctl_session_requests",
        "ctxctl_session_compactions",
        "ctxctl_session_info",
        "ctxctl_sessions",
        "ctxctl_session_read_errors",
        "ctxctl_unpriced_sessions",
        "ctxctl_turns_total",
        "ctxctl_requests_total",
        "ctxctl_compactions_total",
        "ctxctl_evicted_units_total",
        "ctxctl_evicted_tokens_total",
    }
    assert not any(f.name in render(exported) for f in exported if not f.samples)
    assert value(families([replace(unmeasured, requests=3)]), "ctxctl_unpriced_sessions") == 1


def test_a_value_that_is_not_finite_has_no_sample(health: Callable[..., Health]) -> None:
    odd = health(cost=math.nan, metrics=replace(health().metrics, compression_ratio=math.inf))
    assert {"ctxctl_session_cost_usd", "ctxctl_compression_ratio", "ctxctl_cost_usd_total"}.isdisjoint(
        f.name for f in families([odd]) if f.samples
    )


def test_only_the_newest_sessions_have_series_and_all_count(health: Callable[..., Health]) -> None:
    many = [health(f"runs/s{n:02}.jsonl", ended=f"2026-05-{n:02}T00:00:00Z") for n in range(1, 31)]
    exported = families(many, series=3)
    sessions = {dict(labels)["session"] for f in exported for labels, _ in f.samples if "session" in dict(labels)}
    assert sessions == {"s30", "s29", "s28"}
    assert value(exported, "ctxctl_sessions") == 30
    assert value(exported, "ctxctl_turns_total") == 150
    assert value(exported, "ctxctl_alerts", code="utilization_critical", level="critical") == 30
    none = families(many, series=0)
    assert not [f.name for f in none for labels, _ in f.samples if "session" in dict(labels)]


def test_copies_of_a_session_have_labels_of_their_own(health: Callable[..., Health]) -> None:
    copies = [health(f"runs/{name}.jsonl", session="same") for name in "cab"] + [health("x.jsonl", session="same#2")]
    text = render(families(copies))
    assert {labels for name, labels in parsed(text) if name == "ctxctl_context_tokens"} == {
        (("session", s),) for s in ("same", "same#2", "same#3", "same#2#2")
    }


def test_counters_say_since_when_they_count(health: Callable[..., Health]) -> None:
    early = health("e.jsonl", started="2026-04-01T00:00:00Z")
    since = {f.since for f in families([health(), early]) if f.kind == "counter"}
    assert since == {datetime.fromisoformat("2026-04-01T00:00:00+00:00").timestamp()}


def test_names_keep_the_rules(health: Callable[..., Health]) -> None:
    for family in families([health()]):
        assert re.fullmatch(r"ctxctl_[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert family.help.endswith(".") and family.unit
        assert family.samples, "the session of this test lacks a value"


def test_reference_client_writes_the_same(health: Callable[..., Health]) -> None:
    """`generate_latest`, which the endpoint sends, and our text hold the same samples, types and help."""
    exported = families([health(), health("b.jsonl", cost=0.1 + 0.2, tokens=10**15)], failed=1)
    registry = CollectorRegistry()
    registry.register(Collector(Fixed(exported)))  # type: ignore[arg-type]
    theirs = generate_latest(registry).decode()
    assert parsed(render(exported)) == parsed(theirs) == samples_of(exported)
    comments = re.compile(r"^# .*", re.M)
    assert comments.findall(render(exported)) == comments.findall(theirs)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ['a"b', "a\\", "\\n", "a\nb", "\\\\n", '\\"', "日本", "{x=1}", "# HELP x"]
)


@given(TEXT, TEXT, st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_value_reads_back(label: str, help_: str, amount: float) -> None:
    family = Family("ctxctl_x", "gauge", f"h{help_}", "1", (((("a", label), ("b", "2")), amount),))
    metric = GaugeMetricFamily("ctxctl_x", f"h{help_}", labels=["a", "b"])
    metric.add_metric([label, "2"], amount)

    class One:
        def collect(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
            return [metric]

    registry = CollectorRegistry()
    registry.register(One())  # type: ignore[arg-type]
    ours, theirs = render([family]), generate_latest(registry).decode()
    assert ours.split("\n")[:2] == theirs.split("\n")[:2]  # comments, to the byte
    assert ours.split("\n")[2].rpartition(" ")[0] == theirs.split("\n")[2].rpartition(" ")[0]  # labels
    assert float(number(amount)) == amount


@needs_promtool
def test_promtool_takes_the_metrics(health: Callable[..., Health], unmeasured: Health) -> None:
    text = render(families([health(), health('b"\\\n.jsonl', cost=1e-7), unmeasured], failed=1))
    done = subprocess.run([str(promtool()), "check", "metrics"], input=text.encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@needs_promtool
def test_promtool_refuses_what_breaks_the_rules() -> None:
    """That the check above can fail."""
    bad = render([Family("ctxctl_things_total", "gauge", "Things.", "1", (((), 1),))])
    done = subprocess.run([str(promtool()), "check", "metrics"], input=bad.encode(), capture_output=True, timeout=60)
    assert done.returncode != 0


@needs_promtool
@pytest.mark.parametrize("arguments", [("check", "rules", RULES), ("test", "rules", RULES.with_suffix(".test.yaml"))])
def test_promtool_takes_the_rules(arguments: tuple[str | Path, ...]) -> None:
    done = subprocess.run([str(promtool()), *map(str, arguments)], capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    assert b"SUCCESS" in done.stdout
