"""A sawtooth of compactions, and windows that are none."""

from __future__ import annotations

from pathlib import Path

from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.heavy_compaction import HeavyCompaction
from ctxctl.health.detectors.occupancy import Occupancy
from ctxctl.model.finding import Finding


def sawtooth(tmp_path: Path, teeth: int, reads: int = 60, *, clear: bool = False, text: bool = False) -> ClaudeSession:
    """Each tooth is filled with tool results, or with what is said."""
    made = ClaudeSession(tmp_path)
    made.user("Port the modules.")
    for tooth in range(teeth):
        ids = []
        for number in range(reads):
            content = lines_of(100, f"t{tooth}n{number}")
            if text:
                made.answer(content)
                made.user("go on")
            else:
                ids.append(made.read(f"/code/app/m{tooth}_{number}.py", content))
            if clear and len(ids) % 20 == 0:
                made.clear(*ids[-20:])
        made.compact(f"Goal: port the modules. Done: batch {tooth}.")
        made.answer("Going on.")
    return made


def occupancy(made: ClaudeSession) -> list[Finding]:
    return list(Occupancy().find(made.examine()))


def heavy(made: ClaudeSession) -> list[Finding]:
    return list(HeavyCompaction().find(made.examine()))


def test_filled_and_cut_down_twice(tmp_path: Path) -> None:
    (finding,) = occupancy(sawtooth(tmp_path, 2))
    assert finding.evidence is not None
    assert finding.evidence.turns == (61, 122) and finding.turn == 61
    assert finding.evidence.counts["drops"] == 2 and finding.evidence.counts["peak_tokens"] > 100_000
    assert "2 times it was filled to" in finding.message and "watermark of 50%" in finding.message


def test_one_compaction_is_no_sawtooth(tmp_path: Path) -> None:
    assert occupancy(sawtooth(tmp_path, 1)) == []


def test_compactions_below_the_watermark_are_none(tmp_path: Path) -> None:
    assert occupancy(sawtooth(tmp_path, 3, 20)) == []


def test_a_window_that_only_grows(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Port the modules.")
    for number in range(60):
        made.read(f"/code/app/m{number}.py", lines_of(100, f"n{number}"))
    assert occupancy(made) == [] and heavy(made) == []


def test_summaries_do_what_clearing_could(tmp_path: Path) -> None:
    (finding,) = heavy(sawtooth(tmp_path, 2))
    assert finding.evidence is not None
    counts = finding.evidence.counts
    assert counts["clearable_tokens"] > 0.8 * counts["replaced_tokens"] and counts["cleared_tokens"] == 0
    assert "2 summaries in 122 turns (1.6 per 100)" in finding.message and "most by Read" in finding.message


def test_where_results_are_cleared_nothing_is_said(tmp_path: Path) -> None:
    assert heavy(sawtooth(tmp_path, 2, clear=True)) == []


def test_where_nothing_could_be_cleared_nothing_is_said(tmp_path: Path) -> None:
    assert heavy(sawtooth(tmp_path, 2, text=True)) == []


def test_one_summary_in_a_long_session(tmp_path: Path) -> None:
    assert heavy(sawtooth(tmp_path, 1)) == []
