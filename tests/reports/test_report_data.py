"""JSON, CSV and Markdown: strict, and with nothing of a transcript that acts as markup."""

from __future__ import annotations

import csv as python_csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl import AnalysisOptions, __version__, analyze, load_models
from ctxctl.model.limits import ModelTable
from ctxctl.pressure.options import PressureThresholds
from ctxctl.reports import csv, markdown
from ctxctl.reports.build.analysis import COLUMNS, analysis_records, analysis_report
from ctxctl.reports.build.analysis_data import analysis_data
from ctxctl.reports.document import Column, Fact, Finding, Point, Report, Series, Table
from ctxctl.reports.json import dumps, envelope, pieces

SAMPLE = str(Path(__file__).parents[2] / "sample_transcripts" / "axios-to-fetch.jsonl")


@pytest.fixture(scope="module")
def table() -> ModelTable:
    return load_models()


def strict(data: bytes) -> Any:
    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    value: float
    parts: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        ({"a": [float("inf"), -float("inf"), 1.5]}, {"a": [None, None, 1.5]}),
        ("lone \ud83d here", "lone \ufffd here"),
        ({"\ud83d": ["\udcff", "ok"]}, {"\ufffd": ["\ufffd", "ok"]}),
        (Thing("x", 0.5, (1, 2)), {"name": "x", "value": 0.5, "parts": [1, 2]}),
        (Thing("\ud83d", float("nan")), {"name": "\ufffd", "value": None, "parts": []}),
        ({0.75: "a", 1: "b"}, {"0.75": "a", "1": "b"}),
        ("\u2028 \x00 \x1b 世界", "\u2028 \x00 \x1b 世界"),
    ],
)
def test_json_is_strict(value: Any, expected: Any) -> None:
    data = dumps(value)
    assert strict(data) == expected
    assert data.endswith(b"\n") and data.count(b"\n") == 1


def test_json_in_pieces_is_the_same() -> None:
    value = {"a": {"b": list(range(2_500)), "c": "\ud83d"}, "d": [], "e": {}, "f": [{"x": float("nan")}] * 1_001}
    assert strict(b"".join(pieces(value))) == strict(dumps(value))


def test_the_envelope() -> None:
    assert envelope("analyze", {"a": 1}, {"b": 2}) == {
        "schema": "ctxctl.analyze/1",
        "ctxctl": __version__,
        "settings": {"a": 1},
        "result": {"b": 2},
    }


RESULT_KEYS = {
    "transcript": "path format id model records blocks turns exchanges threads messages compactions branches"
    " unreachable errors complete",
    "window": "tokens source",
    "usage": "input output cache_read cache_write reasoning total requests inherited by_thread by_branch",
    "context": "reported with_output counted drift overhead at_turn messages order",
    "counter": "name exact calibrated ratio bound",
    "peak": "tokens utilization turn",
    "composition": "by_kind by_tool largest",
    "composition_all": "by_kind by_tool",
    "attention": "watermark tokens_beyond weak_middle",
}
ROW_KEYS = {
    "pressure": "turn tokens source utilization level velocity turns_until_overflow added compaction",
    "spikes": "turn tokens mean ratio cause",
}


def test_the_names_that_scripts_rely_on(table: ModelTable) -> None:
    data = strict(dumps(analysis_data(analyze(SAMPLE, table, AnalysisOptions(blocks=True)), 0.5)))
    for section, keys in RESULT_KEYS.items():
        assert set(keys.split()) <= set(data[section]), section
    for section, keys in ROW_KEYS.items():
        assert data[section] and set(keys.split()) <= set(data[section][0]), section
    assert set(data["transcript"]["messages"]) == {"main", "sidechain"}
    assert set(data["transcript"]["messages"]["main"]) == {"user", "assistant"}
    assert set(data["composition"]["largest"][0]) >= {"block", "kind", "tool", "tokens", "turn", "source"}
    assert set(data["blocks"][0]) == {"block", "line", "kind", "tool", "turn", "tokens", "exact", "in_context"}
    assert set(data["attention"]["weak_middle"]) == {"goal", "constraints", "pinned"}
    assert all(set(k) == {"blocks", "tokens", "share"} for k in data["composition"]["by_kind"].values())
    assert all(set(t) == {"calls", "tokens", "share", "errors"} for t in data["composition"]["by_tool"].values())
    assert data["curve"] in ("flat", "rising", "sawtooth")
    assert data["cost"] == 0.5


