"""The bill, worked out by hand: three regimes, terms, replay error, what a cache served, break-even."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest

from ctxctl.errors import InputError
from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace, Turn
from ctxctl.model.usage import Usage
from ctxctl.simulate.baseline import baseline_of, fit_cache
from ctxctl.simulate.bill import CacheFit, CacheTerms, Costs, Tariff, best_interval, break_even, costs_of, life_of

ROW = ModelRow("m", input_price=2.0, output_price=10.0, cache_read_price=0.2, cache_write_price=2.5, date="2026-11-01")
LONG = replace(ROW, id="long", long_from=100_000, long_input_price=4.0, long_output_price=15.0)
TABLE = ModelTable({"m": ROW, "long": LONG})


def trace(usages: list[Usage | None], model: str | None = "m") -> Trace:
    turns = [
        Turn(k + 1, (), output=u.output if u else 0, prompt=u.prompt if u else None, usage=u)
        for k, u in enumerate(usages)
    ]
    return Trace("t", "t.jsonl", model, [], [], [], [], turns)


def played(prompts: list[int], cached: list[int], outputs: list[int], **more: object) -> Replay:
    empty = dict.fromkeys(
        [
            "evictions",
            "evicted_tokens",
            "compactions",
            "compacted_tokens",
            "edits",
            "overflow_turns",
            "hits",
            "misses",
            "used_turns",
            "missed_turns",
            "first_uses",
            "first_misses",
            "demand",
            "refetched",
            "refetches",
            "excess_rereads",
        ],
        0,
    )
    values: dict[str, object] = {
        **empty,
        "policy": "recorded",
        "capacity": 1 << 40,
        "trigger": 1.0,
        "target": 1.0,
        "prompts": prompts,
        "cached": cached,
        "outputs": outputs,
        "helper": [],
        "weight": 0.0,
        "missed_weight": 0.0,
        "breaks": [],
        "floor": None,
        **more,
    }
    return Replay(**values)  # type: ignore[arg-type]


def test_three_regimes_by_hand() -> None:
    # 1,000 + 3,000 tokens in, 100 + 200 out; the second call shares 1,000 with the first
    tariff = Tariff(trace([None, None]), TABLE, CacheTerms())
    costs = costs_of(played([1000, 3000], [0, 1000], [100, 200]), tariff, CacheFit(500.0, 0.5))
    out = 300 * 10
    assert costs.none == pytest.approx((4000 * 2 + out) / 1e6)
    assert costs.ideal == pytest.approx((1000 * 2.5 + 2000 * 2.5 + 1000 * 0.2 + out) / 1e6)
    # a cache that misses 500 tokens and serves half of the rest: 250 of the 1,000
    assert costs.calibrated == pytest.approx((4000 * 2.5 - 250 * (2.5 - 0.2) + out) / 1e6)
    assert costs.best() == costs.calibrated
    assert costs_of(played([1000], [0], [0]), Tariff(trace([None]), TABLE, CacheTerms()), None).best() == pytest.approx(
        0.0025
    )


def test_terms_replace_the_multipliers_of_the_row() -> None:
    tariff = Tariff(trace([None, None]), TABLE, CacheTerms(read=0.1, write=1.25))
    assert tariff.multipliers() == pytest.approx((0.1, 1.25))
    costs = costs_of(played([1000, 3000], [0, 1000], [0, 0]), tariff, None)
    assert costs.ideal == pytest.approx(2 * (1.25 * 3000 + 0.1 * 1000) / 1e6)
    assert costs.calibrated is None
    assert Tariff(trace([None]), TABLE, CacheTerms()).multipliers() == pytest.approx((0.1, 1.25))


def test_a_long_prompt_is_billed_at_its_own_prices() -> None:
    tariff = Tariff(trace([None, None], "long"), TABLE, CacheTerms())
    costs = costs_of(played([100_000, 100_001], [0, 100_000], [1000, 1000]), tariff, None)
    short, long = 100_000 * 2.5 + 1000 * 10, 1 * 5.0 + 100_000 * 0.4 + 1000 * 15
    assert costs.ideal == pytest.approx((short + long) / 1e6)


def test_calls_that_a_compaction_makes_are_paid_too() -> None:
    tariff = Tariff(trace([None]), TABLE, CacheTerms())
    costs = costs_of(played([1000], [0], [0], helper=[(800, 800, 50)]), tariff, None)
    assert costs.ideal == pytest.approx((1000 * 2.5 + 800 * 0.2 + 50 * 10) / 1e6)


def test_an_unknown_model_is_an_error_with_a_suggestion_and_no_model_is_no_price() -> None:
    with pytest.raises(InputError) as error:
        Tariff(trace([None], "longg"), TABLE, CacheTerms())
    assert "longg" in str(error.value) and "did you mean 'long'" in (error.value.hint or "")
    assert Tariff(trace([None], "longg"), TABLE, CacheTerms(), "m").row is ROW
    nameless = Tariff(trace([None], None), TABLE, CacheTerms())
    assert costs_of(played([1000], [0], [10]), nameless, None) == Costs()
    assert nameless.multipliers() is None


def test_baseline_holds_the_replay_against_the_bill() -> None:
    # each call: new tokens at 2, cached ones at 0.2
    usages = [
        Usage(1, input=1000, output=100, context=1000, cost=0.003, model="m"),
        Usage(2, input=1000, output=100, cache_read=900, context=1900, cost=0.00318, model="m"),
    ]
    found = baseline_of(
        trace(list(usages)),
        played([1000, 1900], [0, 1000], [100, 100]),
        Tariff(trace(list(usages)), TABLE, CacheTerms()),
    )
    assert found.recorded_cost == pytest.approx(0.00618)
    assert found.replayed_cost == pytest.approx(0.00618)
    assert found.replay_error == pytest.approx(0.0, abs=1e-9)
    assert found.efficiency == pytest.approx(0.9)
    assert found.calibrated and found.cause is None


def test_a_bill_at_another_price_is_off_and_named() -> None:
    usages: list[Usage | None] = [
        Usage(
            k, input=1000, output=0, cache_read=10_000, context=11_000, cost=(1000 * 2 + 10_000 * 0.1) / 1e6, model="m"
        )
        for k in range(1, 9)
    ]
    found = baseline_of(
        trace(usages), played([11_000] * 8, [0] + [10_500] * 7, [0] * 8), Tariff(trace(usages), TABLE, CacheTerms())
    )
    assert not found.calibrated
    assert found.replay_error == pytest.approx(1 / 3)
    assert found.cause == "billed with cache reads at $0.1 per million tokens (list: $0.2)"
    # terms that are laid over the list's prices are not the list's
    other = Tariff(trace(usages), TABLE, CacheTerms(read=0.4, write=2.0))
    again = baseline_of(trace(usages), played([11_000] * 8, [0] + [10_500] * 7, [0] * 8), other)
    assert (again.cause, again.replay_error) == (found.cause, found.replay_error)


def test_the_fit_of_a_cache_closes_on_what_was_reported() -> None:
    usages: list[Usage | None] = [Usage(k, cache_read=1000 * k - 150, context=1) for k in range(1, 21)]
    cached = [1000 * k for k in range(1, 21)]
    fit = fit_cache(usages, cached)
    assert fit is not None and fit.shortfall == pytest.approx(150) and fit.factor == pytest.approx(1.0)
    usages[10] = Usage(11, cache_read=0, context=1)  # one total miss counts as four times the median
    fit = fit_cache(usages, cached)
    assert fit is not None and fit.shortfall == pytest.approx((19 * 150 + 600) / 20)
    assert sum(fit.served(c) for c in cached) == pytest.approx(sum(u.cache_read for u in usages if u))
    assert fit_cache([Usage(1, context=1)], [500]) == CacheFit(0.0, 0.0, 1.0)
    assert fit_cache([None], [500]) is None


def test_the_second_half_is_predicted_by_the_first() -> None:
    usages: list[Usage | None] = []
    for k in range(1, 21):
        read = max(0, 1000 * (k - 1) - 100)
        usages.append(Usage(k, input=1000 * k - read, cache_read=read, context=1000 * k, model="m"))
    replay = played([1000 * k for k in range(1, 21)], [1000 * (k - 1) for k in range(1, 21)], [0] * 20)
    # writes are billed apart nowhere in this recording: the row's write price is the input's
    table = ModelTable({"m": replace(ROW, cache_write_price=None)})
    found = baseline_of(trace(usages), replay, Tariff(trace(usages), table, CacheTerms()))
    assert found.halves is not None
    assert found.halves[0] == pytest.approx(0.0, abs=1e-9)
    assert found.halves[1] < -0.03


def test_break_even_and_the_best_interval() -> None:
    replay = played([1], [0], [0], breaks=[(10_000, 2_000), (5_000, 0)])
    assert break_even(replay, (0.1, 1.25)) == pytest.approx(1.15 * 10_000 / (0.1 * 2_000))
    assert break_even(replay, None) is None and break_even(replay, (0.0, 1.0)) is None
    assert best_interval(10, (0.1, 1.25)) == pytest.approx(sqrt(2 * 10 * 1.15 / 0.1))


def test_the_life_of_the_cache_follows_the_recording() -> None:
    hour: list[Usage | None] = [Usage(1, cache_write=100, cache_write_1h=90, context=100)]
    assert Tariff(trace(hour), TABLE, CacheTerms()).life == 3600
    assert Tariff(trace([None]), TABLE, CacheTerms()).life == 300
    assert Tariff(trace(hour), TABLE, CacheTerms(life=60)).life == 60


def test_the_life_of_the_cache_is_told_from_pauses() -> None:
    def recording(*calls: tuple[float, int]) -> Trace:
        turns = [
            Turn(k, (), usage=Usage(k, input=100, cache_read=read, context=100 + read), time=time)
            for k, (time, read) in enumerate(calls, 1)
        ]
        return Trace("t", "t.jsonl", "m", [], [], [], [], turns)

    assert life_of(recording((0, 0), (10, 900), (400, 0))) == 300
    assert life_of(recording((0, 0), (400, 900), (800, 900), (1200, 0))) == 3600
    assert life_of(recording((0, 0), (400, 900), (9000, 900))) == inf
    assert life_of(recording((0, 0), (9000, 900))) == 300  # an hour was not seen to hold
