"""The last resort: results that no call has answered yet lose their middle."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.compaction.base import STRATEGIES
from ctxctl.compaction.unanswered import LEAST, UnansweredResults, cut

GOLDEN = Path(__file__).with_name("golden")
NOTE = re.compile(r"\n\[… (\d+) of (\d+) characters left out …\]\n")


def listing(name: str, lines: int) -> str:
    return "\n".join(f"{name}/{n:04d}: value {n * 37}" for n in range(lines))


def asked(session: Any, *sizes: int) -> Any:
    """A session whose newest calls have results of so many lines, and no answer yet."""
    session.user("Make the parser fast.")
    session.say("Earlier.", ("Read", {"path": "old.py"}, listing("old", 200)))
    session.say("Now all.", *((f"Read{n}", {"path": f"f{n}"}, listing(f"f{n}", size)) for n, size in enumerate(sizes)))
    return session


def results(window: Any) -> list[int]:
    return sorted(b for u in window.fresh for b in window.present(u) if window.block(b).kind == "tool_result")


def fresh_all(window: Any) -> Any:
    """All results of the newest answer are unanswered, not only the last one."""
    turn = max(window.block(b).turn for b in window.entries)
    window.fresh.update(
        window.unit_of[b]
        for b in window.entries
        if window.block(b).kind == "tool_result" and window.block(b).turn == turn
    )
    return window


@pytest.mark.parametrize(
    ("sizes", "over", "level"),
    [
        ([900, 500, 100], 0, 900),
        ([900, 500, 100], -5, 900),
        ([900, 500, 100], 300, 600),
        ([900, 500, 100], 400, 500),
        ([900, 500, 100], 600, 400),
        ([900, 500, 100], 601, 399),
        ([900, 500, 100], 5_000, LEAST),
        ([LEAST], 5, LEAST),
        ([], 5, LEAST),
    ],
)
def test_the_longest_shrink_first_to_one_size(sizes: list[int], over: int, level: int) -> None:
    assert UnansweredResults._level(sizes, over) == level


@given(st.lists(st.integers(LEAST + 1, 3_000), min_size=1, max_size=6), st.integers(1, 6_000))
def test_no_more_is_freed_than_needed(sizes: list[int], over: int) -> None:
    level = UnansweredResults._level(sizes, over)

    def freed(at: int) -> int:
        return sum(max(0, size - at) for size in sizes)

    assert freed(level) >= over or level == LEAST
    assert freed(level + 1) < over


def test_only_what_is_too_long_is_cut(session: Any, carry_out: Any, with_target: Any) -> None:
    scene = asked(session, 300, 200, 10).scene()
    window = fresh_all(scene.window)
    long, middle, short = results(window)
    sizes = {b: window.entries[b].tokens for b in (long, middle, short)}
    scene = with_target(scene, window.tokens - (sizes[long] - sizes[middle]) // 2)
    edits = carry_out(STRATEGIES.get("unanswered-results")(), scene)
    assert [c.block for c in edits.replaces] == [long] and window.tokens <= scene.target
    scene = with_target(scene, window.tokens - 1_200)
    edits = carry_out(STRATEGIES.get("unanswered-results")(), scene)
    assert [c.block for c in edits.replaces] == [long, middle] and window.tokens <= scene.target
    assert abs(window.entries[long].tokens - window.entries[middle].tokens) < 40
    assert not carry_out(STRATEGIES.get("unanswered-results")(), scene)
    scene = with_target(scene, 10)
    carry_out(STRATEGIES.get("unanswered-results")(), scene)
    assert all(window.entries[b].tokens <= LEAST for b in (long, middle))
    assert window.entries[short].tokens <= max(LEAST, sizes[short])
    assert not carry_out(STRATEGIES.get("unanswered-results")(), scene), "nothing is left to cut"


def test_answered_and_kept_results_stay(session: Any, carry_out: Any) -> None:
    scene = asked(session, 300).scene(0.05)
    window = scene.window
    (fresh,) = results(window)
    window.kept.add(window.unit_of[fresh])
    assert not STRATEGIES.get("unanswered-results")().plan(scene)
    window.kept.clear()
    edits = carry_out(STRATEGIES.get("unanswered-results")(), scene)
    assert [c.block for c in edits.replaces] == [fresh], "the answered one is for other strategies"
    window.fresh.clear()
    assert not STRATEGIES.get("unanswered-results")().plan(scene)


def test_a_second_cut_tells_of_the_original(session: Any, carry_out: Any, with_target: Any) -> None:
    scene = asked(session, 400).scene()
    window = scene.window
    (number,) = results(window)
    original = window.text(number)
    for share in (0.8, 0.5, 0.3):
        carry_out(STRATEGIES.get("unanswered-results")(), with_target(scene, int(window.tokens * share)))
        text = window.text(number)
        front, gone, total, back = NOTE.split(text)
        assert int(total) == len(original) == int(gone) + len(front) + len(back)
        assert original.startswith(front) and original.endswith(back) and front and back


@given(st.text(max_size=400), st.floats(0, 1.5))
def test_a_cut_says_how_much_it_left_out(text: str, share: float) -> None:
    front, gone, total, back = NOTE.split(cut(text, share))
    assert text.startswith(front) and text.endswith(back)
    assert int(total) == len(text) == int(gone) + len(front) + len(back)


def test_a_note_that_does_not_add_up_is_text() -> None:
    text = "a" * 300 + "\n[… 7 of 9 characters left out …]\n" + "b" * 300
    assert f"of {len(text)} characters left out" in cut(text, 0.3)


@pytest.mark.parametrize("share", [0.8, 0.2])
def test_golden(share: float, session: Any, carry_out: Any) -> None:
    """The results afterwards. `CTXCTL_GOLDEN=1` writes the files anew."""
    scene = asked(session, 120, 40, 4).scene(share)
    window = fresh_all(scene.window)
    before = window.tokens
    carry_out(STRATEGIES.get("unanswered-results")(), scene)
    found = f"{before} -> {window.tokens} of {scene.target} tokens\n"
    for number in results(window):
        found += f"[{window.entries[number].tokens}]\n{window.text(number)}\n"
    path = GOLDEN / f"unanswered-results-{share:.0%}.txt".replace("%", "")
    if os.environ.get("CTXCTL_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
