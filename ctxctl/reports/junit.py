"""JUnit XML, as GitLab, Jenkins, GitHub Actions and others read it.

Elements and attributes are those of the schema of Jenkins' xUnit plugin (junit-10.xsd), so that a strict reader takes
it too: <https://github.com/jenkinsci/xunit-plugin>.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from xml.etree import ElementTree

from ctxctl.health.codes import rules
from ctxctl.health.gates import fails
from ctxctl.model.finding import Finding, Gate
from ctxctl.model.text import clean
from ctxctl.reports.document import Checked
from ctxctl.reports.github import turn_of
from ctxctl.reports.places import place

_ILLEGAL = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't hold, not even escaped; CR, which readers turn into LF, is taken out before."""


def render(
    checked: Sequence[Checked],
    gates: Sequence[Gate] = (),
    *,
    failing: Set[str] = frozenset(),
    command: str = "health",
    root: str | None = None,
    codes: Sequence[str] | None = None,
) -> str:
    """One suite per session, with a case per gate and one per code of an alert or detector; a last suite holds the
    gates over all sessions.

    A case fails for a gate that did not pass, and for findings that `failing` asks for (words of --fail-on); other
    findings stand in the output of a case that passes. A file that could not be read is an error. codes: that have a
    case; by default those of health. root: of the repository, for names that don't depend on where it lies.
    """
    known = [rule.code for rule in rules()] if codes is None else list(codes)
    suites = ElementTree.Element("testsuites", {"name": f"ctxctl {command}"})
    for file in checked:
        _suite(suites, file, failing, command, known, root)
    if gates:
        suite = ElementTree.SubElement(suites, "testsuite", {"name": "all sessions"})
        for gate in gates:
            _gate(suite, f"ctxctl.{command}", gate)
        _counted(suite)
    for name in ("tests", "failures", "errors"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(
    suites: ElementTree.Element, file: Checked, failing: Set[str], command: str, known: list[str], root: str | None
) -> None:
    name = _text(place(file.title, root))
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, "file": _text(place(file.path, root))})
    # readers take what stands before the last dot for a package
    of = f"ctxctl.{command}.{name.replace('.', '_')}"
    if file.error is not None:
        case = ElementTree.SubElement(suite, "testcase", {"name": "read", "classname": of})
        error = ElementTree.SubElement(case, "error", {"type": file.error.code, "message": _text(file.error.message)})
        where = f"line {file.error.line}: " if file.error.line is not None else ""
        error.text = _text(f"{where}{file.error.message}\n{file.error.hint or ''}".rstrip())
    else:
        for gate in file.gates:
            _gate(suite, of, gate)
        found: dict[str, list[Finding]] = {code: [] for code in known}
        for item in file.findings:
            found.setdefault(item.code, []).append(item)
        for code, items in found.items():
            _code(suite, of, code, items, failing)
    _counted(suite)


def _gate(suite: ElementTree.Element, of: str, gate: Gate) -> None:
    name = gate.name if gate.name != "fail-on" else f"fail-on {gate.limit}"
    case = ElementTree.SubElement(suite, "testcase", {"name": _text(name), "classname": of})
    if gate.ok:
        ElementTree.SubElement(case, "system-out").text = _text(gate.text)
    else:
        failure = ElementTree.SubElement(case, "failure", {"type": "gate", "message": _text(gate.text)})
        failure.text = _text(f"limit {gate.limit}, value {'not measured' if gate.value is None else gate.value}")


def _code(suite: ElementTree.Element, of: str, code: str, items: Sequence[Finding], failing: Set[str]) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"name": _text(code), "classname": of})
    bad = [item for item in items if fails(item, failing)]
    if bad:
        first = f"{turn_of(bad[0])}{bad[0].message}"
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        failure = ElementTree.SubElement(case, "failure", {"type": bad[0].level, "message": _text(first + more)})
        failure.text = _text("\n".join(map(_line, bad)))
    if rest := [item for item in items if item not in bad]:
        ElementTree.SubElement(case, "system-out").text = _text("\n".join(map(_line, rest)))


def _line(item: Finding) -> str:
    where = f"line {item.line}, " if item.line is not None else ""
    return f"{item.level}: {where}{turn_of(item)}{item.message}" + (f"\n  hint: {item.hint}" if item.hint else "")


def _counted(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", "0")


def _text(text: str) -> str:
    """A text that XML can hold: what it can't becomes U+FFFD."""
    return _ILLEGAL.sub("\ufffd", clean(text).replace("\r\n", "\n").replace("\r", "\n"))
