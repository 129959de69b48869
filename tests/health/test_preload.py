"""What many sessions of one project load first, and what they are given and never use."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.preload import Preload
from ctxctl.model.finding import Finding

RULES = (
    "<system-reminder>\nCodebase and user instructions are shown below.\n\n"
    "Contents of /code/app/CLAUDE.md (project instructions, checked into the codebase):\n\n"
    + lines_of(60, "rule")
    + "\n</system-reminder>"
)


def session(
    folder: Path, number: int, *, reads: bool = False, given: bool = False, uses: bool = False, **more: str
) -> ClaudeSession:
    made = ClaudeSession(folder, f"s{number}", **more)
    if given:
        made.user(RULES, isMeta=True)
    made.user(f"Please do task {number}.")
    if reads:
        made.read("/code/app/docs/architecture.md", lines_of(30, "layer"))
    made.bash("make", "ok")
    made.answer("As rule_7 says." if uses else "Done.")
    return made


def over(sessions: list[ClaudeSession]) -> list[tuple[str, Finding]]:
    detector = Preload()
    notes = []
    for made in sessions:
        examined = made.examine()
        if (note := detector.note(examined)) is not None:
            notes.append((examined.path, note))
    return list(detector.over(notes))


def test_a_file_that_most_sessions_read_first(tmp_path: Path) -> None:
    made = [session(tmp_path, n, reads=n < 3) for n in range(5)]
    ((path, finding),) = over(made)
    assert path == str(made[2].path)
    assert "3 of 5 sessions in /code/app read docs/architecture.md within their first 5 model calls" in finding.message
    assert "project instructions" in finding.hint
    assert finding.evidence is not None and finding.evidence.counts["readers"] == 3


@pytest.mark.parametrize(("sessions", "readers"), [(4, 4), (6, 3), (5, 2)])
def test_few_sessions_or_half_of_them_tell_nothing(tmp_path: Path, sessions: int, readers: int) -> None:
    assert over([session(tmp_path, n, reads=n < readers) for n in range(sessions)]) == []


def test_sessions_of_other_projects_do_not_count(tmp_path: Path) -> None:
    assert over([session(tmp_path, n, reads=True, cwd="/code/app" if n % 2 else "/code/lib") for n in range(8)]) == []


def test_what_is_read_later_is_not_read_first(tmp_path: Path) -> None:
    made = []
    for n in range(6):
        late = session(tmp_path, n)
        late.user("And now the architecture.")
        late.read("/code/app/docs/architecture.md", lines_of(30, "layer"))
        late.answer("Read.")
        made.append(late)
    assert over(made) == []


@pytest.mark.parametrize(("users", "told"), [(0, True), (1, True), (2, False), (5, False)])
def test_a_document_that_hardly_any_session_used(tmp_path: Path, users: int, told: bool) -> None:
    found = over([session(tmp_path, n, given=True, uses=n < users) for n in range(5)])
    assert len(found) == int(told)
    if told:
        ((_, finding),) = found
        assert "/code/app/CLAUDE.md" in finding.message and f"and {users} of them used" in finding.message


def test_a_short_document_may_stay(tmp_path: Path) -> None:
    short = RULES.replace(lines_of(60, "rule"), "Use tabs.")
    made = []
    for n in range(5):
        one = ClaudeSession(tmp_path, f"s{n}")
        one.user(short, isMeta=True)
        one.user(f"Please do task {n}.")
        one.answer("Done.")
        made.append(one)
    assert over(made) == []
