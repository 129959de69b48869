"""What calls cost by their parts, how that grew, and what went to blocks that were never used again."""

from __future__ import annotations

import random
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from sessions import ClaudeSession, examined, lines_of  # type: ignore[import-not-found]

from ctxctl import load_models
from ctxctl.budgets.cost import prices_of, session_cost
from ctxctl.budgets.money import CallCost, Money, growth_of, money_of
from ctxctl.budgets.unreferenced import unreferenced_cost
from ctxctl.health.session import Session
from ctxctl.model.unit import Trace
from ctxctl.model.usage import Usage
from ctxctl.trace.residence import Stay

TABLE = load_models()
SAMPLES = Path(__file__).parents[2] / "sample_transcripts"


def money(session: Session) -> Money:
    return money_of(session.transcript, session.trace, session.stays, session.table)


def calls(*costs: float) -> list[CallCost]:
    return [CallCost(n, cost, 0, 0, 0) for n, cost in enumerate(costs, 1)]


def test_parts_add_up_to_the_bill() -> None:
    session = examined(SAMPLES / "axios-to-fetch.jsonl")
    found = money(session)
    whole = session_cost(session.transcript.usage, TABLE, session.transcript.model)
    assert found.total == pytest.approx(whole, rel=1e-12)
    parts = (found.input, found.cache_read, found.cache_write, found.output)
    assert found.total == pytest.approx(fsum(p for p in parts if p is not None), rel=1e-12)
    assert found.cache_read_share == pytest.approx((found.cache_read or 0) / (found.total or 1))
    assert found.per_turn == pytest.approx((found.total or 0) / found.requests)


def test_one_call_by_hand(tmp_path: Path) -> None:
    """claude-sonnet-4-5: 3 USD in, 0.30 cache read, 3.75 and 6 write, 15 out, per million."""
    session = ClaudeSession(tmp_path, overhead=12_000)
    session.user("Hello")
    session.answer("Hi", prompt=12_010, cached=10_000, output=100, hour=True)
    found = money(session.examine())
    assert found.cache_read == pytest.approx(10_000 * 0.30 / 1e6)
    assert found.cache_write == pytest.approx(2000 * 6 / 1e6)
    assert found.input == pytest.approx(10 * 3 / 1e6)
    assert found.output == pytest.approx(100 * 15 / 1e6)


def test_an_unknown_model_has_no_price(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path, model="nobody-knows-1")
    session.user("Hello")
    session.read("a.py", lines_of(20))
    session.answer("Hi")
    found = money(session.examine())
    assert (found.total, found.per_turn, found.cache_read_share, found.growth) == (None, None, None, None)
    assert (found.unreferenced, found.unreferenced_share) == (None, None)
    assert found.requests == 2


def test_linear_and_quadratic_curves() -> None:
    flat = growth_of(calls(*[0.5] * 40))
    rising = growth_of(calls(*[0.01 * n for n in range(1, 1201)]))
    assert flat is not None and rising is not None
    assert (flat.first_mean, flat.last_mean, flat.slope) == (0.5, 0.5, pytest.approx(0))
    assert flat.exponent == pytest.approx(1)
    assert flat.fit == pytest.approx(1)
    assert rising.slope == pytest.approx(0.01)
    assert (rising.first_mean, rising.last_mean) == (pytest.approx(0.055), pytest.approx(11.955))
    assert rising.exponent == pytest.approx(2, abs=0.01)
    assert (rising.calls, rising.ends, rising.points) == (1200, 10, 400)


def test_a_dear_first_call_does_not_hide_a_rise() -> None:
    """It stores the system prompt; on logarithms it would pull the exponent below 1."""
    found = growth_of(calls(0.3, *[0.002 * n for n in range(1, 100)]))
    assert found is not None and found.exponent is not None
    assert found.exponent > 1.7


def test_few_calls_have_no_exponent() -> None:
    assert growth_of(calls(0.1)) is None
    few = growth_of(calls(*[0.1] * 9))
    assert few is not None
    assert (few.exponent, few.fit, few.ends) == (None, None, 4)
    many = growth_of(calls(*[0.1] * 10))
    assert many is not None and many.exponent is not None
    free = growth_of(calls(*[0.0] * 20))
    assert free is not None and free.exponent is None


# what was never used again

EVICTABLE = {"tool_call", "tool_result", "image", "document", "memory_injection", "thinking"}


