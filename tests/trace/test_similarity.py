"""Near duplicates by containment of hashed lines."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.trace.similarity import SMALLEST, NearDuplicates, containment, hashes, plain_lines

FILE = "\n".join(f"def function_{n}(x): return x + {n}" for n in range(40))


def test_containment() -> None:
    a, b = hashes(FILE), hashes(FILE + "\nmore\nand more")
    assert containment(a, b) == 1.0
    assert containment(b, a) == 40 / 42
    assert containment(frozenset(), a) == 0.0
    assert containment(a, hashes("nothing\nof it")) == 0.0


def test_space_and_line_numbers_do_not_count() -> None:
    numbered = "\n".join(f"{n:6}→{line}" for n, line in enumerate(FILE.split("\n"), 1))
    later = "\n".join(f"{n:6}\t    {line}\r" for n, line in enumerate(FILE.split("\n"), 101))
    assert hashes(numbered) == hashes(FILE) == hashes(later)
    assert plain_lines(numbered) == plain_lines(FILE)
    assert hashes("\n \n\t\n") == frozenset()


def test_numbers_that_do_not_count_lines_stay() -> None:
    table = "7\tone\n9\ttwo\n12\tthree"
    assert plain_lines(table) == table.split("\n")


@given(st.text())
def test_lines_stay_lines(text: str) -> None:
    assert len(plain_lines(text)) == text.count("\n") + 1


def test_any_text_has_hashes() -> None:
    assert len(hashes("\ud800 lone\nsurrogate")) == 2


def test_equal_in_every_process() -> None:
    code = "from ctxctl.trace.similarity import hashes; print(sorted(hashes('a\\nb\\nc')))"
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    expected = sorted(hashes("a\nb\nc"))
    assert runs == {f"{expected}\n"}


class Everything:
    def __contains__(self, _: object) -> bool:
        return True


def test_pairs_are_found_as_texts_come_in() -> None:
    near = NearDuplicates(0.85)
    lines = FILE.split("\n")
    assert near.add(0, FILE, Everything()) == []
    assert near.add(1, "\n".join(f"other {n}" for n in range(40)), Everything()) == []
    assert near.add(2, "\n".join(lines[:34] + ["new"] * 3), Everything()) == [0]  # 34 of 40 are 0.85
    assert near.add(3, "\n".join(lines[:20]), Everything()) == []  # an excerpt, of either
    assert 0 in near.add(4, FILE, Everything())


@pytest.mark.parametrize("share", [0.5, 0.85, 1.0])
def test_the_share_is_reached_at_or_above(share: float) -> None:
    lines = [f"this is line {n} of it" for n in range(100)]
    for kept in range(40, 101, 5):
        near = NearDuplicates(share)
        near.add(0, "\n".join(lines), Everything())
        assert (near.add(1, "\n".join(lines[:kept]), Everything()) == [0]) is (kept / 100 >= share)


def test_short_texts_agree_by_chance() -> None:
    near = NearDuplicates(0.5)
    assert near.add(0, "a\nb\nc\nd", Everything()) == []
    assert near.add(1, "a\nb\nc\nd", Everything()) == []
    assert near.add(2, "a\na\na\na\na\nb", Everything()) == []
    assert near.add(3, "a\na\na\na\na\nb", Everything()) == []


def test_what_has_left_is_no_duplicate_but_leads_to_what_it_was_one_of() -> None:
    near = NearDuplicates(0.85)
    near.add(0, FILE, {0})
    near.add(1, FILE, {0, 1})
    assert near.add(2, FILE, {0, 2}) == [0]
    assert near.add(3, FILE, {3}) == []


def test_what_comes_in_again_does_not_go_in_circles() -> None:
    near = NearDuplicates(0.85)
    for number in (0, 1, 0, 1, 0):
        near.add(number, FILE, {0, 1})
    assert near.add(2, FILE, {2}) == []


def test_the_index_grows_with_the_window() -> None:
    near = NearDuplicates(0.85)
    for number in range(2000):
        near.add(
            number, "\n".join(f"{number} {k} some text" for k in range(50)), range(max(0, number - 10), number + 1)
        )
    assert len(near._owner) <= SMALLEST + 50
    assert len(near._lines) <= SMALLEST
