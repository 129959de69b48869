"""JUnit XML: parsed back, and held against the structure of junit-10.xsd (Jenkins' xUnit plugin), written down here."""

from __future__ import annotations

from xml.etree import ElementTree

from ci_texts import CHECKED, GATES, found
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.health.codes import rules
from ctxctl.model.finding import Gate
from ctxctl.reports import junit
from ctxctl.reports.document import Checked

# element: attributes that it must have, that it may have, and its children
STRUCTURE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": ({"name"}, {"time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}


def parsed(*checked: Checked, gates: tuple[Gate, ...] = (), **more: object) -> ElementTree.Element:
    """The document, after a look at its structure and its sums."""
    root = ElementTree.fromstring(junit.render(checked, gates, **more).encode())  # type: ignore[arg-type]
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, allowed, children = STRUCTURE[element.tag]
        assert needed <= set(element.attrib) <= needed | allowed, element.tag
        assert {child.tag for child in element} <= children, element.tag
        if children:
            assert not (element.text or "").strip() and not any((child.tail or "").strip() for child in element)
    for suite in [root, *root]:
        assert suite.get("tests") == str(len(list(suite.iter("testcase"))))
        assert suite.get("failures") == str(len(list(suite.iter("failure"))))
        assert suite.get("errors") == str(len(list(suite.iter("error"))))
    return root


def cases(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {str(case.get("name")): case for case in root.iter("testcase")}


def test_a_suite_per_session_with_a_case_per_code() -> None:
    root = parsed(Checked("runs/a.jsonl", "runs/a.jsonl"), Checked("b", "b"))
    assert [suite.get("name") for suite in root] == ["runs/a.jsonl", "b"]
    assert [case.get("name") for case in root[0]] == [rule.code for rule in rules()]
    assert {case.get("classname") for case in root[0]} == {"ctxctl.health.runs/a_jsonl"}
    assert root.get("failures") == "0" and root.get("name") == "ctxctl health"


def test_findings_fail_from_the_level_on_that_is_asked_for() -> None:
    items = (found("reload", "info"), found("token_drift", "warning"), found("repeated_calls", "critical"))
    for failing, expected in (
        (set(), set()),
        ({"critical"}, {"repeated_calls"}),
        ({"warning"}, {"token_drift", "repeated_calls"}),
        ({"info"}, {"reload", "token_drift", "repeated_calls"}),
        ({"reload"}, {"reload"}),
        ({"regression", "damage"}, set()),
    ):
        got = cases(parsed(Checked("a", "a", items), failing=failing))
        assert {name for name, case in got.items() if case.find("failure") is not None} == expected
        shown = got["reload"].find("failure" if "reload" in expected else "system-out")
        assert shown is not None and shown.text == "info: line 41, turn 7: said\n  hint: do this"


def test_what_does_not_fail_stays_in_the_output_of_the_case() -> None:
    items = (found(message="one"), found(message="two", level="info"), found(message="three"))
    case = cases(parsed(Checked("a", "a", items), failing={"warning"}))["repeated_calls"]
    failure, out = case.find("failure"), case.find("system-out")
    assert failure is not None and failure.get("message") == "turn 7: one (and 1 more)" and "three" in str(failure.text)
    assert out is not None and out.text == "info: line 41, turn 7: two\n  hint: do this"


def test_gates() -> None:
    gates = (
        Gate("fail-on", "warning", "critical", False, "2 of that level or above"),
        Gate("max-cost", 5.0, None, False, "max-cost could not be checked: no price"),
        Gate("max-peak", 9, 8, True, "max-peak 9: it is 8"),
    )
    root = parsed(
        Checked("a", "a", gates=gates), gates=(Gate("max-total-cost", 1.0, 2.0, False, "it is $2.00"),), codes=()
    )
    got = cases(root)
    assert list(got) == ["fail-on warning", "max-cost", "max-peak", "max-total-cost"]
    failure = got["max-cost"].find("failure")
    assert (
        failure is not None
        and failure.get("message") == gates[1].text
        and failure.text == "limit 5.0, value not measured"
    )
    assert got["max-peak"].findtext("system-out") == gates[2].text
    assert root[-1].get("name") == "all sessions" and root.get("failures") == "3"


def test_an_unreadable_file_is_an_error() -> None:
    root = parsed(Checked("b", "b", error=InputError("torn", hint="try again", line=3)))
    error = cases(root)["read"].find("error")
    assert error is not None and (error.get("type"), error.get("message")) == ("input", "torn")
    assert error.text == "line 3: torn\ntry again" and root.get("errors") == "1"


def test_characters_that_xml_can_not_hold() -> None:
    item = found(message='a\x00b\x1bc\ud800d\ufffee\x0b\tf\r\ng\U0001f600 ]]> <x> & "')
    case = cases(parsed(Checked("a\x00", "a\x00", (item,))))["repeated_calls"]
    assert case.findtext("system-out") == (
        'warning: line 41, turn 7: a\ufffdb\ufffdc\ufffdd\ufffde\ufffd\tf\ng\U0001f600 ]]> <x> & "\n  hint: do this'
    )


@given(CHECKED, st.lists(GATES, max_size=3), st.sets(st.sampled_from(("info", "warning", "critical", "token_drift"))))
def test_any_text_gives_xml_that_parses(checked: list[Checked], gates: list[Gate], failing: set[str]) -> None:
    root = parsed(*checked, gates=tuple(gates), failing=failing)
    assert len(root) == len(checked) + bool(gates)
