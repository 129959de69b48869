"""Outdated results: those that take much of the window, an edit that used one, a decision that was taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.zombie_information import SHARE, TOKENS, ZombieInformation
from ctxctl.health.signals.superseded import covers
from ctxctl.model.finding import Finding

APP = "/code/app/src/app.py"


def found(session: ClaudeSession) -> list[Finding]:
    return list(ZombieInformation().find(session.examine()))


def rewritten(folder: Path, lines: int, *, change: bool = True, again: bool = True, filler: int = 0) -> ClaudeSession:
    """A file is read, changed in a line, and read again."""
    session = ClaudeSession(folder)
    session.user("Rename the value in app.py.")
    old = lines_of(lines)
    session.read(APP, old)
    if filler:
        session.bash("make docs", lines_of(filler, "doc"))
    if change:
        session.edit(APP, old.split("\n")[3], "    renamed = 1")
    if again:
        session.read(APP, old.replace(old.split("\n")[3], "    renamed = 1") if change else old)
    session.answer("Done.")
    return session


def test_an_outdated_reading_that_takes_much_is_told(tmp_path: Path) -> None:
    (finding,) = found(rewritten(tmp_path, 900))
    assert finding.evidence is not None
    counts = finding.evidence.counts
    assert counts["results"] == 1
    assert counts["tokens"] >= TOKENS
    assert counts["share"] >= SHARE
    assert "src/app.py (turn 1)" in finding.hint
    assert f"{counts['tokens']:,.0f} tokens" in finding.hint
    assert finding.turn == 3


@pytest.mark.parametrize("cause", [{"change": False}, {"again": False}], ids=["not changed", "not read again"])
def test_it_goes_with_its_cause(tmp_path: Path, cause: dict[str, bool]) -> None:
    """Without a change both readings are as good; without the second reading nothing else shows the file."""
    assert found(rewritten(tmp_path, 900, **cause)) == []


def test_an_ordinary_edit_after_a_reading_is_none(tmp_path: Path) -> None:
    assert found(rewritten(tmp_path, 200)) == []
    assert found(rewritten(tmp_path, 500, filler=9_000)) == []


def test_what_was_cleared_is_not_in_the_window_any_more(tmp_path: Path) -> None:
    session = rewritten(tmp_path, 900)
    session.user("And now the tests.")
    session.clear("toolu_0001")
    session.answer("They pass.")
    assert found(session) == []


def test_a_reading_of_another_part_does_not_take_its_place(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Rename the value in app.py.")
    old = lines_of(1_400).split("\n")
    session.read(APP, "\n".join(old[:900]))
    session.edit(APP, old[850], "    renamed = 1")
    session.read(APP, "\n".join(old[700:]))
    session.answer("Done.")
    assert found(session) == []


def test_a_file_that_was_written_whole_needs_no_old_reading(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Rewrite app.py.")
    session.read(APP, lines_of(900))
    session.call("Write", {"file_path": APP, "content": "print(1)\n"}, "The file has been updated.")
    session.answer("Done.")
    (finding,) = found(session)
    assert finding.evidence is not None
    assert finding.evidence.counts["files"] == 1


def test_a_write_that_failed_changes_nothing(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Rewrite app.py.")
    session.read(APP, lines_of(900))
    given = {"file_path": APP, "content": "print(1)\n"}
    session.call("Write", given, "<tool_use_error>Permission denied</tool_use_error>", error=True)
    session.answer("It is read-only.")
    assert found(session) == []


LINE = "    total = compute_total(rows, tax=0.19)"
NOT_FOUND = f"<tool_use_error>String to replace not found in file.\nString: {LINE}</tool_use_error>"


def failed_edit(folder: Path, *, change: bool = True, again: str = "", old: str = LINE) -> ClaudeSession:
    """A file is read and changed; then an edit with a text of the first reading fails."""
    session = ClaudeSession(folder)
    session.user("Fix the tax.")
    session.read(APP, f"     1\tdef total(rows):\n     2\t{LINE}\n     3\t    return total")
    if change:
        session.edit(APP, LINE, "    total = compute_total(rows, tax=RATE)")
    if again:
        session.read(APP, again)
    session.call("Edit", {"file_path": APP, "old_string": old, "new_string": "    pass"}, NOT_FOUND, error=True)
    session.answer("I read it again.")
    return session


def test_an_edit_that_used_an_outdated_text_is_told(tmp_path: Path) -> None:
    (finding,) = found(failed_edit(tmp_path))
    assert finding.evidence is not None
    assert finding.evidence.turns == (1, 2, 3)
    assert "compute_total(rows, tax=0.19)" in finding.evidence.quotes[-1].text
    assert "turn 1" in finding.hint


@pytest.mark.parametrize(
    "cause",
    [
        {"change": False},
        {"again": f"     1\tdef total(rows):\n     2\t{LINE}\n     3\t    return total"},
        {"old": LINE.strip().replace(" = ", "  = ")},
        {"old": "    something_that_never_stood_there = 1"},
    ],
    ids=["not changed", "still there", "copied wrong", "made up"],
)
def test_an_edit_that_failed_for_another_cause_is_none(tmp_path: Path, cause: dict[str, str | bool]) -> None:
    assert found(failed_edit(tmp_path, **cause)) == []  # type: ignore[arg-type]


def test_an_outdated_text_that_had_left_the_window_misleads_nobody(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Fix the tax.")
    session.read(APP, LINE)
    session.edit(APP, LINE, "    total = 1")
    session.clear("toolu_0001")
    session.call("Edit", {"file_path": APP, "old_string": LINE, "new_string": "    pass"}, NOT_FOUND, error=True)
    session.answer("I read it again.")
    assert found(session) == []


def relapse(folder: Path, *, said: str, later: str = "", command: str = "npm install left-pad") -> ClaudeSession:
    """The agent uses npm, is told not to, works on, and uses a program again."""
    session = ClaudeSession(folder)
    session.user("Add the padding helper.")
    session.bash("npm install left-pad", "added 1 package")
    session.answer("It is installed.")
    session.user(said)
    for number in range(4):
        session.bash(f"pnpm run check-{number}", "ok")
    if later:
        session.answer("All checks pass.")
        session.user(later)
    session.bash(command, "added 1 package")
    session.answer("Done.")
    return session


SAID = "Please use pnpm instead of npm here. Then run the checks."


def test_a_decision_that_was_taken_back_and_followed_again_is_told(tmp_path: Path) -> None:
    (finding,) = found(relapse(tmp_path, said=SAID))
    assert finding.evidence is not None
    assert "'npm'" in finding.message
    assert [quote.turn for quote in finding.evidence.quotes] == [1, 3, 7]
    assert finding.evidence.quotes[1].text == "Please use pnpm instead of npm here."


@pytest.mark.parametrize(
    "change",
    [
        {"said": "Thanks. Then run the checks."},
        {"command": "pnpm install left-pad"},
        {"command": "npm uninstall left-pad"},
        {"later": "For this one package npm is fine."},
        {"said": "Don't use npm install, use npm ci.", "command": "npm ci"},
        {"said": "Do not run npm before the checks pass."},
    ],
    ids=["nothing said", "followed", "taken out", "allowed again", "one subcommand", "on a condition"],
)
def test_a_decision_that_holds_or_is_followed_is_none(tmp_path: Path, change: dict[str, str]) -> None:
    assert found(relapse(tmp_path, **{"said": SAID, **change})) == []


@pytest.mark.parametrize(
    "said",
    [
        "Don't use npm.",
        "never use `npm` again",
        "Stop using npm, it breaks the lock.",
        "use pnpm, don't use npm - it is slow",
    ],
)
def test_ways_to_take_a_decision_back(tmp_path: Path, said: str) -> None:
    assert len(found(relapse(tmp_path, said=said))) == 1


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("abcdef", min_size=3, max_size=6), min_size=1, max_size=30, unique=True), st.data())
def test_covering(lines: list[str], data: st.DataObject) -> None:
    """All lines cover a reading, fewer than half of them never do, and more lines cover no less."""
    assert covers(set(lines), lines)
    some = set(data.draw(st.lists(st.sampled_from(lines), unique=True)))
    if 2 * len(some) < len(lines):
        assert not covers(some, lines)
    if covers(some, lines):
        assert covers(some | {"more"}, lines)
