"""The dashboard and the alert rules load as they are, and speak of metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from ctxctl.health.options import AlertOptions
from ctxctl.pressure.drift import DRIFT_TOKENS
from ctxctl.reports.build.families import NAMES

CONFIG = Path(__file__).parents[2] / "config"
DASHBOARD = json.loads((CONFIG / "grafana" / "ctxctl.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = yaml.safe_load((CONFIG / "prometheus" / "ctxctl.rules.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
TESTS = yaml.safe_load((CONFIG / "prometheus" / "ctxctl.rules.test.yaml").read_text(encoding="utf-8"))["tests"]

UNUSED = {"ctxctl_cache_stable", "ctxctl_unpriced_sessions"}
"""Not on the dashboard on purpose: the first is for the rule on cache hits, the second a note on the cost."""


def names_in(expression: str) -> set[str]:
    """Metrics of a PromQL expression: names outside of strings, label lists, durations and grouping."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    words = re.findall(r"(?<![\w.:])[a-zA-Z_:][\w:]*(?![\w:]|\s*\()", bare)
    return set(words) - {"or", "and", "unless", "bool", "offset"}


def expressions() -> Iterator[tuple[str, str]]:
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


def test_names_are_found_in_promql() -> None:
    assert names_in('max by (a_b) (m_x{l="n_o", k=~"p{3}"}[1h] / on (c_d) sum(rate(m_y[5m]))) or vector(0) > 1e3') == {
        "m_x",
        "m_y",
    }
    assert names_in("a unless time() - b > 3600") == {"a", "b"}


def test_every_query_names_metrics_that_are_exported() -> None:
    for title, expression in expressions():
        if expression.startswith("label_values("):
            found = {expression.removeprefix("label_values(").partition(",")[0]}
        else:
            found = names_in(expression)
        assert found and found <= set(NAMES), (title, found - set(NAMES))


def test_alerts_and_findings_of_one_code_are_both_counted() -> None:
    """`or` leaves out what has the same labels on its left, and `token_drift` is an alert and a detector."""
    both = [e for _, e in expressions() if {"ctxctl_alerts", "ctxctl_findings"} <= names_in(e)]
    assert len(both) == 2
    for expression in both:
        assert re.search(r'label_replace\(ctxctl_alerts\b[^(]*"of", "alert"', expression)
        assert re.search(r'label_replace\(ctxctl_findings\b[^(]*"of", "finding"', expression)


def test_every_metric_is_shown_or_left_out_on_purpose() -> None:
    shown = set().union(*(names_in(e) for _, e in expressions() if not e.startswith("label_values(")))
    assert set(NAMES) - shown == UNUSED


def test_dashboard_keeps_grafanas_own_schema() -> None:
    """Types that Grafana generates from its schemas know every key and get every value as its type."""
    register_default_plugins()
    model = Dashboard.from_json(DASHBOARD)
    _same(DASHBOARD, json.loads(json.dumps(model, cls=JSONEncoder)), "")
    _typed(model, "dashboard")


def _same(given: Any, back: Any, where: str) -> None:
    if isinstance(given, dict):
        assert isinstance(back, dict), where
        assert set(given) <= set(back), f"{where}: unknown keys {set(given) - set(back)}"
        for key in given:
            _same(given[key], back[key], f"{where}.{key}")
    elif isinstance(given, list):
        assert len(given) == len(back), where
        for number, (one, other) in enumerate(zip(given, back, strict=True)):
            _same(one, other, f"{where}[{number}]")
    else:
        assert given == back, where


def _typed(value: Any, where: str) -> None:
    """Each attribute of a model, and of those in it, has the type that its class declares."""
    module = type(value).__module__
    if not module.startswith("grafana_foundation_sdk"):
        return
    hints = get_type_hints(type(value))
    for name, held in vars(value).items():
        if name in hints:
            assert _is(held, hints[name]), f"{where}.{name}: {held!r} is no {hints[name]}"
        for item in held if isinstance(held, list) else [held]:
            _typed(item, f"{where}.{name}")


def _is(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Union:
        return any(_is(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(_is(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is(item, arguments[1]) for item in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (Any, object) or not isinstance(hint, type):
        return True
    return isinstance(value, hint) or (isinstance(value, str) and issubclass(hint, str)) or _plain(value, hint)


def _plain(value: Any, hint: type) -> bool:
    """What the generated reader leaves as JSON where its types have a class."""
    return hint.__module__.startswith("grafana_foundation_sdk") and isinstance(value, (dict, list, str, int))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", 1, "gridPos", "w"), "four"),
        (("panels", 1, "fieldConfig", "defaults", "unit"), 7),
        (("panels", 1, "colour"), "red"),
        (("refreshes",), "30s"),
        (("editable",), "yes"),
    ],
)
def test_schema_check_finds_what_is_wrong(path: tuple[Any, ...], value: Any) -> None:
    broken = json.loads(json.dumps(DASHBOARD))
    inner = broken
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    register_default_plugins()
    with pytest.raises(AssertionError):
        model = Dashboard.from_json(broken)
        _same(broken, json.loads(json.dumps(model, cls=JSONEncoder)), "")
        _typed(model, "dashboard")


def test_panels_are_told_apart_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


def test_every_panel_has_a_unit_a_description_and_the_chosen_source() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    assert "__inputs" not in DASHBOARD and "id" not in DASHBOARD  # so that import and provisioning both take it
    for panel in PANELS:
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)), panel["title"]
        for held in (panel, *panel["targets"]):
            assert held["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


# alert rules


def test_rules_name_metrics_that_are_exported() -> None:
    for rule in RULES:
        found = names_in(rule["expr"])
        assert found and found <= set(NAMES), (rule["alert"], found - set(NAMES))


def test_rules_have_severity_and_say_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description", "hint"}


LIMITS = {
    "CtxctlUtilizationCritical": ("critical_turns", "ctxctl_turns_above_critical >= {}"),
    "CtxctlUtilizationPrepare": ("utilization_info", "ctxctl_context_utilization_ratio >= {}"),
    "CtxctlEvictionFrequency": ("eviction_warning", "ctxctl_evictions_per_turn > {}"),
    "CtxctlLowFidelity": ("fidelity_warning", "ctxctl_fidelity_ratio < {}"),
    "CtxctlBurnRateSpike": ("burn_rate_spike_ratio", "ctxctl_burn_spike_ratio > {}"),
    "CtxctlWeakCompression": ("compression_ratio_warning", "ctxctl_compression_ratio < {}"),
    "CtxctlTokenDrift": ("token_drift_warning", "abs(ctxctl_token_drift_ratio) > {}"),
    "CtxctlLowCacheHitRate": ("cache_hit_rate_warning", "ctxctl_cache_hit_ratio < {}"),
    "CtxctlResumeFailures": ("resume_success_warning", "ctxctl_resume_success_ratio < {}"),
}


@pytest.mark.parametrize("alert", LIMITS)
def test_limits_are_the_defaults_of_the_settings(alert: str) -> None:
    setting, pattern = LIMITS[alert]
    (expression,) = (rule["expr"] for rule in RULES if rule["alert"] == alert)
    before, _, after = pattern.partition("{}")
    found = re.search(re.escape(before) + r"([\d.]+)" + re.escape(after), expression)
    assert found, expression
    assert float(found[1]) == getattr(AlertOptions(), setting)


def test_every_limit_of_the_settings_has_a_rule() -> None:
    elsewhere = {"utilization_critical", "fidelity_target"}  # in the gauge's own count; in words only
    assert {setting for setting, _ in LIMITS.values()} | elsewhere == {f.name for f in fields(AlertOptions)}
    critical = next(rule for rule in RULES if rule["alert"] == "CtxctlUtilizationCritical")
    assert f"above {AlertOptions().utilization_critical * 100:.0f} %" in critical["annotations"]["description"]
    fidelity = next(rule for rule in RULES if rule["alert"] == "CtxctlLowFidelity")
    assert f"more than {AlertOptions().fidelity_target * 100:.0f} %" in fidelity["annotations"]["description"]
    drift = next(rule for rule in RULES if rule["alert"] == "CtxctlTokenDrift")
    assert f"* ctxctl_context_tokens > {DRIFT_TOKENS}" in drift["expr"]


def test_every_rule_is_tested_where_it_fires_and_where_it_does_not() -> None:
    fires, silent = set(), set()
    for test in TESTS:
        for case in test["alert_rule_test"]:
            fires.update({case["alertname"]} if case["exp_alerts"] else set())
            fewer = len(case["exp_alerts"]) < len(test["input_series"])
            silent.update({case["alertname"]} if fewer else set())
    assert fires == silent == {rule["alert"] for rule in RULES}
