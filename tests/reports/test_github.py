"""GitHub annotations read back as the runner reads them, and the job summary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ci_texts import CHECKED, GATES, TEXTS, found
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.model.finding import Finding, Gate
from ctxctl.model.text import clean
from ctxctl.reports import github
from ctxctl.reports.document import Checked, Column, Fact, Report, Table
from ctxctl.reports.places import place, root_of, uri

COMMAND = re.compile(r"::(?P<name>[^ :]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)", re.DOTALL)


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command: how the runner takes it apart (actions/runner, ActionCommand)."""
    match = COMMAND.fullmatch(line)
    assert match, line
    properties = {}
    for pair in (match["properties"] or "").split(","):
        name, _, value = pair.partition("=")
        properties[name] = unescaped(value, ("%3A", ":"), ("%2C", ","))
    return match["name"], properties, unescaped(match["data"])


def unescaped(text: str, *more: tuple[str, str]) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
        text = text.replace(escape, character)
    return text


def commands(*checked: Checked, **more: object) -> list[tuple[str, dict[str, str], str]]:
    return [read(line) for line in github.render(checked, **more).split("\n")[:-1]]  # type: ignore[arg-type]


def test_a_finding_is_an_annotation_at_its_line() -> None:
    (command,) = commands(Checked("runs/a.jsonl", "runs/a.jsonl", (found(),)))
    where = {"file": "runs/a.jsonl", "line": "41", "title": "ctxctl: repeated_calls"}
    assert command == ("warning", where, "runs/a.jsonl: turn 7: said\nhint: do this")


@pytest.mark.parametrize(("level", "kind"), [("info", "notice"), ("warning", "warning"), ("critical", "error")])
def test_levels(level: str, kind: str) -> None:
    assert commands(Checked("a", "a", (found(level=level),)))[0][0] == kind


def test_failed_gates_and_unreadable_files_are_errors_and_passed_gates_are_nothing() -> None:
    gates = (Gate("max-cost", 5, 7.1, False, "max-cost $5.00: it is $7.10"), Gate("max-peak", 9, 8, True, "fine"))
    broken = Checked("b", "b", error=InputError("no transcript", hint="look at it", line=3))
    got = commands(Checked("a", "a", gates=gates), broken, gates=(Gate("fail-on regression", 0, 2, False, "2 worse"),))
    assert [(kind, p["title"], p.get("file"), p.get("line")) for kind, p, _ in got] == [
        ("error", "ctxctl: input", "b", "3"),
        ("error", "ctxctl: fail-on regression", None, None),
        ("error", "ctxctl: max-cost", "a", None),
    ]
    assert got[0][2] == "b: no transcript\nhint: look at it" and got[2][2] == "a: failed: max-cost $5.00: it is $7.10"


def test_standard_input_has_no_file() -> None:
    ((_, properties, message),) = commands(Checked("-", "-", (found(line=None),)))
    assert properties == {"title": "ctxctl: repeated_calls"} and message.startswith("standard input: turn 7")


def test_nothing_found_prints_nothing() -> None:
    assert github.render([Checked("a", "a")]) == ""


@pytest.mark.parametrize(("count", "shown", "left"), [(10, 10, 0), (11, 9, 2), (500, 9, 491)])
def test_ten_of_a_kind_and_the_last_says_how_many_more(count: int, shown: int, left: int) -> None:
    items = tuple(found(message=str(n)) for n in range(count))
    got = commands(Checked("a", "a", items))
    plain = [p for _, p, _ in got if p["title"] != "ctxctl: more"]
    assert len(got) <= 10 and len(plain) == shown
    if left:
        assert got[-1][2].startswith(f"{left} more")


def test_one_of_each_code_before_a_second_one() -> None:
    items = (*(found("reload") for _ in range(30)), found("token_drift"), found("repeated_calls"))
    titles = [p["title"] for _, p, _ in commands(Checked("a", "a", items))]
    assert titles[:4] == ["ctxctl: reload", "ctxctl: token_drift", "ctxctl: repeated_calls", "ctxctl: reload"]


def test_no_kind_pushes_another_out() -> None:
    items = (*(found(level="info") for _ in range(50)), found(level="critical"))
    kinds = [kind for kind, _, _ in commands(Checked("a", "a", items))]
    assert kinds[0] == "error" and kinds.count("notice") == 10


