"""Questions asked of a real session around the compactions of its own agent. What is lost was read by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ctxctl import load_models
from ctxctl.health.fidelity import fidelity_of, judge
from ctxctl.health.session import Examining, Session, examine
from ctxctl.model.block import Block


@pytest.fixture(scope="module")
def session(transcripts: Path) -> Session:
    path = transcripts / "claude-code" / "entire-cd-95adddad32-0.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here")
    return examine(str(path), load_models(), Examining())


def windows(session: Session) -> list[tuple[list[Block], list[Block]]]:
    """The blocks right before each full compaction, and its summary."""
    found = []
    for turn, cut in sorted(session.trace.recorded.items()):
        if cut.kept is not None:
            held = [b for b, stay in enumerate(session.stays) if stay.came < turn and (stay.left or turn) >= turn]
            blocks = session.trace.blocks
            found.append(([blocks[b] for b in held if b not in cut.summary], [blocks[b] for b in cut.summary]))
    return found


def test_good_summaries_answer_what_matters_and_the_step_that_was_moved_on_is_seen(session: Session) -> None:
    found = fidelity_of(session)
    assert len(found.compactions) == 3 and found.asked >= 35
    # the list had 6 of 8 done and the seventh in work; the summary calls that one done, too
    assert [(lost.kind, lost.turn) for lost in found.lost] == [("progress", 51)]


def test_the_summary_of_a_later_window_answers_much_less(session: Session) -> None:
    (first, own), *others = windows(session)
    right = judge(first, own).score
    assert right is not None
    for _, other in others:
        score = judge(first, other).score
        assert score is not None and score < right - 0.3


def test_changed_digits_lose_what_has_figures_and_nothing_else(session: Session) -> None:
    before, after = windows(session)[1]
    wrong = [replace(b, text=re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), b.text)) for b in after]
    assert judge(before, after).lost == ()
    lost = judge(before, wrong).lost
    assert "figure" in {one.kind for one in lost} and all(re.search(r"\d", one.answer) for one in lost)
