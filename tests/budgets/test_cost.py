"""What calls cost at list prices, worked out by hand, and calls that stand in several files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.budgets.cost import cost_of, session_cost
from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.usage import Usage, merge_copies, total_usage

ROW = ModelRow(
    "m",
    input_price=3.0,
    output_price=15.0,
    cache_read_price=0.3,
    cache_write_price=3.75,
    cache_write_1h_price=6.0,
    long_from=200_000,
    long_input_price=6.0,
    long_output_price=22.5,
)
MILLION = 1_000_000
USAGES = [
    (Usage(1, input=MILLION // 10), 0.3),
    (Usage(1, output=MILLION), 15.0),
    (Usage(1, cache_read=100_000), 0.03),
    (Usage(1, cache_write=100_000), 0.375),
    (Usage(1, cache_write=100_000, cache_write_1h=100_000), 0.6),
    (Usage(1, cache_write=100_000, cache_write_1h=40_000), 0.06 * 3.75 + 0.04 * 6),
    (Usage(1, cache_write=10_000, cache_write_1h=90_000), 0.06),  # stated wrongly: never more than was written
    (Usage(1, input=100_000, cache_read=100_000), 0.33),  # 200,000 are not yet long
    (Usage(1, input=100_001, cache_read=100_000), (0.100001 * 3 + 0.03) * 2),
    (Usage(1, cache_write=300_000, cache_write_1h=300_000, output=1000), 3.6 + 0.0225),
]


@pytest.mark.parametrize(("usage", "dollars"), USAGES)
def test_cost_of_one_call(usage: Usage, dollars: float) -> None:
    assert cost_of(usage, ROW) == pytest.approx(dollars)


def test_prices_that_a_row_lacks() -> None:
    plain = ModelRow("m", input_price=2.0, output_price=8.0)
    assert cost_of(Usage(1, cache_read=MILLION, cache_write=MILLION, cache_write_1h=MILLION), plain) == pytest.approx(4)
    assert cost_of(Usage(1, input=1), ModelRow("m", output_price=1.0)) is None


def test_a_session_has_a_cost_when_all_its_calls_have_one() -> None:
    table = ModelTable({"m": ROW})
    assert session_cost([Usage(1, output=MILLION), Usage(2, output=MILLION, model="m")], table, "m") == 30
    assert session_cost([Usage(1, output=MILLION), Usage(2, output=1, model="other")], table, "m") is None
    assert session_cost([Usage(1, reported=False)], table, "m") is None
    assert session_cost([], table, "m") is None


def test_copies_keep_the_larger_figure_of_each_field() -> None:
    cut = Usage(1, input=10, output=1, cache_read=500, context=510, model="m")
    whole = Usage(1, input=9, output=80, cache_write=3, context=512, cost=0.5, model="m")
    alone = Usage(2, output=7)
    merged, copies = merge_copies([([cut, alone], [11, 12]), ([whole, alone], [11, 13])])
    assert copies == 1
    assert merged[0] == [
        Usage(1, input=10, output=80, cache_read=500, cache_write=3, context=512, cost=0.5, model="m"),
        alone,
    ]
    assert merged[1] == [alone]


def test_calls_without_a_key_are_never_copies() -> None:
    call = Usage(1, output=5)
    merged, copies = merge_copies([([call, call], ()), ([call, call], [0, 0]), ([Usage(1, reported=False)], [3])])
    assert copies == 0 and [len(calls) for calls in merged] == [2, 2, 1]


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 90)), max_size=8), max_size=4),
)
def test_merging_leaves_one_call_of_each_key(sessions: list[list[tuple[int, int]]]) -> None:
    given_ = [([Usage(1, output=n) for _, n in calls], [key for key, _ in calls]) for calls in sessions]
    merged, copies = merge_copies(given_)
    largest: dict[int, int] = {}
    for calls in sessions:
        for key, n in calls:
            largest[key] = max(largest.get(key, 0), n)
    left = [call for calls in merged for call in calls]
    assert total_usage(left).output == sum(largest.values())
    assert len(left) == len(largest) and len(left) + copies == sum(map(len, sessions))


def test_a_part_of_the_bill_is_not_taken_for_the_whole() -> None:
    paid, unpaid = Usage(1, input=5, cost=0.25), Usage(2, input=5)
    assert total_usage([paid, paid]).cost == 0.5
    assert total_usage([paid, unpaid]).cost is None
    assert total_usage([paid, Usage(2, cost=0.5, reported=False)]).cost == 0.75