def by_hand(trace: Trace, stays: list[Stay]) -> float:
    """The same figure the slow way: every block at every call, by where its tokens lie in the prompt."""
    spent = 0.0
    for turn in trace.turns:
        usage = turn.usage
        if usage is None or not usage.reported or not usage.prompt:
            continue
        row = TABLE.find(usage.model or trace.model)
        prices = prices_of(row, usage.prompt) if row is not None else None
        if prices is None:
            continue
        there = [b for b in range(len(trace.blocks)) if stays[b].holds(turn.index)]
        known = trace.overhead + sum(trace.tokens[b] for b in there)
        scale = usage.prompt / known if known > usage.prompt else 1.0
        at = trace.overhead * scale if scale < 1 else usage.prompt - (known - trace.overhead)
        fresh = usage.input + usage.cache_write
        hour = min(usage.cache_write_1h, usage.cache_write)
        stored = (usage.cache_write - hour) * prices.write + hour * prices.write_1h
        each = (usage.input * prices.input + stored) / fresh if fresh else prices.input
        for b in there:
            begin, at = at, at + trace.tokens[b] * scale
            cached = max(0.0, min(at, usage.cache_read) - begin)
            if trace.blocks[b].kind not in EVICTABLE or trace.units[trace.unit_of[b]].pinned is not None:
                continue
            if stays[b].came == turn.index or used_from(trace, stays[b], b, turn.index):
                continue
            spent += (cached * prices.read + (at - begin - cached) * each) / 1e6
    return spent


def used_from(trace: Trace, stay: Stay, block: int, now: int) -> bool:
    mine = set(trace.atoms[block])
    later = (t for t in trace.turns if t.index >= now and stay.holds(t.index))
    return any(r.atom in mine for t in later for r in t.references)


def row_of(trace: Trace) -> Any:
    return lambda usage: TABLE.find(usage.model or trace.model)


def checked(session: Session) -> float:
    found = unreferenced_cost(session.trace, session.stays, row_of(session.trace))
    assert found is not None
    assert found == pytest.approx(by_hand(session.trace, list(session.stays)), rel=1e-9, abs=1e-12)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_the_slow_way(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    session = ClaudeSession(tmp_path, overhead=rng.choice((0, 500, 15_000)))
    session.user("Work on it.")
    ids: list[str] = []
    marks = []
    for _ in range(rng.randrange(8, 40)):
        what = rng.random()
        word = f"name_{rng.randrange(8)}"
        if what < 0.5:
            ids.append(session.read(f"/app/{word}.py", lines_of(rng.randrange(2, 60), word), hour=rng.random() < 0.3))
        elif what < 0.7:
            session.answer(f"I use {word}_3 and compute_{word} now.", thinking="Hm. " * rng.randrange(1, 40))
        elif what < 0.8:
            marks.append(session.user(f"Go on with {word}_{rng.randrange(9)}."))
            session.answer("Yes.", prompt=session.tokens + rng.randrange(-50, 400), cached=rng.randrange(0, 400))
        elif what < 0.85 and ids:
            session.clear(*rng.sample(ids, min(3, len(ids))))
        elif what < 0.88:
            session.compact(f"{word}_1 was read.")
            ids.clear()
        elif what < 0.92 and marks:
            session.rewind(marks.pop())
            ids.clear()
        else:
            session.wait(1000)
    session.answer("Done.")
    checked(session.examine())


@pytest.mark.parametrize("sample", ["axios-to-fetch.jsonl", "codex-rollout.jsonl"])
def test_samples_agree_with_the_slow_way(sample: str) -> None:
    session = examined(SAMPLES / sample)
    spent = checked(session)
    found = money(session)
    assert found.unreferenced == pytest.approx(spent)
    assert 0 <= (found.unreferenced_share or 0) <= 1


def test_what_is_used_again_costs_nothing_and_what_is_not_does(tmp_path: Path) -> None:
    def spent(last: str) -> float:
        session = ClaudeSession(tmp_path)
        session.user("Look at it.")
        session.read("/app/a.py", lines_of(100, "greeting"))
        for n in range(6):
            session.answer(f"Thought {n}.")
        session.answer(last)
        return checked(session.examine())

    idle, used = spent("Done."), spent("greeting_42 = compute_greeting(42, flag=0) is the line.")
    # the call stays unused either way; the result is what differs
    assert idle > 10 * used > 0


def test_the_read_itself_is_a_use(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Look at it.")
    session.read("/app/a.py", lines_of(100, "greeting"))
    session.answer("Done.")
    assert checked(session.examine()) == 0, "the last call is the one that reads it first"


def test_cached_tokens_cost_what_a_cache_read_does(tmp_path: Path) -> None:
    def spent(cached: int) -> float:
        session = ClaudeSession(tmp_path, overhead=10_000)
        session.user("Look at it.")
        session.read("/app/a.py", lines_of(100, "greeting"), prompt=10_010, cached=0)
        session.answer("Hm.", prompt=12_000, cached=0)
        session.answer("Done.", prompt=12_010, cached=cached)
        return checked(session.examine())

    assert spent(12_000) == pytest.approx(spent(0) * 0.30 / 3.75, rel=0.01)


def test_calls_without_usage_are_left_out(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Look at it.")
    session.read("/app/a.py", lines_of(100, "greeting"))
    session.answer("Done.")
    made = session.examine()
    assert unreferenced_cost(made.trace, made.stays, lambda usage: None) is None
    assert Usage(1, reported=False).prompt == 0
