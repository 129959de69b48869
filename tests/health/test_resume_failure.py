"""Windows that began with a resume: which went on well, and why the others did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sessions import ClaudeSession

from ctxctl.health.detectors.resume_failure import ResumeFailure
from ctxctl.health.resumes import resumes_of

SUMMARY = (
    "1. Primary Request and Intent: replace the date library.\n\n"
    "Pending Tasks:\n- migrate the reports\n\nOptional Next Step: migrate the reports."
)
PROMPT = """[CONTEXT_WINDOW_RESUME]
Background from window 1. Confirm the next step before acting.
## Goal (from: transcript)
> Replace the date library.
## Current step (from: transcript)
Current step (in progress, not finished): migrate the reports
Progress: 1 of 3 done
Next step: none is planned
## Completed, 1 of 1 (from: transcript)
- [x] s1: migrate the parser
[/CONTEXT_WINDOW_RESUME]"""
LISTED = (
    ("migrate the parser", "completed"),
    ("migrate the reports", "in_progress"),
    ("remove the package", "pending"),
)


def resumed(folder: Path, *, name: str = "session") -> ClaudeSession:
    """A session that was compacted in the middle of its work."""
    session = ClaudeSession(folder, name)
    session.user("Replace the date library.")
    session.todos(*LISTED)
    session.edit("/code/app/src/parser.py", "import moment", "import dates")
    session.bash("git commit -am 'migrate the parser'", "[main 1a2b3c4] migrate the parser")
    session.compact(SUMMARY)
    return session


def judged(session: ClaudeSession) -> list[tuple[bool, str]]:
    return [(one.ok, one.why) for one in resumes_of(session.examine())]


def goes_on(session: ClaudeSession) -> None:
    session.todos(*LISTED)
    session.read("/code/app/src/reports.py", "import moment")
    session.edit("/code/app/src/reports.py", "import moment", "import dates")
    session.bash("git commit -am 'migrate the reports'", "[main 5d6e7f8] migrate the reports")
    session.answer("The reports are migrated.")


def asks(session: ClaudeSession) -> None:
    session.answer("I don't have any context of what we were doing. Could you remind me?")


def is_idle(session: ClaudeSession) -> None:
    session.answer("I have read the summary. What would you like me to work on next?")


def repeats_edit(session: ClaudeSession) -> None:
    (call,) = session.answer(
        calls=[
            (
                "Edit",
                {"file_path": "/code/app/src/parser.py", "old_string": "import moment", "new_string": "import dates"},
            )
        ]
    )
    session.result(call, "<tool_use_error>String to replace not found in file.</tool_use_error>", error=True)
    session.answer("It was done before.")


def repeats_commit(session: ClaudeSession) -> None:
    said = "Exit code 1\nOn branch main\nnothing to commit, working tree clean"
    session.bash("git commit -am 'migrate the parser'", said, error=True)
    session.answer("It was committed before.")


def reopens(session: ClaudeSession) -> None:
    session.todos(("migrate the parser", "in_progress"), ("migrate the reports", "pending"))
    session.answer("I begin with the parser.")


def strays(session: ClaudeSession) -> None:
    session.todos(
        ("write onboarding guide", "in_progress"), ("draw logo", "pending"), ("tweet announcement", "pending")
    )
    session.answer("First comes the guide.")


def is_reminded(session: ClaudeSession) -> None:
    session.bash("npm outdated", "react 18 19")
    session.answer("I will upgrade react.")
    session.user("no, we were in the middle of the date library, please go on with that")
    session.answer("Right.")


@pytest.mark.parametrize(
    ("goes_wrong", "why"),
    [
        (asks, "asked what it had been doing"),
        (is_idle, "asked what to do although work was going on"),
        (repeats_edit, "repeated what it had done in turn 2"),
        (repeats_commit, "repeated what it had done in turn 3"),
        (reopens, "took up again what was done: migrate the parser"),
        (strays, "went on with something else: write onboarding guide"),
        (is_reminded, "went on with something else, and the user had to say what the task is"),
    ],
)
def test_what_goes_wrong(tmp_path: Path, goes_wrong: Callable[[ClaudeSession], None], why: str) -> None:
    session = resumed(tmp_path)
    goes_wrong(session)
    ((ok, said),) = judged(session)
    assert not ok
    assert said.startswith(why)
    (finding,) = ResumeFailure().find(session.examine())
    assert why in finding.message
    assert finding.evidence is not None
    assert len(finding.evidence.quotes) >= 2


def test_a_window_that_goes_on(tmp_path: Path) -> None:
    session = resumed(tmp_path)
    goes_on(session)
    assert judged(session) == [(True, "")]
    assert list(ResumeFailure().find(session.examine())) == []


def other_request(session: ClaudeSession) -> None:
    session.user("Leave that. Write an onboarding guide instead, and redo the parser as well.")
    strays(session)
    reopens(session)


def done_and_asks(session: ClaudeSession) -> None:
    session.user("Thanks, that was all of it.")
    session.answer("Glad to help. What would you like me to work on next?")
    session.answer("Anything else?")


def checks_again(session: ClaudeSession) -> None:
    session.todos(*LISTED)
    session.bash("git log --oneline", "1a2b3c4 migrate the parser")
    session.bash("npm test", "12 passed")
    session.answer("All is as the summary says. Which name should the reports module have?")


@pytest.mark.parametrize("behaves", [other_request, done_and_asks, checks_again])
def test_what_is_no_failure(tmp_path: Path, behaves: Callable[[ClaudeSession], None]) -> None:
    """What the user asks for is no straying; a check repeats nothing; a question about the work goes on with it."""
    session = resumed(tmp_path)
    behaves(session)
    assert judged(session) == [(True, "")]


def test_a_window_without_answers_is_not_judged(tmp_path: Path) -> None:
    session = resumed(tmp_path)
    session.user("go on")
    assert judged(session) == []


@pytest.mark.parametrize("wrong", [True, False])
def test_a_session_that_begins_with_a_resume_prompt(tmp_path: Path, wrong: bool) -> None:
    session = ClaudeSession(tmp_path)
    session.user(PROMPT)
    if wrong:
        session.todos(("migrate the parser", "in_progress"), ("migrate the reports", "pending"))
    else:
        session.todos(("migrate the parser", "completed"), ("migrate the reports", "in_progress"))
    session.answer("I go on.")
    (one,) = resumes_of(session.examine())
    assert one.own
    assert one.ok != wrong


def test_a_session_without_a_resume_has_none(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Replace the date library. What were you doing before?")
    session.answer("I don't have any context of what we were doing before.")
    assert judged(session) == []


def test_each_window_counts(tmp_path: Path) -> None:
    session = resumed(tmp_path)
    goes_on(session)
    session.compact(SUMMARY)
    reopens(session)
    assert [ok for ok, _ in judged(session)] == [True, False]
