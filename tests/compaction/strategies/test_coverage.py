"""Which lines are kept: what names most that nothing else names, within the budget, in their order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.compaction.coverage import LONGEST, Source, chosen_lines


def count(text: str) -> int:
    return -(-len(text) // 4)


def test_what_is_named_elsewhere_is_not_worth_a_place() -> None:
    source = Source(0, "see src/alpha.py for it\nsee src/beta.py for it", 0.0)
    assert chosen_lines([source], 8, count, ["src/alpha.py is here"]) == {0: ["see src/beta.py for it"]}
    assert chosen_lines([source], 8, count, ["src/beta.py is here"]) == {0: ["see src/alpha.py for it"]}


def test_a_line_with_names_before_one_without() -> None:
    source = Source(0, "well, that is how it goes\nErrorCode E4711 in parse_token at 82734", 0.0)
    assert chosen_lines([source], 14, count) == {0: ["ErrorCode E4711 in parse_token at 82734"]}


def test_the_newer_of_two_alike() -> None:
    old, new = Source(0, "value_old_1 = 1001", 1.0), Source(1, "value_new_2 = 2002", 0.0)
    assert chosen_lines([old, new], 7, count) == {1: ["value_new_2 = 2002"]}


def test_what_stands_twice_is_kept_once() -> None:
    rows = [Source(n, "src/same_file.py:12: boom", n / 3) for n in range(3)]
    assert sum(len(lines) for lines in chosen_lines(rows, 500, count).values()) == 1


def test_short_lines_are_left_and_long_ones_cut() -> None:
    source = Source(0, "x\n}\n" + "name_of_it " * 200, 0.0)
    (line,) = chosen_lines([source], 500, count)[0]
    assert len(line) <= LONGEST


def test_no_room_and_nothing_to_choose() -> None:
    assert chosen_lines([], 100, count) == {}
    assert chosen_lines([Source(0, "", 0.0)], 100, count) == {}
    assert chosen_lines([Source(0, "some line", 0.0)], 0, count) == {}


LINES = st.lists(st.sampled_from(["a/b.py:3", "def foo_bar():", "x", "", "1234 items", "words only", "é漢字 zeichen"]))


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(LINES.map("\n".join), max_size=5),
    most=st.integers(0, 60),
    capped=st.booleans(),
    cap=st.integers(0, 80),
)
def test_within_the_budget_and_in_order(texts: list[str], most: int, capped: bool, cap: int) -> None:
    sources = [Source(n, text, n / 5) for n, text in enumerate(texts)]
    caps = dict.fromkeys(range(len(texts)), cap) if capped else None
    chosen = chosen_lines(sources, most, count, (), caps)
    assert chosen == chosen_lines(sources, most, count, (), caps)
    assert count("\n".join(line for n in sorted(chosen) for line in chosen[n])) <= most
    for number, kept in chosen.items():
        stripped = [line.strip() for line in texts[number].split("\n")]
        places = [stripped.index(line) for line in kept]
        assert places == sorted(places) and len(set(kept)) == len(kept)
        assert caps is None or len("\n".join(kept)) <= cap
