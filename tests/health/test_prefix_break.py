"""The prefix of the cache: what broke it, what that cost, and what is no break."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.prefix_break import PrefixBreak
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding

INPUT, READ, WRITE, WRITE_1H = 3.0, 0.3, 3.75, 6.0
"""Claude Sonnet 4.5, USD per million tokens."""


def filled(tmp_path: Path, reads: int = 20, **options: object) -> ClaudeSession:
    made = ClaudeSession(tmp_path, **options)  # type: ignore[arg-type]
    made.user("Read the modules.")
    for number in range(reads):
        made.read(f"/code/app/m{number}.py", lines_of(100, f"w{number}"))
    return made


def found(session: Session) -> list[Finding]:
    return list(PrefixBreak().find(session))


def test_a_pause_longer_than_the_cache_lives(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.wait(600)
    before = made.cached
    made.bash("pytest -q", "12 passed")
    (finding,) = found(made.examine())
    assert finding.turn == 21 and finding.evidence is not None
    assert finding.evidence.counts["tokens"] == before
    assert finding.evidence.counts["usd"] == pytest.approx(before * (WRITE - READ) / 1e6, abs=1e-4)
    assert "after a pause longer than an entry of the cache lives" in finding.message
    assert f"{before:,} tokens were read anew" in finding.message
    assert finding.level == "warning" and "1h" in finding.hint


def test_a_pause_that_the_cache_outlives(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.wait(250)
    made.bash("pytest -q", "12 passed")
    assert found(made.examine()) == []


def test_entries_that_are_kept_for_an_hour(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Read the modules.")
    for number in range(20):
        made.read(f"/code/app/m{number}.py", lines_of(100, f"w{number}"), hour=True)
    made.wait(600)
    made.bash("pytest -q", "12 passed", hour=True)
    assert found(made.examine()) == []
    made.wait(4000)
    before = made.cached
    made.bash("pytest -q", "12 passed", hour=True)
    (finding,) = found(made.examine())
    assert finding.evidence is not None and "after a pause" in finding.message
    assert finding.evidence.counts["usd"] == pytest.approx(before * (WRITE_1H - READ) / 1e6, abs=1e-4)


def test_another_model(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.bash("pytest -q", "12 passed", model="claude-opus-4-5-20251101", cached=0)
    (finding,) = found(made.examine())
    assert "since another model was asked" in finding.message and finding.turn == 21


def test_a_break_that_nothing_explains(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.bash("pytest -q", "12 passed", cached=0)
    (finding,) = found(made.examine())
    assert "for no reason that the transcript tells" in finding.message


def test_it_says_where_the_served_prefix_ends(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.bash("pytest -q", "12 passed", cached=14_500)
    (finding,) = found(made.examine())
    assert finding.evidence is not None
    (said,) = finding.evidence.quotes
    assert said.turn in (2, 3) and "compute_w" in said.text


def test_a_call_after_the_break_is_no_second_one(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.wait(600)
    made.bash("pytest -q", "12 passed")
    made.bash("pytest -q", "12 passed")
    (finding,) = found(made.examine())
    assert finding.evidence is not None and finding.evidence.turns == (21,)


def test_breaks_of_one_cause_are_one_finding(tmp_path: Path) -> None:
    made = filled(tmp_path)
    for _ in range(3):
        made.wait(900)
        made.bash("pytest -q", "12 passed")
    (finding,) = found(made.examine())
    assert finding.evidence is not None and finding.evidence.turns == (21, 22, 23)
    assert "broke 3 times" in finding.message


def test_a_small_prompt_is_not_worth_a_word(tmp_path: Path) -> None:
    made = filled(tmp_path, 1, overhead=3_000)
    made.wait(600)
    made.bash("pytest -q", "12 passed")
    assert found(made.examine()) == []


def test_the_first_call_and_a_summary_are_no_breaks(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.compact("Goal: read the modules. " + lines_of(200, "kept"))
    made.bash("pytest -q", "12 passed", cached=0)
    made.bash("pytest -q", "12 passed")
    assert found(made.examine()) == []


@pytest.mark.parametrize(("calls_after", "fires"), [(3, True), (60, False)])
def test_a_clearing_pays_when_enough_calls_follow(tmp_path: Path, calls_after: int, fires: bool) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Read the modules.")
    ids = [made.read(f"/code/app/m{n}.py", lines_of(100, f"w{n}")) for n in range(40)]
    made.clear(*ids[:15])
    for number in range(calls_after):
        made.bash(f"echo {number}", "x")
    findings = found(made.examine())
    assert [("by a clearing of old results" in f.message) for f in findings] == ([True] if fires else [])


def test_going_back_to_an_earlier_state(tmp_path: Path) -> None:
    made = filled(tmp_path, 5)
    there = made.user("Now write the tests.")
    for number in range(20):
        made.read(f"/code/app/n{number}.py", lines_of(100, f"n{number}"))
    made.rewind(there)
    made.user("No: first the types.")
    made.bash("pytest -q", "12 passed", prompt=50_000, cached=12_000)
    (finding,) = found(made.examine())
    assert "since the session went back to an earlier state" in finding.message


def test_earlier_content_that_was_left_out_without_a_compaction(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.bash("pytest -q", "12 passed", prompt=made.tokens - 8_000, cached=14_500)
    (finding,) = found(made.examine())
    assert "of earlier content were left out without a compaction" in finding.message
    assert finding.evidence is not None and finding.evidence.quotes


def test_several_causes_are_several_findings(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.bash("pytest -q", "12 passed", cached=0)
    made.wait(900)
    made.bash("pytest -q", "12 passed")
    assert [f.evidence.turns for f in found(made.examine()) if f.evidence] == [(21,), (22,)]
