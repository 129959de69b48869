"""Whole content where a part would have done."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.whole_content import WholeContent
from ctxctl.model.finding import Finding

TEXT = lines_of(400, "row")


def found(session: ClaudeSession) -> list[Finding]:
    return list(WholeContent().find(session.examine()))


def working(session: ClaudeSession, said: str) -> ClaudeSession:
    session.answer(said)
    for number in range(5):
        session.bash(f"make step{number}", f"ok {number}")
    session.answer("Done.")
    return session


def reading(folder: Path, said: str, **given: int) -> ClaudeSession:
    session = ClaudeSession(folder)
    session.user("Correct the table.")
    session.call("Read", {"file_path": "src/table.py", **given}, TEXT)
    return working(session, said)


def test_a_whole_file_of_which_two_lines_are_used(tmp_path: Path) -> None:
    (finding,) = found(reading(tmp_path, "The values of row_100 and row_103 are wrong."))
    assert finding.turn == 1 and finding.level == "warning" and finding.evidence is not None
    counts = finding.evidence.counts
    assert counts["lines"] == 400 and counts["used_lines"] == 2 and counts["tokens"] > 4_000
    assert "at most 2 of its 400 lines show up in later turns" in finding.message
    assert "Read with offset and limit (lines 98-107)" in finding.message
    assert any("row_100" in quote.text for quote in finding.evidence.quotes)


def test_a_file_of_which_many_places_are_used_is_none(tmp_path: Path) -> None:
    assert found(reading(tmp_path, "Wrong: " + ", ".join(f"row_{n}" for n in range(0, 400, 30)))) == []


def test_a_part_was_asked_for(tmp_path: Path) -> None:
    assert found(reading(tmp_path, "The value of row_100 is wrong.", offset=1, limit=400)) == []


def test_nothing_used_of_what_was_looked_up_belongs_to_another_detector(tmp_path: Path) -> None:
    assert found(reading(tmp_path, "I see.")) == []


def test_a_small_file_is_read_as_a_whole(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Correct the table.")
    session.read("src/table.py", lines_of(60, "row"))
    assert found(working(session, "The value of row_10 is wrong.")) == []


@pytest.mark.parametrize(
    ("command", "said", "instead"),
    [
        ("npm test", "All pass.", "| tail -n 30"),
        ("cat src/table.py", "row_7 is wrong.", "grep -n PATTERN src/table.py"),
        ("ls -R", "So row_7 it is.", "find -name PATTERN"),
        ("grep -rn row src", "So row_7 it is.", "grep -l"),
    ],
)
def test_the_narrower_call_is_named(tmp_path: Path, command: str, said: str, instead: str) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go on.")
    session.bash(command, TEXT)
    (finding,) = found(working(session, said))
    assert instead in finding.message and instead in finding.hint and f"`Bash {command}`" in finding.message


@pytest.mark.parametrize("command", ["npm test | tail -n 500", "sed -n '1,400p' src/table.py", "jq .rows table.json"])
def test_commands_that_ask_for_a_part_are_none(tmp_path: Path, command: str) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go on.")
    session.bash(command, TEXT)
    assert found(working(session, "So row_7 it is.")) == []


def test_sparing_little_is_a_hint(tmp_path: Path) -> None:
    session = reading(tmp_path, "The values of row_100 and row_103 are wrong.")
    session.answer("Done.", prompt=190_000)
    (finding,) = found(session)
    assert finding.level == "info"


def test_what_was_understood_and_told_in_other_words_was_used(tmp_path: Path) -> None:
    words = ("customs", "declare", "parcel", "weight", "border", "officer", "invoice", "stamp", "courier", "refund")
    text = "\n".join(f"Rule {n}: the {words[n % 10]} office wants number {n}." for n in range(300))
    session = ClaudeSession(tmp_path)
    session.user("Explain the rules.")
    session.read("rules.txt", text)
    said = "Every parcel needs an invoice, an officer at the border wants the customs stamp, Rule 77 has a refund."
    assert found(working(session, said)) == []
