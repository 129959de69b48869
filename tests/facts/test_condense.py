"""Less text for what was there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.facts.condense import (
    EXTRACT,
    LINE,
    MARK,
    extract,
    first_line,
    is_placeholder,
    is_summary,
    placeholder,
)
from ctxctl.model.block import Block, Source


def block(text: str, kind: str = "tool_result", **more: str) -> Block:
    return replace(Block("1.0", kind, "tool", text, 7, 1, Source(1)), **more)


LOG = "\n".join(
    [
        "Running the tests",
        *["." * 40] * 100,
        "ValueError: bad input in src/app/main.py",
        *["ok"] * 100,
        "3 failed, 412 passed",
    ]
)


def test_first_line() -> None:
    assert first_line("\n \n  a line \nmore") == "a line"
    assert first_line(" \n") == ""
    assert first_line("x" * 500) == "x" * LINE


def test_placeholder() -> None:
    found = block("text " * 1000, tool_name="Read", target="a.py")
    assert placeholder(found, 1234) == "[cleared: Read a.py, 1,234 tokens]"
    assert placeholder(block("x"), 1) == "[cleared: tool, 1 tokens]"


@given(st.text(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_placeholders_are_idempotent(text: str, tokens: int, later: int) -> None:
    once = placeholder(block(text), tokens)
    assert is_placeholder(once)
    assert placeholder(block(once), later) == once
    assert extract(block(once)) == once


def test_an_extract_is_marked_and_has_the_lines_that_matter() -> None:
    text = extract(block(LOG, tool_name="Bash", target="pytest"))
    lines = text.split("\n")
    assert lines[0] == f"{MARK} turn 7, tool_result Bash pytest: Running the tests"
    assert lines[1:-1] == ["ValueError: bad input in src/app/main.py", "3 failed, 412 passed"]
    assert lines[-1] == "(200 more lines)"


@given(st.text() | st.lists(st.sampled_from(["", "a line", "src/x.py", "KeyError: 12345", "x" * 300])).map("\n".join))
def test_an_extract_is_bounded_never_longer_and_idempotent(text: str) -> None:
    made = extract(block(text))
    assert len(made) <= max(EXTRACT, 0) or made == text
    assert len(made) < len(text) or made == text
    assert extract(block(made)) == made
    if made != text:
        assert is_summary(made)


@given(
    st.lists(st.sampled_from(["plain words", "src/x.py and y", "KeyError: 12345", "snake_case_name = 5"]), min_size=30)
)
def test_an_extract_says_nothing_of_its_own(rows: list[str]) -> None:
    text = "\n".join(f"{n} {row} of it" for n, row in enumerate(rows))
    made = extract(block(text)).split("\n")
    known = text.split("\n")
    assert known[0].startswith(made[0].removeprefix(f"{MARK} turn 7, tool_result: "))
    places = [known.index(line) for line in made[1:] if not line.endswith("more lines)")]
    assert places == sorted(places)


@pytest.mark.parametrize("text", ["", " \n ", "short", f"{MARK} done\n" * 200, "[摘要] 完成\n" * 200])
def test_what_stays_as_it_is(text: str) -> None:
    assert extract(block(text)) == text


def test_a_text_of_its_own() -> None:
    assert extract(block("short"), LOG) == extract(block(LOG))


def test_very_long_texts_are_read_at_both_ends() -> None:
    text = "\n".join(["start", *[f"KeyError in src/deep_{n}.py" for n in range(100_000)], "src/last.py"])
    made = extract(block(text))
    assert "KeyError in src/deep_0.py" in made
    assert len(made) <= EXTRACT