@given(CHECKED, st.lists(GATES, max_size=3))
def test_any_text_is_one_command_per_line(checked: list[Checked], gates: list[Gate]) -> None:
    for line in github.render(checked, gates).split("\n")[:-1]:
        kind, properties, message = read(line)
        assert kind in ("error", "warning", "notice") and message
        assert set(properties) <= {"file", "line", "title"} and not set("\r\n") & set(line)
        line.encode()


@given(TEXTS)
def test_texts_read_back(text: str) -> None:
    item = Finding("a_code", "warning", text, "", line=1)
    ((_, properties, message),) = commands(Checked(f"x{text}", "t", (item,)))
    assert message == f"t: {clean(text)}" and properties["file"] == clean(f"x{text}")


def test_a_session_can_not_give_orders_to_the_runner() -> None:
    item = found(message="\n::stop-commands::x\n::set-env name=PATH::/evil\r\n##[add-path]/evil")
    text = github.render([Checked("a\n::error::x", "a", (item,))])
    assert text.count("\n") == 1 and text.startswith("::warning file=a%0A%3A%3Aerror%3A%3Ax,")


# -- places --------------------------------------------------------------------------------------------------------


def test_paths_are_relative_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "repository/runs, 1"
    inner.mkdir(parents=True)
    (tmp_path / "repository/.git").mkdir()
    root = root_of(inner)
    assert root == str(tmp_path / "repository")
    monkeypatch.chdir(inner)
    assert place("a.jsonl", root) == place(str(inner / "a.jsonl"), root) == "runs, 1/a.jsonl"
    assert place("../../b.jsonl", root) == "../../b.jsonl" and place("-", root) == "-"
    assert uri("ä:b.jsonl", root) == ("runs%2C%201/%C3%A4%3Ab.jsonl", True)
    assert uri("/else where/x", root) == ("file:///else%20where/x", False)
    ((_, properties, _),) = commands(Checked("a.jsonl", "a.jsonl", (found(),)), root=root)
    assert properties["file"] == "runs, 1/a.jsonl"


# -- the summary ---------------------------------------------------------------------------------------------------


def test_the_summary_has_gates_files_and_reports() -> None:
    gates = (
        Gate("max-cost", 5, 7.1, False, "max-cost $5.00: it is $7.10"),
        Gate("max-peak", 9, 8, True, "max-peak 9: 8"),
    )
    checked = [Checked("a", "a", (found(),), gates), Checked("b", "b", error=InputError("torn", hint="try again"))]
    text = github.summary(checked, reports=[Report("health", "Two sessions", facts=(Fact("Health", "so so"),))])
    assert text.startswith("# ctxctl health: 1 gate failed, 1 warning, 1 file not read in 2 sessions\n")
    assert "| FAILED | a | max-cost $5.00: it is $7.10 |" in text and "| passed | a | max-peak 9: 8 |" in text
    assert "| b | torn | try again |" in text and "# Two sessions" in text and "- **Health**: so so" in text


def test_without_reports_the_summary_lists_sessions_and_findings() -> None:
    text = github.summary([Checked("a", "a", (found(message="x | y"), found(level="critical")))], command="budget")
    assert text.startswith("# ctxctl budget: 1 critical, 1 warning in 1 session\n")
    assert r"| warning | repeated\_calls | a | turn 7: x \| y | do this |" in text
    assert text.index("| critical | repeated") < text.index("| warning | repeated")


@pytest.mark.parametrize("room", [0, 10, 200, 5_000, 10**6])
def test_the_summary_fits_and_says_so_when_it_is_cut(room: int) -> None:
    rows = tuple((f"ä{n}",) for n in range(1000))
    report = Report("health", "many", tables=(Table("t", (Column("session"),), rows),))
    text = github.summary([Checked("a", "a")], reports=[report], room=room)
    assert len(text.encode()) <= room
    if 200 <= room < 10**6:
        assert text.endswith("did not fit into the summary of a step.\n") and "\n\n" in text


@given(CHECKED)
def test_any_text_stays_in_its_cell(checked: list[Checked]) -> None:
    text = github.summary(checked)
    text.encode()
    for line in text.split("\n"):
        if line.startswith("|") and not line.startswith("|-"):
            cells = re.split(r"(?<!\\)\|", line.replace("\\\\", ""))
            assert len(cells) in (5, 7, 6)
