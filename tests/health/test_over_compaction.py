"""What is needed right after a compaction, and was there before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.over_compaction import TARGETS, OverCompaction
from ctxctl.model.finding import Finding

SUMMARY = (
    "1. Primary Request and Intent: move the parsers to the new lexer.\n\nOptional Next Step: run the parser tests."
)


def found(session: ClaudeSession) -> list[Finding]:
    return list(OverCompaction().find(session.examine()))


def path(number: int) -> str:
    return f"/code/app/src/parser_{number}.py"


def reread(
    folder: Path,
    *,
    files: int = TARGETS,
    compact: bool = True,
    before: bool = True,
    lines: int = 60,
    wait: int = 0,
    change: bool = False,
    then: Callable[[ClaudeSession], None] | None = None,
) -> ClaudeSession:
    """Files are read, the window is compacted, and the files are read again."""
    session = ClaudeSession(folder)
    session.user("Move the parsers to the new lexer.")
    if before:
        for number in range(files):
            session.read(path(number), lines_of(lines, f"p{number}"))
    session.bash("make test", "2 failed")
    if compact:
        session.compact(SUMMARY)
    for number in range(wait):
        session.bash(f"make step-{number}", "ok")
    for number in range(files):
        text = lines_of(lines, f"p{number}")
        session.read(path(number), text.replace("flag", "option") if change else text)
    if then is not None:
        then(session)
    session.answer("Now all is clear.")
    return session


def test_unchanged_files_that_are_read_again_are_told(tmp_path: Path) -> None:
    (finding,) = found(reread(tmp_path))
    assert finding.evidence is not None
    assert finding.evidence.counts["targets"] == TARGETS
    assert finding.turn == 5
    assert "src/parser_0.py" in finding.hint
    assert f"{finding.evidence.counts['tokens']:,.0f} tokens" in finding.message


@pytest.mark.parametrize(
    "cause",
    [{"compact": False}, {"before": False}, {"files": TARGETS - 1}, {"lines": 5}, {"wait": 10}, {"change": True}],
    ids=["no compaction", "never read before", "too few", "too little", "later", "changed"],
)
def test_it_goes_with_its_cause(tmp_path: Path, cause: dict[str, bool]) -> None:
    assert found(reread(tmp_path, **cause)) == []  # type: ignore[arg-type]


def test_what_the_client_demands_before_an_edit_is_none(tmp_path: Path) -> None:
    def edits(session: ClaudeSession) -> None:
        for number in range(TARGETS):
            session.edit(path(number), lines_of(60, f"p{number}").split("\n")[2], "    new = 1")

    assert found(reread(tmp_path, then=edits)) == []


def test_an_agent_that_asks_what_it_was_doing_is_told(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Move the parsers to the new lexer.")
    session.bash("make test", "2 failed")
    session.compact("The user and the assistant worked on the parsers.")
    session.answer("I have the summary, but what was I working on when it ended? Please tell me.")
    session.user("the failing tests")
    session.answer("Thank you.")
    (finding,) = found(session)
    assert "asked what it had been doing" in finding.message
    assert finding.evidence is not None
    assert "what was I working on" in finding.evidence.quotes[0].text


def test_an_agent_that_goes_on_is_not(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Move the parsers to the new lexer.")
    session.bash("make test", "2 failed")
    session.compact(SUMMARY)
    session.answer("The parser tests were failing; I'll see what I was doing in `git diff`.")
    session.bash("git diff", "diff --git a/src/parser.py b/src/parser.py")
    session.answer("Which of both names would you like for the lexer?")
    assert found(session) == []
