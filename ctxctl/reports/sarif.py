"""SARIF 2.1.0 (OASIS standard, docs.oasis-open.org/sarif/sarif/v2.1.0): findings for code scanning.

What GitHub needs beyond the standard: a location with a line for each result, and `primaryLocationLineHash`, which
keeps a finding the same one from run to run; it takes at most 25,000 results.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl import __version__
from ctxctl.health.codes import Rule, rules
from ctxctl.model.finding import Finding, FindingLevel, Gate
from ctxctl.model.text import clean
from ctxctl.reports.document import Checked
from ctxctl.reports.github import turn_of
from ctxctl.reports.json import dumps
from ctxctl.reports.places import STDIN, place, uri

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: dict[FindingLevel, str] = {"info": "note", "warning": "warning", "critical": "error"}
MOST = 25_000
"""Results of one run."""
QUOTES = 10
"""Passages per finding."""
ROOT = "%SRCROOT%"
_PLACEHOLDER = re.compile(r"\{(?=\d+\})")


def render(
    checked: Sequence[Checked],
    gates: Sequence[Gate] = (),
    *,
    command: str = "health",
    root: str | None = None,
    known: Sequence[Rule] | None = None,
) -> str:
    """One run: a rule per code, a result per finding and per gate that did not pass, a notification per file that could
    not be read.

    gates: over all files; they are told at the first one. root: of the repository; files inside are told relative to
    it. known: rules that are described; by default those of health. Codes that are not among them get a rule of their
    own.
    """
    described = {rule.code: _rule(rule) for rule in (rules() if known is None else known)}
    results = list(_results(checked, gates, root, described))
    left = max(0, len(results) - MOST)
    if left:
        results = sorted(results, key=lambda r: ("error", "warning", "note").index(r["level"]))[:MOST]
    index = {code: number for number, code in enumerate(described)}
    for result in results:
        result["ruleIndex"] = index[result["ruleId"]]
    run = {
        "tool": {"driver": {"name": "ctxctl", "version": __version__, "rules": list(described.values())}},
        "automationDetails": {"id": f"ctxctl/{command}/"},
        "invocations": [_invocation(checked, root, left)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "the root of the repository"}}},
        "results": results,
    }
    return dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=True).decode()


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in re.split(r"[_/-]", rule.code)),
        "shortDescription": {"text": _said(re.sub(r"[_/]", " ", rule.code))},
        "fullDescription": {"text": _said(rule.signal)},
        "help": {
            "text": _said(rule.fix),
            "markdown": f"**Signal:** {_said(rule.signal)}\n\n**Fix:** {_said(rule.fix)}",
        },
        "defaultConfiguration": {"level": LEVELS[rule.level]},
        "properties": {
            "tags": ["context-window", *rule.kind.split(" and ")],
            "problem.severity": _severity(rule.level),
        },
    }


def _severity(level: FindingLevel) -> str:
    return {"info": "recommendation", "warning": "warning", "critical": "error"}[level]


def _results(
    checked: Sequence[Checked], gates: Sequence[Gate], root: str | None, described: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    seen: dict[str, int] = {}
    for gate in gates:
        if not gate.ok:
            yield _gate(gate, checked[0].path if checked else STDIN, "all sessions together: ", root, described, seen)
    for file in checked:
        for gate in file.gates:
            if not gate.ok:
                yield _gate(gate, file.path, "", root, described, seen)
        for item in file.findings:
            if item.code not in described:
                words = item.code.replace("_", " ")
                described[item.code] = _rule(Rule(item.code, "finding", item.level, words, item.hint))
            yield _result(item, file.path, root, seen)


def _gate(
    gate: Gate, path: str, of: str, root: str | None, described: dict[str, dict[str, Any]], seen: dict[str, int]
) -> dict[str, Any]:
    code = "gate/" + gate.name.replace(" ", "/")
    if code not in described:
        signal = f"a value is beyond the limit that --{gate.name} or the settings give"
        described[code] = _rule(
            Rule(code, "gate", "critical", signal, "look at what the session spends, or move the limit")
        )
    return {
        "ruleId": code,
        "level": "error",
        "message": {"text": _said(f"{of}failed: {gate.text}")},
        "locations": [_location(path, None, root)],
        "partialFingerprints": _fingerprints(seen, code, path, root),
        "properties": {"limit": gate.limit, "value": gate.value},
    }


def _result(item: Finding, path: str, root: str | None, seen: dict[str, int]) -> dict[str, Any]:
    evidence = item.evidence
    # what an alert says moves on with the newest turn, what a detector found stays where it is
    at = "" if evidence is None else str(evidence.turns[0] if evidence.turns else item.turn)
    result: dict[str, Any] = {
        "ruleId": item.code,
        "level": LEVELS[item.level],
        "message": {"text": _said(f"{turn_of(item)}{item.message}\n{item.hint}".rstrip())},
        "locations": [_location(path, item.line, root)],
        "partialFingerprints": _fingerprints(seen, item.code, path, root, at),
        "properties": {"turn": item.turn, "hint": item.hint},
    }
    if evidence is not None:
        result["properties"] |= {"turns": list(evidence.turns), "evidence": dict(evidence.counts)}
        if evidence.quotes:
            result["relatedLocations"] = [
                {**_location(path, q.line, root), "message": {"text": _said(f"turn {q.turn}: {q.text}")}}
                for q in list(dict.fromkeys(evidence.quotes))[:QUOTES]
            ]
    return result


def _location(path: str, line: int | None, root: str | None) -> dict[str, Any]:
    found, inside = uri(path, root)
    artifact: dict[str, Any] = {"uri": found}
    if inside:
        artifact["uriBaseId"] = ROOT
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(line or 1, 1)}}}


def _fingerprints(seen: dict[str, int], code: str, path: str, root: str | None, at: str = "") -> dict[str, str]:
    """The same for the same finding in a later run. Several of one code at one turn are told apart by their order."""
    base = hashlib.sha256(clean(f"{code}\0{place(path, root)}\0{at}").encode()).hexdigest()[:32]
    seen[base] = seen.get(base, 0) + 1
    return {"ctxctl/v1": f"{base}:{seen[base]}", "primaryLocationLineHash": f"{base[:16]}:{seen[base]}"}


def _invocation(checked: Sequence[Checked], root: str | None, left: int) -> dict[str, Any]:
    notes: list[dict[str, Any]] = []
    for file in checked:
        if file.error is not None:
            error = file.error
            notes.append(
                {
                    "level": "error",
                    "descriptor": {"id": error.code},
                    "message": {"text": _said(f"{error.message}\n{error.hint or ''}".rstrip())},
                    "locations": [_location(file.path, error.line, root)],
                }
            )
    failed = bool(notes)
    if left:
        notes.append({"level": "warning", "message": {"text": f"{left:,} of the mildest results were left out"}})
    return {"executionSuccessful": not failed, "toolExecutionNotifications": notes}


def _said(text: str) -> str:
    """A text without what SARIF reads as a placeholder ({0}) or a link ([words](target)); never empty."""
    return _PLACEHOLDER.sub("{ ", clean(text)).replace("](", "] (") or "-"
