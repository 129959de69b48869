"""The clairvoyant ceiling: what it lets go, and that long runs take it no longer per turn."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import pytest
from tiny_traces import Case, held, run

from ctxctl.model.unit import Reference


def test_what_nothing_needs_goes_before_all_else_however_small() -> None:
    case = Case([held(0, at=1, tokens=50), held(at=1, tokens=1), held(at=2, tokens=10)], {9: [0]}, 9)
    assert run(case.trace(), "clairvoyant", 60).refetched == 0
    assert run(case.trace(), "largest-first", 60).refetched == 50


def test_what_is_needed_later_goes_first() -> None:
    case = Case([held(0, at=1), held(1, at=1), held(2, at=2)], {3: [1, 2], 4: [0]}, 4)
    done = run(case.trace(), "clairvoyant", 20)
    assert (done.refetched, done.misses) == (10, 1)


def test_one_of_two_that_hold_the_same_is_enough() -> None:
    # both hold 0; the larger holds 1 too, so the smaller one is of no use
    case = Case([held(0, at=1, tokens=10), held(0, 1, at=1, tokens=12), held(2, at=2, tokens=10)], {4: [0, 1, 2]}, 4)
    assert run(case.trace(), "clairvoyant", 22).refetched == 0


def test_a_miss_that_is_cheap_to_mend_goes_before_a_dear_one() -> None:
    # both are used at call 4; what the large one holds stood in a small one before
    case = Case(
        [held(0, at=1, tokens=2), held(0, at=2, tokens=20), held(1, at=2, tokens=20), held(at=3)], {4: [0, 1]}, 4
    )
    assert run(case.trace(), "clairvoyant", 22).refetched == 0
    assert run(case.trace(), "clairvoyant", 21).refetched == 2


def test_atoms_that_nothing_refers_to_are_no_use() -> None:
    case = Case([held(3, at=1), held(0, at=1), held(at=2)], {3: [0]}, 3)
    assert run(case.trace(), "clairvoyant", 20).refetched == 0


@pytest.mark.slow
def test_time_grows_with_the_number_of_turns() -> None:
    def seconds(calls: int) -> float:
        """Each call brings a unit of its own and uses that of some thousand calls ago, or one of the first again."""
        case = Case([held(n % 5003, at=n, tokens=100) for n in range(1, calls + 1)], {}, calls)
        trace = case.trace()

        def uses(call: int) -> tuple[Reference, ...]:
            atoms = {max(1, call - 1000) % 5003, call * 7 % 997 + 1} if call > 1000 else set()
            return tuple(Reference(call, a, "number", 1.0, a - 1, True, "") for a in sorted(atoms) if a)

        trace = replace(trace, turns=[replace(t, references=uses(t.index)) for t in trace.turns])
        began = perf_counter()
        done = run(trace, "clairvoyant", 10_000)
        assert done.misses > calls / 10
        return perf_counter() - began

    seconds(2_000)
    short, long = seconds(5_000), seconds(20_000)
    assert long < 8 * short
