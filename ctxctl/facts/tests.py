"""Test runs: which commands run tests, and how they went by their exit status and their own figures."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Literal, NamedTuple

from ctxctl.facts.runners import RUNNERS, runs_tests
from ctxctl.facts.shell import Command
from ctxctl.model.summary import TestRun
from ctxctl.model.text import shortened

_ONLY_ASKS = frozenset(("--help", "-h", "--version", "--collect-only", "--co", "-list", "--list", "--list-tests"))
Outcome = Literal["passed", "failed", "unknown"]
_FIGURES = r"[\w ,:.|()%/-]*"
_FAILED = re.compile(
    r"(?:" + _FIGURES + r"\b[1-9]\d* (?:failed|errors?|exceptions?)\b" + _FIGURES + r"\bin [\d.]+ ?s.*"
    r"|tests finished: .*\b[1-9]\d* (?:failed|exceptions?)\b.*"
    r"|FAILED \((?:failures|errors|unexpected)=.*"
    r"|FAIL(?:\s.*)?|--- FAIL: .*"
    r"|test result: FAILED.*"
    r"|[ \t]*(?:Tests|Test Suites|Test Files):?[ \t]+" + _FIGURES + r"\b[1-9]\d* failed.*"
    r"|[ \t]*[1-9]\d* failing\b.*"
    r"|[#ℹ] fail [1-9].*"
    r"|.*Tests run:.*(?:Failures|Errors): [1-9].*"
    r"|.*\bBUILD FAIL(?:ED|URE)\b.*"
    r"|\d+ examples?, [1-9]\d* failures?.*"
    r"|Tests: \d+.*(?:Failures|Errors): [1-9].*"
    r"|\d+% tests passed, [1-9]\d* tests? failed.*"
    r"|Failed!  - .*"
    r"|[ \t]*[1-9]\d* failed[ \t]*"
    r"|.*\bERROR task failed.*|npm ERR! Test failed.*|.*ELIFECYCLE.*Test failed.*)$"
)
_PASSED = re.compile(
    r"(?:" + _FIGURES + r"\b\d+ passed\b" + _FIGURES + r"\bin [\d.]+ ?s.*"
    r"|tests finished: \d+ passed.*"
    r"|OK(?: \(.*)?|PASS|--- PASS: .*|ok[ \t]+\S+[ \t]+.*"
    r"|test result: ok\..*"
    r"|[ \t]*(?:Tests|Test Suites|Test Files):?[ \t]+" + _FIGURES + r"\b\d+ passed.*"
    r"|[ \t]*\d+ passing\b.*"
    r"|[#ℹ] pass [1-9].*"
    r"|.*Tests run: \d+, Failures: 0, Errors: 0.*"
    r"|.*\bBUILD SUCCESS(?:FUL)?\b.*"
    r"|\d+ examples?, 0 failures.*"
    r"|100% tests passed.*"
    r"|Passed!  - .*"
    r"|[ \t]*\d+ passed(?: \(.*\))?[ \t]*)$"
)
_HINT = re.compile(r"[Ff]ail|FAIL|[Pp]ass|PASS|^ok|OK|rror|xception|BUILD|ELIFECYCLE|ERROR task", re.MULTILINE)
_COUNTED = re.compile(r"\d+ (?:failed|passed|passing|failing|examples?|errors?)|(?:failures|errors)=\d|Tests run")
_WORDS = ("test", "check", "spec", "verify", "cypress", "npm t")
_MISSING = re.compile(
    r"No module named ['\"]?(?:pytest|nose|tox|nox)\b|: (?:command )?not found\b|is not recognized as an"
)
_BACKGROUND = ("Command running in background", "Command was manually backgrounded", "Process running with session")
NEAR = 12_000
"""Characters of an output, from its end, in which figures are looked for."""
DETAIL, LONGEST = 160, 300


class Asked(NamedTuple):
    """A command of a script that runs tests. own: whether the script's exit status is the command's; needed: whether
    the script can't succeed unless the command does."""

    command: str
    own: bool
    needed: bool


