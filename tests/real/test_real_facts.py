"""The summary of real sessions against an extraction of its own (real_extraction).

What the tool calls of the main thread say was changed, planned, tested and committed is in the summary, and nothing
else is in those lists.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from real_extraction import READERS, Found, extract, plain

from ctxctl.errors import CtxctlError
from ctxctl.facts.session import SessionFacts
from ctxctl.facts.summary import as_json, from_json, parse, render
from ctxctl.formats.read import scan
from ctxctl.model.block import MAIN, Block
from ctxctl.model.summary import SessionSummary


def summary_of(path: Path) -> tuple[str, SessionSummary]:
    facts = SessionFacts()
    number = -1

    def see(block: Block) -> None:
        nonlocal number
        number += 1
        if block.thread == MAIN:
            facts.see(block, number)

    transcript = scan(str(path), see)
    return transcript.format, facts.summary()


@pytest.fixture(scope="module")
def sessions(transcripts: Path) -> list[tuple[str, SessionSummary, Found]]:
    made = []
    for path in sorted(transcripts.glob("*/*")):
        if path.name == "tau-airline-60.jsonl":  # sixty sessions in one file; no file, plan, test or commit in any
            continue
        try:
            name, summary = summary_of(path)
        except CtxctlError:
            continue
        made.append((f"{path.parent.name}/{path.name}", summary, extract(READERS[name](path))))
    return made


def test_there_are_sessions_to_compare(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    assert len(sessions) > 60
    assert sum(len(found.changed) for _, _, found in sessions) > 200
    assert sum(len(found.tests) for _, _, found in sessions) > 60
    assert sum(len(found.todos or ()) for _, _, found in sessions) > 30
    assert sum(len(found.commits) for _, _, found in sessions) > 5


def test_changed_files(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    for name, summary, found in sessions:
        changed = {fact.path for fact in summary.files if fact.role == "modified"}
        assert changed == {path.removeprefix("./") for path in found.changed}, name


def test_to_do_lists(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    for name, summary, found in sessions:
        assert [(todo.text, todo.status) for todo in summary.todos] == (found.todos or []), name


def test_outcomes_of_tests(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    for name, summary, found in sessions:
        assert {tuple(shlex.split(run.command)): run.outcome for run in summary.tests} == found.tests, name


def test_commits(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    for name, summary, found in sessions:
        assert [(commit.id, commit.message) for commit in summary.commits] == found.commits, name


def test_final_diffs(transcripts: Path) -> None:
    """What a run handed in names each file of the final state: nearly all are known from its commands.

    The others were made by programs under names that do not stand in them.
    """
    handed, missing = 0, 0
    for path in sorted((transcripts / "mini-swe-agent").glob("*.traj.json")):
        value = json.loads(path.read_bytes())
        last = value[-1] if isinstance(value, list) else value["messages"][-1]
        files = set(re.findall(r"^diff --git a/(\S+) b/", plain(last.get("content")), re.M))
        changed = {fact.path.removeprefix("/testbed/") for fact in summary_of(path)[1].files if fact.role == "modified"}
        handed += len(files)
        missing += len(files - changed)
    assert handed > 50
    assert missing <= 5


def test_the_text_holds_them_and_reads_back(sessions: list[tuple[str, SessionSummary, Found]]) -> None:
    for name, summary, _ in sessions:
        text = render(summary, len, 10**9)
        back = parse(text)
        assert back is not None, name
        assert render(back, len, 10**9) == text, name
        assert {f.path for f in back.files if f.role == "modified"} == {
            f.path for f in summary.files if f.role == "modified"
        }
        assert sorted((t.text, t.status) for t in back.todos) == sorted((t.text, t.status) for t in summary.todos)
        assert sorted((r.command, r.outcome) for r in back.tests) == sorted(
            (r.command, r.outcome) for r in summary.tests
        )
        assert [(c.id, c.message) for c in back.commits] == [(c.id, c.message) for c in summary.commits]
        assert from_json(as_json(summary)) == summary
        for most in (60, 200, 1000):
            assert len(render(summary, len, most, omit_goal=True)) <= max(most, 30)
