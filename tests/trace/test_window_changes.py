"""Two windows block by block."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.block import Block, Source
from ctxctl.trace.changes import compare


def block(kind: str, text: str, call_id: str | None = None, tool: str | None = None) -> Block:
    role = "assistant" if kind in ("assistant", "tool_call", "thinking") else "user"
    return Block("1.0", kind, role, text, 1, 1, Source(1), tool, call_id)


ASK, ANSWER = block("user_message", "please"), block("assistant", "done")
CALL = block("tool_call", "Read {}", "c1", "Read")
LONG = block("tool_result", "many lines", "c1", "Read")
CLEARED = block("tool_result", "[cleared: Read, 900 tokens]", "c1", "Read")
SUMMARY = block("summary", "[summary] what went before")


def test_equal_windows() -> None:
    found = compare([ASK, CALL, LONG, ANSWER], [ASK, CALL, LONG, ANSWER])
    assert found.kept == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert not (found.replaced or found.lost or found.added)


def test_a_result_is_matched_by_its_call() -> None:
    found = compare([ASK, CALL, LONG, ANSWER], [ASK, CALL, CLEARED, ANSWER])
    assert found.replaced == ((2, 2),)
    assert not (found.lost or found.added)


def test_a_summary_replaces_no_single_block() -> None:
    found = compare([ASK, CALL, LONG, ANSWER], [SUMMARY, ANSWER])
    assert found.kept == ((3, 1),)
    assert found.lost == (0, 1, 2)
    assert found.added == (0,)


def test_without_ids_the_place_between_kept_blocks_counts() -> None:
    short = block("assistant", "in short")
    found = compare([ASK, block("assistant", "at length"), CALL, ANSWER], [ASK, short, CALL, ANSWER])
    assert found.replaced == ((1, 1),)


def test_another_place_is_another_block() -> None:
    found = compare([ASK, block("assistant", "early"), ANSWER], [ASK, ANSWER, block("assistant", "late")])
    assert (found.lost, found.added, found.replaced) == ((1,), (2,), ())


def test_which_of_equal_blocks_it_is_is_told_by_its_neighbours() -> None:
    empty, other = block("tool_result", "ok"), block("tool_result", "[cleared]")
    one, two = block("assistant", "one"), block("assistant", "two")
    found = compare([one, empty, two, empty], [one, other, two, empty])
    assert found.kept == ((0, 0), (2, 2), (3, 3))
    assert found.replaced == ((1, 1),)


def test_kinds_that_formats_can_not_tell_apart_are_one() -> None:
    note = block("memory_injection", "note")
    found = compare([note], [block("user_message", "note")])
    assert found.kept == ((0, 0),)


BLOCKS = st.lists(
    st.builds(
        block,
        st.sampled_from(["user_message", "assistant", "tool_result", "summary"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([None, "c1", "c2"]),
    ),
    max_size=8,
)


@given(BLOCKS, BLOCKS)
def test_each_block_has_one_fate(before: list[Block], after: list[Block]) -> None:
    found = compare(before, after)
    fates = [a for a, _ in found.kept] + [a for a, _ in found.replaced] + list(found.lost)
    assert sorted(fates) == list(range(len(before)))
    news = [b for _, b in found.kept] + [b for _, b in found.replaced] + list(found.added)
    assert sorted(news) == list(range(len(after)))
    assert all(before[a].text == after[b].text for a, b in found.kept)
