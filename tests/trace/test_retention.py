"""What of a text is still in another, and what was made up."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.trace.atoms import kind_of, words
from ctxctl.trace.retention import CLASSES, MOST, retained

BEFORE = [
    "The failure is in src/app/billing.py: total_amount of InvoiceLine was 4711, ValueError raised.",
    "src/app/billing.py again, and tests/test_billing.py; retry_limit stays 250.",
]


def test_classes_are_told_apart() -> None:
    found = retained(BEFORE, ["src/app/billing.py has total_amount 4711"])
    assert (found.paths.kept, found.paths.total, found.paths.lost) == (1, 2, ("tests/test_billing.py",))
    assert (found.identifiers.kept, found.identifiers.total) == (1, 3)
    assert set(found.identifiers.lost) == {"InvoiceLine", "retry_limit"}
    assert (found.numbers.kept, found.numbers.lost) == (1, ("250",))
    assert (found.errors.kept, found.errors.lost) == (0, ("ValueError",))
    assert found.numbers.share == 0.5
    assert found.invented_count == 0


def test_nothing_to_keep_is_not_everything_kept() -> None:
    found = retained(["plain words only"], [])
    assert [kept.share for _, kept in found.items()] == [None] * 4


def test_everything_lost() -> None:
    found = retained(BEFORE, [])
    assert [kept.share for _, kept in found.items()] == [0.0] * 4


def test_what_is_nowhere_before_is_invented_and_parts_of_words_are_not() -> None:
    found = retained(
        ["see /w/src/deep/module.py and user_account_id, 123456"],
        ["module.py account_id 1234 other/place/new.py fetch_all RuntimeError"],
    )
    assert found.invented == {
        "paths": ("other/place/new.py",),
        "identifiers": ("fetch_all",),
        "numbers": ("1234",),
        "errors": ("RuntimeError",),
    }
    assert found.invented_count == 4


def test_a_dot_slash_and_a_full_stop_are_no_part_of_a_path() -> None:
    found = retained(["run ./tools/build.sh in src/app/v2."], ["tools/build.sh; src/app/v2/"])
    assert found.paths.lost == ()
    assert found.paths.total == 2


def test_lost_ones_are_bounded_and_the_most_frequent_come_first() -> None:
    filler = "x " * 20_000  # texts of more than a part each, so that the parts are the texts
    texts = [f"{filler} seen_often" for _ in range(3)] + [" ".join(f"name_{chr(97 + n % 26)}{n}" for n in range(200))]
    found = retained(texts, [])
    assert found.identifiers.total == 201
    assert len(found.identifiers.lost) == MOST
    assert found.identifiers.lost[0] == "seen_often"


def test_lone_surrogates_and_generators() -> None:
    found = retained((t for t in ["broken \ud83d in file_name.py"]), iter(["file_name.py \udc00"]))
    assert found.paths.share == 1.0


WORD = st.sampled_from(
    [
        "a",
        "the",
        "src/a.py",
        "./src/b.py",
        "b.py",
        "some_name",
        "Other.name",
        "CamelCase",
        "1234",
        "0",
        "KeyError",
        "x-y",
    ]
)
TEXTS = st.lists(st.lists(WORD, max_size=8).map(" ".join), max_size=6)


@given(TEXTS, TEXTS)
def test_counts_equal_those_of_sets(before: list[str], after: list[str]) -> None:
    had = {w for text in before for w in words(text)}
    has = {w for text in after for w in words(text)}
    found = retained(before, after)
    for kind, name in CLASSES.items():
        atoms = {w for w in had if kind_of(w) == kind}
        kept = dict(found.items())[name]
        assert kept.total == len(atoms)
        assert kept.kept == len(atoms & has)
        assert set(kept.lost) == atoms - has
    for atoms in found.invented.values():
        assert not set(atoms) & had


@given(TEXTS)
def test_a_text_keeps_all_of_itself(texts: list[str]) -> None:
    found = retained(texts, texts)
    assert all(kept.share in (None, 1.0) for _, kept in found.items())
    assert found.invented_count == 0


def test_a_window_takes_a_tenth_of_a_second() -> None:
    line = "def handler_{n}(request_{n}): return service/module_{n}.py + {n}00 # some plain words as they come\n"
    text = "".join(line.format(n=n) for n in range(8_000))
    assert len(text) > 700_000
    assert re.search("handler_7999", text)
    start = time.perf_counter()
    retained([text], [text[: len(text) // 5]])
    assert time.perf_counter() - start < 1.0  # ten times what it takes here
