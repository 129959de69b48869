"""The compactor: cascade first, then eviction; the target is met unless what must stay is larger; and twice is once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.compaction.base import Scene
from ctxctl.compaction.cascade import Cascade
from ctxctl.compaction.options import CompactionOptions
from ctxctl.compaction.unanswered import LEAST
from ctxctl.eviction.base import Setting
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.eviction.options import EvictionOptions
from ctxctl.manager.compactor import LAST_RESORT, Compacted, Compactor
from ctxctl.manager.options import ManagerOptions

STEPS = ("tool-results", "progressive", "conversation")
SIZE = 128_000


def count(text: str, kind: str) -> int:
    return -(-len(text) // 4)


def compact(session: Any, window: Any, target: int, steps: Any = STEPS, **more: Any) -> tuple[Compactor, Compacted]:
    setting = Setting(SIZE, count, EvictionOptions())
    compactor = Compactor(window, Cascade(CompactionOptions(), str), Hybrid(setting), SIZE)
    scene = Scene(window, target, SIZE, count, lambda: session.facts, CompactionOptions())
    return compactor, compactor.run(steps, lambda: scene, target, **more)


STEP = st.one_of(
    st.just(("user",)),
    st.tuples(
        st.just("say"),
        st.sampled_from([0, 30, 900]),
        st.lists(st.sampled_from([0, 100, 3_000]), max_size=3),
        st.booleans(),
    ),
)


def told(session: Any, steps: Any) -> Any:
    session.user("the task: be fast")
    for n, step in enumerate(steps):
        if step[0] == "user":
            session.user(f"and then {n}")
        else:
            _, size, results, thinks = step
            calls = [
                ("Read", {"path": f"f{n}_{k}"}, f"value_{n}_{k} = {n}\n" * (s // 14)) for k, s in enumerate(results)
            ]
            session.say("w" * size or ("" if calls else "ok"), *calls, thinking="hm " * 9 if thinks else "")
    return session


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, max_size=30), share=st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0]))
def test_what_holds_for_all(steps: Any, share: float, sessions: Any) -> None:
    session = told(sessions(), steps)
    window = session.window()
    before, target = window.tokens, max(1, int(share * window.tokens))
    protected = {b: window.text(b) for u in (*window.fixed, *window.protected()) for b in window.present(u)}
    floor = window.overhead + sum(window.entries[b].tokens for b in protected)
    fresh = {b for u in window.fresh if u in window.resident for b in window.present(u)}
    cuttable = {b for b in fresh if window.block(b).kind == "tool_result"}
    lowest = floor - sum(max(0, window.entries[b].tokens - LEAST) for b in cuttable)
    _, done = compact(session, window, target)
    window.check()
    assert done.before == before and done.after == window.tokens <= before
    assert done.met is (done.after <= target)
    if lowest + 300 <= target:
        assert done.met, "nothing that must stay is in the way"
    for number, text in protected.items():
        if number in cuttable and window.entries[number].replaced:  # the last resort, and only as that
            assert floor + 300 > target and done.steps[-1].strategy == LAST_RESORT
            assert "characters left out" in window.text(number)
        else:
            assert window.text(number) == text and not window.entries[number].replaced
    there = set(window.entries)
    for number, block in enumerate(session.blocks):  # no call without its results, nor the other way round
        unit = [b for b in window.units[window.unit_of[number]].blocks if session.blocks[b].kind != "thinking"]
        carrier = [
            b for b in unit if b in there and window.entries[b].replaced and window.unit_of[b] in window.summaries
        ]
        left = [b for b in unit if b in there]
        assert left in ([], unit) or left == carrier, block.kind
    order = sorted(there, key=window.place)
    assert order == sorted(order), "what stays keeps its order"
    first = next((window.block(b) for b in order if window.block(b).kind != "system"), None)
    if first is not None and done.after < before:
        assert first.role == "user" or window.unit_of[order[0]] in window.summaries
    assert len([u for u in window.summaries if u in window.resident]) <= 1 + len(done.steps)
    if done.met:  # a second pass changes nothing
        texts = {b: window.text(b) for b in window.entries}
        _, again = compact(session, window, target)
        assert again.steps == () and again.evicted == () and {b: window.text(b) for b in window.entries} == texts


def rounds(session: Any, n: int = 20, size: int = 3_000) -> Any:
    session.user("task")
    for k in range(n):
        session.say(f"step {k}", ("Read", {"path": f"f{k}"}, f"value_{k} = {k}\n" * (size // 14)))
    session.user("go on")
    session.say("yes")
    return session


def test_eviction_comes_last_and_apart(session: Any) -> None:
    rounds(session)
    window = session.window()
    _, done = compact(session, window, window.tokens // 3, ("tool-results",))
    assert [s.strategy for s in done.steps] == ["tool-results"] and done.evicted == () and done.met
    _, done = compact(session, window := session.window(), 600, ("tool-results",))
    assert done.steps and done.evicted and done.met
    assert done.steps[-1].after - sum(d.tokens for d in done.evicted) == done.after == window.tokens
    ranked = [d for d in done.evicted if d.score is not None]
    assert ranked and all(d.parts and d.reason for d in ranked)


def test_without_eviction(session: Any) -> None:
    rounds(session)
    _, done = compact(session, session.window(), 600, ("tool-results",), evict=False)
    assert done.evicted == () and not done.met


def test_the_floor_and_its_causes(session: Any) -> None:
    session.user("task " * 500)
    session.say("ok")
    session.user("and this " * 300)
    window = session.window()
    _, done = compact(session, window, 100)
    assert not done.met and done.after >= done.floor > 100
    assert dict(done.causes)["task"] == 625 and [t for _, t in done.causes] == sorted(
        (t for _, t in done.causes), reverse=True
    )
    assert done.floor == sum(t for _, t in done.causes)
    assert len(done.too_large) == 2 and "625 tokens" in " ".join(done.too_large)


@pytest.mark.parametrize(("read", "write", "paid"), [(0.1, 1.25, True), (0.0, 1.0, None), (1.0, 1.0, 0.0)])
def test_the_break_even(read: float, write: float, paid: Any, session: Any) -> None:
    rounds(session)
    window = session.window()
    _, done = compact(session, window, window.tokens // 2)
    even = done.break_even(read, write)
    assert even == paid if paid is not True else even is not None and even > 0
    if paid is True:
        behind = done.after - done.prefix_kept
        assert even == pytest.approx(1.15 * behind / (0.1 * (done.before - done.after)))
    assert 0 <= done.prefix_kept < done.after


def test_nothing_freed_is_never_paid_back(session: Any) -> None:
    rounds(session, 2)
    window = session.window()
    _, done = compact(session, window, window.tokens)
    assert done.freed == 0 and done.break_even(0.1, 1.25) is None and done.steps == ()


def test_the_outcome_is_in_the_transcript_s_own_numbers(session: Any) -> None:
    rounds(session)
    window = session.window()
    numbers = [1000 + 2 * n for n in range(len(session.blocks))]
    compactor, _ = compact(session, window, window.tokens // 6)
    outcome = compactor.outcome(numbers)
    assert set(outcome.live) | outcome.gone == set(numbers) and not set(outcome.live) & outcome.gone
    assert set(outcome.changed) <= set(outcome.live) and list(outcome.live) == sorted(outcome.live)
    for number, change in outcome.changed.items():
        assert window.text(numbers.index(number)) == change.text


def test_the_manager_s_thresholds_are_those_of_the_command() -> None:
    assert ManagerOptions() is not None
    assert sorted(CompactionOptions().cascade) == [0.75, 0.85, 0.92, 0.95]


def test_the_last_resort_comes_last(session: Any) -> None:
    """Results that no call has answered are cut when nothing else is left to do, and no more than needed."""
    rounds(session, 8)
    session.say("", ("Bash", {"command": "cat log"}, "line of the log\n" * 800))
    window = session.window()
    last = len(session.blocks) - 1
    held = window.entries[last].tokens
    _, done = compact(session, window, held + 400)
    assert done.met and LAST_RESORT not in [s.strategy for s in done.steps] and not window.entries[last].replaced
    _, done = compact(session, window := session.window(), held - 500)
    assert done.met and [s.strategy for s in done.steps].index(LAST_RESORT) == len(done.steps) - 1 > 0
    assert held - 900 < window.entries[last].tokens <= held - 500
    assert "of 12800 characters left out" in window.text(last)
    _, done = compact(session, session.window(), held - 500, evict=False)
    assert not done.met and LAST_RESORT not in [s.strategy for s in done.steps]
