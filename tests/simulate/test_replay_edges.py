"""What comes back into the window, and what does not."""

from __future__ import annotations

from dataclasses import replace

from tiny_traces import Case, Made, held, run

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.simulate.replay import replay


def test_blocks_of_a_unit_that_are_yet_to_come_do_not_come_back_with_it() -> None:
    # the result holds 0 and leaves at call 3; a picture of it arrives at call 5, after it was fetched at call 4
    late = Made([(1, 10), (1, 10), (5, 7)], frozenset([0]), "tool")
    case = Case([late, held(at=3, tokens=25, kind="tool_result")], {4: [0]}, 6)
    done = run(case.trace(), "fifo", 30)
    assert done.refetched == 27
    assert done.prompts == [20, 20, 25, 25, 27, 27]


def test_what_the_client_took_back_does_not_come_back() -> None:
    trace = Case([held(0, at=1, tokens=10), held(at=2, tokens=5)], {4: [0]}, 5).trace()
    turns = [replace(t, leaving=(0,)) if t.index == 3 else t for t in trace.turns]
    manager = ContextWindowManager(100, policy="fifo", trace=trace)
    done = replay(replace(trace, turns=turns), manager)
    assert done.prompts == [10, 15, 5, 5, 5]


def test_an_old_prompt_that_came_back_is_not_the_current_one() -> None:
    old = held(0, at=1, tokens=10, kind="user_message", exchange=1)
    new = held(at=2, tokens=10, kind="user_message", exchange=2)
    case = Case([old, new, held(at=3), held(at=5, tokens=10)], {4: [0]}, 5)
    trace = case.trace()
    manager = ContextWindowManager(20, policy="fifo", trace=trace, trigger=1.0, target=1.0)
    replay(trace, manager)
    assert manager.window.asked == {1}


def test_what_shrank_unseen_is_no_more_than_what_no_policy_evicts() -> None:
    case = Case([held(at=1, tokens=4, pinned=True), held(at=1, tokens=20), held(at=3)], {}, 4, 3, {2: -10, 4: 2})
    trace = case.trace()
    # overhead 3 and pinned 4: at most 7 of the 10 that the recording lost can be lost here
    assert run(trace, "unbounded", 1000).prompts == [27, 20, 30, 32]
    assert run(trace, "fifo", 1).prompts == [7, 0, 0, 2]
