"""What a call that a compaction makes finds in the cache: by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tiny_traces import Case, Made

from ctxctl.eviction.base import Policy, Setting
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.edits import Edits
from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.window import Window
from ctxctl.simulate.bill import CacheTerms, Tariff, costs_of
from ctxctl.simulate.presets.amounts import Estimator
from ctxctl.simulate.presets.estimate import measure_of, rough_tokens
from ctxctl.simulate.replay import ReplayOptions, replay

TABLE = ModelTable(
    {"m": ModelRow("m", input_price=2.0, output_price=10.0, cache_read_price=0.2, cache_write_price=2.5)}
)
CALLS = 3


class Asks(Policy):
    """Before the last call a model is asked about the window, as told."""

    name = "asks"
    ranks = False
    calls: tuple[tuple[int, int, bool], ...] = ()

    def rule(self, window: Window) -> Edits:
        return Edits(helper=self.calls) if window.turn == CALLS else Edits()


def asked(*calls: tuple[int, int, bool], wait: float = 60.0, tokens: int = 2000) -> Any:
    units = [Made([(n, tokens)], kind="user_message", exchange=n) for n in range(1, CALLS + 1)]
    trace = dataclasses.replace(Case(units, {}, CALLS).trace(), model="m")
    for n, turn in enumerate(trace.turns):
        trace.turns[n] = dataclasses.replace(turn, time=60.0 * n + (wait - 60.0) * (turn.index == CALLS))
    policy = Asks(Setting(100_000))
    policy.calls = calls
    return trace, replay(trace, ContextWindowManager(100_000, policy=policy, trace=trace), ReplayOptions())


def test_a_request_that_goes_on_reads_what_was_sent_from_the_cache() -> None:
    trace, found = asked((6000, 100, True), (6000, 100, False), (3000, 50, True))
    assert found.prompts == [2000, 4000, 6000]
    assert found.helper == [(6000, 4000, 100), (6000, 0, 100), (3000, 3000, 50)]
    alone = asked((6000, 100, False))[1]
    tariff = Tariff(trace, TABLE, CacheTerms())
    none = costs_of(asked()[1], tariff, None)
    more = costs_of(alone, tariff, None)
    assert none.ideal is not None and more.ideal is not None
    assert more.ideal - none.ideal == pytest.approx((6000 * 2.5 + 100 * 10) / 1e6)
    shared = costs_of(asked((6000, 100, True))[1], tariff, None)
    assert shared.ideal is not None
    assert shared.ideal - none.ideal == pytest.approx((2000 * 2.5 + 4000 * 0.2 + 100 * 10) / 1e6)


def test_not_when_the_cache_has_gone_or_the_prefix_is_too_short() -> None:
    assert asked((6000, 100, True), wait=300.0)[1].helper == [(6000, 4000, 100)]
    assert asked((6000, 100, True), wait=301.0)[1].helper == [(6000, 0, 100)]
    assert asked((1500, 100, True), tokens=511)[1].helper == [(1500, 0, 100)]
    assert asked((1500, 100, True), tokens=512)[1].helper == [(1500, 1024, 100)]


def test_an_estimate_may_depend_on_the_model() -> None:
    told = Estimator(kind="estimate", per=4, per_anthropic=3.3)
    for model, per in ((None, 4), ("gpt-5", 4), ("claude-sonnet-4-5", 3.3), ("anthropic/Claude-3-opus", 3.3)):
        assert measure_of(told, model)("x" * 330, "user_message", 0) == pytest.approx(330 / per)
    assert measure_of(Estimator(kind="estimate"), "claude-sonnet-4-5")("x" * 330, "user_message", 0) == 82.5


def test_octos_counts_each_text_by_itself() -> None:
    assert [rough_tokens(t) for t in ("", "a", "hello world", "\u4f60\u597d\u4e16", "abcd\u4f60\u597d")] == [
        1,
        1,
        2,
        2,
        2,
    ]
    measure = measure_of(Estimator(kind="estimate", apart=True))
    assert measure('bash {"a":1}', "tool_call", 9) == 1 + 1
    assert measure("x" * 400, "thinking", 9) == 0
