"""Scores of the ranking policies, to the digit (requirements E2 to E7)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.errors import UsageError
from ctxctl.eviction.base import Setting
from ctxctl.eviction.fifo import freshness
from ctxctl.eviction.lru import used
from ctxctl.eviction.options import EvictionOptions, EvictionWeights, Importance, Rule
from ctxctl.eviction.priority import priority
from ctxctl.eviction.specs import policy_of
from ctxctl.eviction.type_ttl import life
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import KINDS

TTL = {"tool_result": 10, "thinking": 3, "memory_injection": 5}


def open_window(builder: Any, policy: str, turn: int, **more: Any) -> ContextWindowManager:
    """All blocks are in, each at its own turn, and one call is about to be made."""
    manager: ContextWindowManager = builder.manager(10**9, policy, **more)
    builder.run(manager, turn)
    assert manager.turn == turn
    return manager


@pytest.mark.parametrize(("age", "score"), [(0, 1.0), (1, 0.5), (3, 0.25), (9, 0.1), (99, 0.01)])
def test_fifo(age: int, score: float, build: Any) -> None:
    assert freshness(age) == pytest.approx(score, abs=1e-12)
    builder = build()
    unit = builder.unit(builder.add(1, "assistant", 10))
    window = open_window(builder, "fifo", age + 1).window
    assert policy_of("fifo", Setting(100)).score(window, [unit]) == [pytest.approx(score)]


@pytest.mark.parametrize(
    ("references", "score"), [(0, 0.1), (1, 0.2), (2, 0.4), (3, 0.6), (4, 0.8), (5, 1.0), (6, 1.0), (50, 1.0)]
)
def test_lru(references: int, score: float) -> None:
    assert used(references) == pytest.approx(score, abs=1e-12)


def test_lru_ties_by_last_use(build: Any) -> None:
    """Recency breaks ties and does not change the score."""
    builder = build()
    first, second, third = (builder.unit(builder.add(1, "assistant", 10)) for _ in range(3))
    manager = open_window(builder, "lru", 4)
    window = manager.window
    window.references.update({first: 1, second: 1, third: 1})
    window.used.update({first: 3, second: 2, third: 3})
    ranking = manager.ranking()
    assert [drop.unit for drop in ranking] == [second, first, third]
    assert {drop.score for drop in ranking} == {0.2}


def test_references_count_for_some_turns(build: Any) -> None:
    builder = build(EvictionOptions(reference_turns=2))
    unit = builder.unit(builder.add(1, "assistant", 10))
    manager = builder.manager(10**6, "lru")
    manager.enter(0)
    counts = []
    for turn in range(1, 6):
        manager.turn_start()
        manager.turn_end(credits=[(unit, 2)] if turn == 2 else [])
        counts.append(manager.window.references.get(unit, 0))
    assert counts == [0, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("kind", "score"),
    [
        ("system", 1.0),
        ("user_message", 0.8),
        ("assistant", 0.6),
        ("memory_injection", 0.55),
        ("tool_result", 0.5),
        ("tool_call", 0.5),
        ("summary", 0.5),
        ("document", 0.5),
        ("image", 0.5),
        ("thinking", 0.4),
    ],
)
def test_priority_by_source(kind: str, score: float) -> None:
    assert priority(kind, 0.5) == pytest.approx(score, abs=1e-12)


def test_priority_is_within_0_and_1() -> None:
    assert priority("thinking", 0.0) == 0.0
    assert priority("system", 1.0, 1.0) == 1.0
    assert priority("tool_result", 0.5, 0.5) == pytest.approx(0.6)
    assert priority("tool_result", 0.5, -1.0) == 0.5
    assert all(0 <= priority(kind, value) <= 1 for kind in KINDS for value in (0.0, 0.05, 0.5, 0.95, 1.0))


def test_the_first_rule_that_fits_sets_the_importance(build: Any) -> None:
    rules = (
        Importance(0.9, Rule(tool="Read", regex="keep")),
        Importance(0.2, Rule(tool="Read")),
        Importance(0.0, Rule(path=r"\.log$")),
    )
    builder = build(EvictionOptions(importance=rules))
    units = [
        builder.unit(builder.call(1, 10, "keep this")),
        builder.unit(builder.call(1, 10, "any")),
        builder.unit(builder.call(1, 10, "any", tool="Grep", target="a.log")),
        builder.unit(builder.call(1, 10, "any", tool="Grep", target="a.logs")),
    ]
    manager = open_window(builder, "priority", 2)
    assert manager.policy.score(manager.window, units) == [0.9, 0.2, 0.0, 0.5]


def test_a_unit_is_as_important_as_the_most_important_of_its_blocks(build: Any) -> None:
    rules = (
        Importance(0.1, Rule(kind="tool_result", regex="log")),
        Importance(0.9, Rule(kind="tool_result")),
        Importance(0.2, Rule(kind="tool_call", regex="ls")),
        Importance(0.7, Rule(kind="tool_call", regex="cat")),
    )
    builder = build(EvictionOptions(importance=rules))
    cases = [("cat", "a log", 0.7), ("ls", "a log", 0.2), ("cat", "text", 0.9), ("rm", "a log", 0.5)]
    units = [builder.unit(builder.call(1, 10, text, arguments=call)) for call, text, _ in cases]
    manager = open_window(builder, "priority", 2)
    assert manager.policy.score(manager.window, units) == [score for *_, score in cases]
    manager.window.drop(builder.trace().units[units[2]].blocks[1])
    assert manager.policy.score(manager.window, units[2:3]) == [0.7]  # of what is there


@pytest.mark.parametrize(
    ("kind", "age", "score"),
    [
        ("tool_result", 0, 1.0),
        ("tool_result", 1, 0.9),
        ("tool_result", 9, 0.1),
        ("tool_result", 10, 0.0),
        ("tool_result", 11, 0.0),
        ("thinking", 1, 2 / 3),
        ("thinking", 3, 0.0),
        ("memory_injection", 4, 0.2),
        ("memory_injection", 5, 0.0),
        ("user_message", 1000, 0.5),
        ("assistant", 0, 0.5),
    ],
)
def test_type_ttl(kind: str, age: int, score: float) -> None:
    assert life(kind, age, TTL) == pytest.approx(score, abs=1e-12)


def worked_example(build: Any) -> Any:
    """Requirement E7. The user message of turn 0 is the one of the current exchange."""
    options = EvictionOptions(
        importance=(Importance(0.9, Rule(kind="user_message")), Importance(0.2, Rule(kind="thinking"))),
        pin_task=False,
    )
    builder = build(options)
    builder.add(1, "system", 200)
    builder.add(1, "user_message", 300)
    builder.add(2, "tool_result", 1500, call="c", tool="Read", role="tool")
    builder.add(5, "thinking", 200)
    return builder


def test_hybrid_worked_example(build: Any) -> None:
    builder = worked_example(build)
    manager = open_window(builder, "hybrid", 11)  # turns count from 1 here
    window = manager.window
    user, result, thinking = (builder.unit(number) for number in (1, 2, 3))
    window.references[result] = 3
    scores = manager.policy.score(window, [user, result, thinking])
    assert [f"{score:.4f}" for score in scores] == ["0.4473", "0.3200", "0.0929"]
    for unit, score in zip((user, result, thinking), scores, strict=True):
        assert sum(manager.policy.parts(window, unit).values()) == pytest.approx(score, abs=1e-12)


def test_hybrid_frees_what_it_can_and_reports_the_rest(build: Any) -> None:
    builder = worked_example(build)
    manager = builder.manager(1000, "hybrid", trigger=1.0, target=0.2)
    for turn in builder.trace(10).turns:
        for number in turn.arrivals:
            manager.enter(number)
        manager.turn_end()
    manager.window.references[builder.unit(2)] = 3
    decision = manager.turn_start()
    assert decision.tokens - 200 == 2000
    assert [drop.unit for drop in decision.edits.drops] == [builder.unit(3), builder.unit(2)]
    assert [f"{drop.score:.4f}" for drop in decision.edits.drops] == ["0.0929", "0.3200"]
    assert sum(drop.tokens for drop in decision.edits.drops) == 1700
    assert decision.floor is not None
    assert decision.floor - 200 == 300
    assert dict(decision.causes) == {"system": 200, "current exchange": 300}


def test_the_weights_of_the_settings_and_of_the_spec() -> None:
    setting = Setting(100, options=EvictionOptions(weights=EvictionWeights(0.1, 0.2, 0.3, 0.4)))
    assert policy_of("hybrid", setting).weights == [0.1, 0.2, 0.3, 0.4]  # type: ignore[attr-defined]
    spec = "hybrid:freshness=1,priority=0,type_ttl=0,reference=0"
    assert policy_of(spec, setting).weights == [1.0, 0.0, 0.0, 0.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "told", ["freshness=0.5", "freshness=-0.1,priority=0.7", "freshness=nan", "freshness=inf", "priority=0.31"]
)
def test_weights_that_do_not_add_up(told: str) -> None:
    with pytest.raises(UsageError, match="weights"):
        policy_of(f"hybrid:{told}", Setting(100))


def test_ties_go_by_age_then_by_number(build: Any) -> None:
    builder = build()
    late = [builder.unit(builder.add(2, "assistant", 10)) for _ in range(2)]
    early = [builder.unit(builder.add(1, "assistant", 10)) for _ in range(2)]
    manager = open_window(builder, "priority", 3)
    assert [drop.unit for drop in manager.ranking()] == [*early, *late]


def test_a_drop_is_named_with_score_parts_tokens_and_reason(build: Any) -> None:
    builder = build()
    builder.call(1, 490, size=10)
    builder.add(2, "assistant", 400)
    manager = builder.manager(1000, "hybrid", target=0.5)
    decision = builder.run(manager)[-1]
    (drop,) = decision.edits.drops
    assert (drop.tokens, drop.blocks, drop.reason) == (500, (0, 1), "hybrid")
    assert drop.parts is not None and list(drop.parts) == ["freshness", "priority", "type_ttl", "reference"]
    assert drop.score == pytest.approx(sum(drop.parts.values()))
