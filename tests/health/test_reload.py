"""The same document loaded in exchange after exchange."""

from __future__ import annotations

from pathlib import Path

from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.reload import Reload
from ctxctl.model.finding import Finding

GUIDE = lines_of(80, "guide")


def found(session: ClaudeSession) -> list[Finding]:
    return list(Reload().find(session.examine()))


def asked_about(folder: Path, exchanges: int, *, compact: bool = False, change: bool = False) -> ClaudeSession:
    session = ClaudeSession(folder)
    text = GUIDE
    for number in range(exchanges):
        session.user(f"Please do task {number} by the guide.")
        session.read("docs/guide.md", text)
        if change:
            session.edit("docs/guide.md", "guide_0 ", f"guide_0_{number} ")
            text = text.replace("    guide_0", f"    guide_0_{number}", 1)
        session.answer(f"Task {number} is done.")
        if compact:
            session.compact("The tasks so far are done.")
    session.answer("All done.")
    return session


def test_three_exchanges_that_load_the_same(tmp_path: Path) -> None:
    (finding,) = found(asked_about(tmp_path, 3))
    assert "docs/guide.md was loaded in 3 exchanges (turns 1, 3 and 5)" in finding.message
    assert "twice while it was still in the window" in finding.message and "compaction" not in finding.message
    assert finding.evidence is not None
    assert {k: finding.evidence.counts[k] for k in ("loads", "in_window", "after_compaction")} == {
        "loads": 3,
        "in_window": 2,
        "after_compaction": 0,
    }
    assert "turn 1" in finding.hint


def test_twice_is_not_again_and_again(tmp_path: Path) -> None:
    assert found(asked_about(tmp_path, 2)) == []


def test_after_compactions_the_cure_differs(tmp_path: Path) -> None:
    (finding,) = found(asked_about(tmp_path, 3, compact=True))
    assert "twice after a compaction had removed it" in finding.message and "still in" not in finding.message
    assert "pin docs/guide.md" in finding.hint


def test_a_document_that_changes_is_loaded_for_a_reason(tmp_path: Path) -> None:
    assert found(asked_about(tmp_path, 4, change=True)) == []


def test_within_one_exchange_it_is_another_failure(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    for _ in range(4):
        session.read("docs/guide.md", GUIDE)
    assert found(session) == []


def test_looking_up_a_few_lines_of_it_is_no_loading(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    part = "\n".join(GUIDE.split("\n")[10:15])
    for number in range(4):
        session.user(f"Question {number}?")
        if number == 0:
            session.read("docs/guide.md", GUIDE)
        else:
            session.call("Read", {"file_path": "docs/guide.md", "offset": 11, "limit": 5}, part)
        session.answer("Answered.")
    assert found(session) == []


def test_documents_of_other_tools(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    for number in range(3):
        session.user(f"Question {number}?")
        session.call("mcp__tickets__get_ticket", {"id": 77}, GUIDE)
        session.answer("Answered.")
    (finding,) = found(session)
    assert "get_ticket" in finding.message and "loaded in 3 exchanges" in finding.message


def test_small_ones_are_not_worth_a_word(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    for number in range(5):
        session.user(f"Question {number}?")
        session.read("VERSION", "1.2.3")
        session.answer("Answered.")
    assert found(session) == []
