"""`ctxctl budget` as users run it."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AXIOS = "axios-to-fetch.jsonl"
COMPONENTS = [
    "system_prompt",
    "tool_definitions",
    "message_history",
    "tool_results",
    "memory_injection",
    "output_reserved",
]


def test_text_at_80_columns(ctxctl: Callable[..., Any], samples: Path) -> None:
    done = ctxctl("budget", samples / AXIOS, COLUMNS="80")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80 or "/" in max(done.out.splitlines(), key=len)
    for word in (*COMPONENTS, "Burn rate", "Lasts", "Cost", "Growth", "Unused", "Where the money went"):
        assert word in done.out


def test_json_adds_up(ctxctl: Callable[..., Any], samples: Path) -> None:
    done = ctxctl("budget", "--json", "--turns", samples / AXIOS)
    assert (done.code, done.err) == (0, "")
    document = done.json()
    assert document["schema"] == "ctxctl.budget/1"
    result = document["result"]
    assert [c["component"] for c in result["components"]] == COMPONENTS
    used = sum(c["used"] for c in result["components"][:-1])
    assert result["total_used"] == used + result["unexplained"]
    assert result["total_utilization"] == result["total_used"] / result["window"]
    for component in result["components"]:
        assert component.keys() >= {"used", "limit", "soft_limit", "utilization", "status"}
    cost = result["cost"]
    assert abs(cost["total"] - sum(cost[k] for k in ("input", "cache_read", "cache_write", "output"))) < 1e-9
    assert 0 <= cost["unreferenced_share"] <= 1
    assert abs(cost["turns"][-1]["cumulative"] - sum(t["total"] for t in cost["turns"])) < 1e-9
    analysis = ctxctl("analyze", "--json", samples / AXIOS).result()
    assert result["total_used"] == analysis["context"]["reported"]
    assert result["session"]["total"] == analysis["usage"]["total"]


def test_gates_fail_with_the_same_json(ctxctl: Callable[..., Any], samples: Path) -> None:
    asked = ["--fail-on", "soft,hard", "--max", "tool_results=1k", "--max", "message_history=0.5", "--max-cost", "0.01"]
    done = ctxctl("budget", "--json", *asked, samples / AXIOS)
    assert done.code == 1
    gates = {g["name"] + str(g["limit"]): g for g in done.result()["gates"]}
    assert len(gates) == 5
    assert (gates["fail-onsoft"]["ok"], gates["fail-onhard"]["ok"]) == (False, True)
    assert gates["max tool_results1000"]["ok"] is False
    assert gates["max message_history100000"]["ok"] is True
    assert gates["max-cost0.01"]["ok"] is False
    failed = [line for line in done.err.splitlines() if line.startswith("failed: ")]
    assert len(failed) == sum(not g["ok"] for g in gates.values())
    assert done.err.splitlines() == failed


@pytest.mark.slow
def test_gates_from_the_settings(ctxctl: Callable[..., Any], samples: Path, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("gates: {max_turns: 3, components: {tool_results: 1k}}\n")
    done = ctxctl("budget", "--json", samples / AXIOS)
    assert done.code == 1
    assert {g["name"]: g["ok"] for g in done.result()["gates"]} == {"max-turns": False, "max tool_results": False}
    allowed = ctxctl("budget", "--json", "--max-turns", "100", "--max", "tool_results=20k", samples / AXIOS)
    assert (allowed.code, [g["ok"] for g in allowed.result()["gates"]]) == (0, [True, True])
    (tmp_path / ".ctxctl.yaml").write_text("gates: {components: {tool_reslts: 1k}}\n")
    wrong = ctxctl("budget", samples / AXIOS)
    assert (wrong.code, wrong.out) == (4, "")
    assert "did you mean 'tool_results'" in wrong.err
    assert ".ctxctl.yaml:1" in wrong.err


def test_an_unknown_window_is_told_and_does_not_pass(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "hi"}\n')
    done = ctxctl("budget", "--json", "--fail-on", "hard", path)
    assert done.code == 1
    result = done.result()
    assert (result["window"], result["total_utilization"], result["turns_remaining"]) == (None, None, None)
    assert result["components"][0]["used"] is None
    assert result["gates"][0]["value"] is None
    assert "--window" in done.err
    known = ctxctl("budget", "--fail-on", "hard", "--window", "128k", path)
    assert known.code == 0


@pytest.mark.slow
def test_several_files(ctxctl: Callable[..., Any], samples: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("nothing\n")
    done = ctxctl("budget", "--json", samples / AXIOS, samples / "codex-rollout.jsonl", samples / AXIOS, broken)
    assert done.code == 3
    files, total = done.result()["files"], done.result()["total"]
    assert [("result" in f, "error" in f) for f in files][-1] == (False, True)
    assert (total["files"], total["failed"]) == (len(files), 1)
    paid = {f["path"]: f["result"]["cost"]["total"] for f in files if "result" in f}
    assert abs(total["cost"]["total"] - sum(paid.values())) < 1e-9, "a call that stands twice was paid once"
    text = ctxctl("budget", samples)
    assert text.code == 0
    assert "All sessions" in text.out


@pytest.mark.slow
def test_forms(ctxctl: Callable[..., Any], samples: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ctxctl("budget", "--output-format", "csv", samples / AXIOS).out)))
    assert [row["component"] for row in rows] == COMPONENTS
    lines = ctxctl("budget", "--output-format", "jsonl", samples).out.splitlines()
    assert all(json.loads(line)["schema"] == "ctxctl.budget/1" for line in lines)
    assert "| component |" in ctxctl("budget", "--output-format", "markdown", samples / AXIOS).out
    asked = ("--max", "tool_results=1k", samples / AXIOS)
    junit = ElementTree.fromstring(ctxctl("budget", "--output-format", "junit", *asked).out)
    failures = [case.get("name") for case in junit.iter("testcase") if case.find("failure") is not None]
    assert failures == ["max tool_results"]
    sarif = ctxctl("budget", "--output-format", "sarif", *asked).json()
    assert any("tool_results" in r["message"]["text"] for r in sarif["runs"][0]["results"])
    github = ctxctl("budget", "--output-format", "github", *asked)
    assert github.code == 1
    assert "::error" in github.out
    written = ctxctl("budget", "-o", tmp_path / "budget.xml", samples / AXIOS)
    assert (written.code, written.out) == (0, "")
    assert ElementTree.parse(tmp_path / "budget.xml").getroot().tag == "testsuites"


def test_usage_errors(ctxctl: Callable[..., Any], samples: Path) -> None:
    for options, said in (
        (("--max", "tool_reslts=1k"), "tool_results"),
        (("--max", "tool_results"), "--max tool_results=20k"),
        (("--max", "tool_results=much"), "20k"),
        (("--fail-on", "sof"), "soft"),
        (("--max-peak", "much"), "200k"),
        (("--max-cost", "-1"), "-1"),
        (("--output-format", "prometheus"), "health"),
    ):
        done = ctxctl("budget", *options, samples / AXIOS)
        assert (done.code, done.out) == (2, ""), options
        assert said in done.err


def test_stdin(ctxctl: Callable[..., Any], samples: Path) -> None:
    done = ctxctl("budget", "--json", "-", stdin=(samples / AXIOS).read_bytes())
    assert done.code == 0
    assert done.result()["session"]["path"] == "-"
    assert "FILE" in ctxctl("budget", "--window", "30k", stdin=(samples / AXIOS).read_bytes()).out
