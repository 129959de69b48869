"""What the agent's own compactions kept, over whole sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl import load_models
from ctxctl.health.fidelity import NAMED, fidelity_of, judge
from ctxctl.health.session import Examining, Session, examine
from ctxctl.model.block import Block, Source

SAMPLES = Path(__file__).parents[2] / "sample_transcripts"


def read(path: Path) -> Session:
    return examine(str(path), load_models(), Examining())


def damaged(tmp_path: Path, old: str, new: str) -> Session:
    """The sample with a change in what its compaction wrote."""
    text = (SAMPLES / "axios-to-fetch.jsonl").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"isCompactSummary":true' in line)
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new)
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return read(path)


def test_a_good_summary_answers_what_matters() -> None:
    found = fidelity_of(read(SAMPLES / "axios-to-fetch.jsonl"))
    assert found.score == 1.0 and found.asked >= 25 and found.why is None
    (one,) = found.compactions
    assert one.turn == 29 and {"goal", "constraint", "decision", "progress", "step", "file", "next"} <= set(one.by_kind)
    # text that later turns used verbatim was let go all the same, as summaries do
    assert 0.2 < (found.future_kept or 0) < 0.6 and found.future_used > 20 and found.future_lost


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("Migrate billing-portal from axios to the built-in fetch.", "Work on the portal.", "goal"),
        ("never touch src/legacy/", "touch src/legacy/ where it helps", "constraint"),
        ("Todo 5 of 8: get test/lib/httpClient.test.ts green.", "Nearly there.", "progress"),
        ("customers.ts, ", "", "file"),
    ],
)
def test_what_a_summary_lost_is_named(tmp_path: Path, old: str, new: str, kind: str) -> None:
    found = fidelity_of(damaged(tmp_path, old, new))
    assert found.score is not None and found.score < 1.0
    assert kind in {lost.kind for lost in found.lost} and all(lost.turn == 29 for lost in found.lost)


def test_a_session_that_was_never_compacted_has_no_fidelity() -> None:
    found = fidelity_of(read(SAMPLES / "mini-swe-agent.traj.json"))
    assert found.score is None and found.why == "the session was never compacted"


def test_keeping_the_newest_blocks_alone_answers_less_than_the_summary_of_the_same_size() -> None:
    session = read(SAMPLES / "axios-to-fetch.jsonl")
    cut = session.trace.recorded[29]
    before = [b for b, stay in enumerate(session.stays) if stay.came < 29 or stay.left == 29]
    size = sum(session.trace.tokens[b] for b in cut.summary)
    newest: list[int] = []
    for b in reversed(before):
        if sum(session.trace.tokens[n] for n in newest) + session.trace.tokens[b] > size:
            break
        newest.insert(0, b)
    blocks = session.trace.blocks
    old = [blocks[b] for b in before]
    by_summary = judge(old, [blocks[b] for b in cut.summary]).score
    by_age = judge(old, [blocks[b] for b in newest]).score
    assert by_summary is not None and by_age is not None and by_age < by_summary - 0.3
    assert judge(old, old).score == 1.0


def test_the_summary_of_another_session_answers_next_to_nothing() -> None:
    session = read(SAMPLES / "axios-to-fetch.jsonl")
    old = [session.trace.blocks[b] for b, stay in enumerate(session.stays) if stay.came < 29 or stay.left == 29]
    other = (
        "1. Primary Request and Intent:\n   - Build a map of bird sightings from the observations of the club\n"
        "2. Decisions:\n   - Decision: tiles from OpenStreetMap instead of an own server, because they are free.\n"
        "3. Files:\n   - web/map.ts: done. web/tiles.ts: open.\n4. Next Step:\n   Draw the legend of step 2 of 6."
    )
    found = judge(old, [Block("0.0", "summary", "user", other, 1, 1, Source(1))])
    assert found.score is not None and found.score < 0.05 and found.asked >= 20


def test_lost_answers_are_bounded_and_say_where_they_stood(tmp_path: Path) -> None:
    path = damaged(tmp_path, "never touch src/legacy/", "touch src/legacy/").path
    found = fidelity_of(read(Path(path)))
    lost = next(one for one in found.lost if one.kind == "constraint")
    assert lost.line is not None and "src/legacy" in Path(path).read_text(encoding="utf-8").splitlines()[lost.line - 1]
    session = read(SAMPLES / "axios-to-fetch.jsonl")
    nothing = judge(session.trace.blocks[:100], [])
    assert nothing.score == 0.0 and nothing.asked > len(nothing.lost) == NAMED
