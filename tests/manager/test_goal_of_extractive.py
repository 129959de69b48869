"""Without a target a strategy that has one of its own keeps to it, others to that of the settings (C10)."""

from __future__ import annotations

import pytest

from ctxctl.compaction.base import STRATEGIES, own_target
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions
from ctxctl.manager.session import goal_of


@pytest.mark.parametrize(("size", "budget"), [(128_000, 85_333), (200_000, 133_333), (1_000, 666)])
def test_extractive_has_a_budget(size: int, budget: int) -> None:
    goal = goal_of(size, size, CompactionOptions(), EvictionOptions(), steps=("extractive",))
    assert (goal.tokens, goal.steps) == (budget, ("extractive",))
    asked = goal_of(size, size, CompactionOptions(), EvictionOptions(), target=77, steps=("extractive",))
    assert asked.tokens == 77


def test_others_have_none() -> None:
    for name, _ in STRATEGIES:
        assert name == "extractive" or own_target((name,), 128_000) is None
    for steps in (("conversation",), ("tool-results", "extractive")):
        assert goal_of(1_000, 900, CompactionOptions(), EvictionOptions(), steps=steps).tokens == 600
    assert own_target((), 128_000) is None