def asked(parts: list[Command], script: str) -> list[Asked]:
    """The commands of a script that run tests."""
    found = []
    for at, command in enumerate(parts):
        if not (command.name in RUNNERS or any(word in script for word in _WORDS)):
            continue
        if runs_tests(command.words) and not _ONLY_ASKS.intersection(command.words):
            behind = [part.after for part in parts[at:-1]]
            ends = parts[-1].after in ("", "\n", ";")
            piped = set(behind) <= {"|"} and "pipefail" in script
            needed = ends and (set(behind) <= {"&&"} or piped)
            text = " ".join(" ".join(command.raw).split())
            text = text if len(text) <= LONGEST else shortened(text, LONGEST - 1) + "…"
            found.append(Asked(text, ends and (not behind or piped), needed))
    return found


def judge(text: str, status: int | None) -> tuple[Outcome, str] | None:
    """How a run went and its own line of figures; None when no test was run at all.

    text: what it printed. status: of the runner itself, None where it is not known.
    """
    near = text[-NEAR:]
    told = _told(near)
    failures = [line for line in told if _FAILED.match(line)]
    if status not in (0, None) and not failures and _MISSING.search(near[-2_000:]):
        return None
    passes = [line for line in told if _PASSED.match(line)]
    if text.startswith(_BACKGROUND):
        return "unknown", ""
    if status is not None:
        outcome: Outcome = "failed" if status else "passed"
    else:
        outcome = "failed" if failures else "passed" if passes else "unknown"
    return outcome, _detail(failures if outcome == "failed" else passes)


def shows_failures(text: str) -> bool:
    """Whether an output counts failures by its own figures."""
    return any(_FAILED.match(line) and _COUNTED.search(line) for line in _told(text[-NEAR:]))


def _told(text: str) -> list[str]:
    """The lines of an output that may tell how a run went: the long expressions see only these."""
    found: dict[str, None] = {}
    done = 0
    for match in _HINT.finditer(text):
        if match.start() >= done:
            end = text.find("\n", match.end())
            done = len(text) if end < 0 else end
            line = text[text.rfind("\n", 0, match.start()) + 1 : done].strip(" \t\r=")
            if len(line) <= LONGEST:
                found[line] = None
    return list(found)


def _detail(lines: list[str]) -> str:
    """The line that says most: the one with counts, else a named failure, else the last."""
    for line in reversed(lines):
        if _COUNTED.search(line):
            return shortened(" ".join(line.split()), DETAIL)
    for line in lines:
        if line.startswith(("--- FAIL", "FAIL\t", "FAIL ")):
            return shortened(" ".join(line.split()), DETAIL)
    return shortened(" ".join(lines[-1].split()), DETAIL) if lines else ""


class RunLog:
    """Collects test runs; the newest of each command holds."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, TestRun, bool]] = []

    def add(
        self, number: int, turn: int, wanted: list[Asked], text: str, status: int | None, *, shrunk: bool = False
    ) -> None:
        """Take the test runs of a call. text: what it printed, or what is left of that (shrunk). status: exit status
        of its script."""
        for command, own, needed in wanted:
            found = judge(text, status if own or (needed and status == 0) else None)
            if found is not None:
                self._seen.append((number, TestRun(command, found[0], found[1], turn), shrunk))

    def fold(
        self, gone: Container[int], before: Iterable[TestRun] = (), *, own: Iterable[TestRun] = ()
    ) -> tuple[TestRun, ...]:
        """The newest run of each command, oldest first. before: runs of earlier summaries, which know more than what
        is left of an output. own: of what was read before."""
        known = {run.command: run for run in before}
        newest: dict[str, TestRun] = {run.command: run for run in own}
        for number, run, shrunk in self._seen:
            if number not in gone:
                told = newest.pop(run.command, None) or known.get(run.command)
                same = shrunk and told is not None and run.outcome in ("unknown", told.outcome)
                newest[run.command] = told if same and told is not None else run
        return tuple(newest.values())