def test_without_blocks_there_is_no_list_of_them(table: ModelTable) -> None:
    assert "blocks" not in analysis_data(analyze(SAMPLE, table), None)


def test_csv_has_a_row_per_call(table: ModelTable) -> None:
    analysis = analyze(SAMPLE, table)
    text = csv.render(COLUMNS, analysis_records(analysis))
    rows = list(python_csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == COLUMNS
    assert COLUMNS[:10] == (
        "path",
        "turn",
        "tokens",
        "source",
        "utilization",
        "level",
        "velocity",
        "turns_until_overflow",
        "added",
        "compaction",
    )
    assert len(rows) == analysis.turns
    assert [int(r["tokens"]) for r in rows] == [r.tokens for r in analysis.pressure]
    assert {r["path"] for r in rows} == {SAMPLE}
    assert [r["compaction"] for r in rows if r["compaction"]] == ["full"]
    assert "\r" not in text and text.endswith("\n")


def test_csv_quotes_and_replaces() -> None:
    text = csv.render(("a", "b"), [('x,"y"\nz', None), ("\ud83d", 5)])
    text.encode("utf-8")
    assert list(python_csv.reader(io.StringIO(text))) == [["a", "b"], ['x,"y"\nz', ""], ["\ufffd", "5"]]


def markdown_of(text: str) -> str:
    return markdown.render(
        [
            Report(
                "x",
                text,
                text,
                (Fact(text, text, text),),
                (Table(text, (Column(text), Column("n", "right")), ((text, "5"), (text, "6")), text),),
                (Series(text, (Point(1, 5.0), Point(2, 9.0))),),
                (Finding("warning", "code", text, text, 3),),
                (text,),
            )
        ]
    )


@pytest.mark.parametrize("mark", list("|<>[]*_`\\"))
def test_markdown_marks_are_escaped(mark: str) -> None:
    lines = [line for line in markdown_of(f"one{mark}two{mark}x").split("\n") if "one" in line]
    assert len(lines) >= 8
    assert all(line.count(f"\\{mark}") >= 2 for line in lines)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60))
def test_markdown_tables_keep_their_columns(text: str) -> None:
    out = markdown_of(text)
    out.encode("utf-8")
    rows = [line for line in out.split("\n") if line.startswith("|")]
    assert len(rows) == 4
    assert {len(row.replace("\\\\", "").replace("\\|", "").split("|")) for row in rows} == {4}


def test_markdown_of_a_session(table: ModelTable) -> None:
    text = markdown.render([analysis_report(analyze(SAMPLE, table), PressureThresholds(), 0.5, "2026-01-01")])
    assert text.startswith("# ") and text.endswith("\n")
    assert "| kind | blocks | tokens | share |" in text and "- **Peak**: 54,699 tokens" in text
    assert "█" in text  # the sparkline shows the peak


def test_what_was_not_measured_is_null(table: ModelTable) -> None:
    data = strict(dumps(analysis_data(analyze(SAMPLE, table, AnalysisOptions(reported_only=True)), None)))
    assert data["transcript"]["blocks"] is None and data["transcript"]["records"] is None
    assert data["transcript"]["messages"] is None and data["transcript"]["exchanges"] is None
    assert data["context"]["counted"] is None and data["context"]["drift"] is None
    assert (data["composition"], data["composition_all"], data["attention"], data["counter"]) == (None,) * 4
    assert data["cost"] is None


def test_options_are_plain_values() -> None:
    assert strict(dumps(asdict(AnalysisOptions())))["reported_only"] is False
