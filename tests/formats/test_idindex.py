"""The compact map of ids behaves as a dict does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.formats.idindex import EMPTY, IdIndex

# few keys, so that they come again; some collide in the lowest bits, and 0 and negative ones are keys as well
KEYS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5).map(lambda n: n << 40)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(0, 2**31 - 1)), max_size=60), st.lists(KEYS, max_size=10))
def test_it_is_a_dict(puts: list[tuple[int, int]], asked: list[int]) -> None:
    index, expected = IdIndex(), dict[int, int]()
    for key, number in puts:
        assert index.put(key, number) == expected.get(key, EMPTY)
        expected[key] = number
    for key in [*asked, *expected]:
        assert index.get(key) == expected.get(key, EMPTY)


def test_it_grows() -> None:
    index = IdIndex()
    for n in range(5_000):
        assert index.put(hash(f"uuid-{n}"), n) == EMPTY
    assert [index.get(hash(f"uuid-{n}")) for n in range(5_000)] == list(range(5_000))
    assert index.get(hash("uuid-5000")) == EMPTY
