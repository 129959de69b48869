"""What stands in front of every request: its size, and its growth from session to session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sessions import START, ClaudeSession, with_health

from ctxctl.health.detectors.skeleton_drift import SkeletonDrift

DAY = 86_400


def one(tmp_path: Path, overhead: int, name: str = "session", **options: object) -> ClaudeSession:
    made = ClaudeSession(tmp_path, name, overhead=overhead, **options)  # type: ignore[arg-type]
    made.user("Fix the parser.")
    made.bash("pytest -q", "12 passed")
    made.answer("Done.")
    return made


@pytest.mark.parametrize(("overhead", "fires"), [(14_900, False), (15_100, True)])
def test_size(tmp_path: Path, overhead: int, fires: bool) -> None:
    findings = list(SkeletonDrift().find(one(tmp_path, overhead).examine()))
    assert bool(findings) == fires
    assert all(f.evidence and abs(f.evidence.counts["tokens"] - overhead) < 20 for f in findings)


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    examined = one(tmp_path, 15_100).examine(with_health(skeleton_tokens=20_000))
    assert list(SkeletonDrift().find(examined)) == []


def test_what_a_compaction_brings_back_is_not_taken_for_it(tmp_path: Path) -> None:
    made = one(tmp_path, 14_000)
    made.compact("Goal: fix the parser.")
    made.overhead += 9_000
    made.answer("Going on.")
    assert list(SkeletonDrift().find(made.examine())) == []


def over(tmp_path: Path, sizes: Sequence[int], **options: object) -> list[str]:
    detector, notes = SkeletonDrift(), []
    for number, size in enumerate(sizes):
        made = one(tmp_path, size, f"s{number}", start=START + number * DAY, **options)
        session = made.examine()
        notes.append((session.path, detector.note(session)))
    notes.reverse()  # time tells the order, not the command line
    return [f"{Path(path).stem}: {finding.message}" for path, finding in detector.over(notes)]


def test_growth(tmp_path: Path) -> None:
    (said,) = over(tmp_path, [8_000, 9_000, 10_500])
    assert said.startswith("s2: ") and "over 3 sessions of this project" in said and "+31%" in said


@pytest.mark.parametrize(
    "sizes",
    [
        [8_000, 10_500],  # two sessions
        [8_000, 8_400, 8_900],  # small
        [12_000, 9_000, 9_500],  # it shrank
        [1_000, 1_500, 2_500],  # a few tokens
    ],
)
def test_no_growth(tmp_path: Path, sizes: list[int]) -> None:
    assert over(tmp_path, sizes) == []


def test_only_sessions_of_one_project_are_held_against_each_other(tmp_path: Path) -> None:
    detector = SkeletonDrift()
    notes = []
    for number, size in enumerate([8_000, 9_500, 12_000]):
        session = one(tmp_path, size, f"s{number}", start=START + number * DAY, cwd=f"/code/{number}").examine()
        notes.append((session.path, detector.note(session)))
    assert list(detector.over(notes)) == []
