"""The calibration finds the ratio, isn't led astray, and refuses to guess."""

from __future__ import annotations

import math
import random
import time

import pytest

from ctxctl.tokens.calibrated import MIN_PAIRS, PRIOR_WEIGHT, calibrate

Pairs = list[tuple[float, float]]


def session(ratio: float, count: int, noise: float = 0.05, seed: int = 1) -> Pairs:
    rng = random.Random(seed)
    sizes = [rng.lognormvariate(6.5, 1.2) + 20 for _ in range(count)]
    return [(size, size * ratio * rng.gauss(1, noise)) for size in sizes]


@pytest.mark.parametrize("ratio", [0.7, 0.9, 1.0, 1.2, 1.6])
def test_recovers_the_ratio(ratio: float) -> None:
    found = calibrate(session(ratio, 2_000))
    assert found is not None
    assert found.ratio == pytest.approx(ratio, rel=0.015)
    assert found.bound == pytest.approx(0.05 * 0.6745, rel=0.2)  # the median of |x| of a normal distribution
    assert found.pairs == 2_000


@pytest.mark.parametrize("outlier", [0.05, 6.0])
def test_thirty_percent_outliers_on_one_side(outlier: float) -> None:
    rng = random.Random(7)
    pairs = [(e, e * outlier * rng.uniform(0.5, 2) if rng.random() < 0.3 else a) for e, a in session(1.25, 1_000)]
    found = calibrate(pairs)
    assert found is not None
    assert found.ratio == pytest.approx(1.25, rel=0.02)
    plain = sum(a / e for e, a in pairs) / len(pairs)
    assert abs(plain / 1.25 - 1) > 0.25  # what the mean would have said


def test_outliers_near_by_and_of_both_kinds() -> None:
    rng = random.Random(9)
    pairs = [(e, a * rng.choice((0.8, 1.5)) if rng.random() < 0.3 else a) for e, a in session(1.1, 1_000)]
    found = calibrate(pairs)
    assert found is not None
    assert found.ratio == pytest.approx(1.1, rel=0.03)


def test_few_pairs_lean_on_the_table() -> None:
    exact = calibrate([(100.0, 140.0)] * 20)
    assert exact is not None
    assert exact.ratio == pytest.approx((PRIOR_WEIGHT + 20 * 1.4) / (PRIOR_WEIGHT + 20))
    many = calibrate(session(1.4, 400, 0.01))
    assert many is not None
    assert many.ratio == pytest.approx((PRIOR_WEIGHT + 400 * 1.4) / (PRIOR_WEIGHT + 400), rel=0.003)


def test_refuses_with_too_few_usable_pairs() -> None:
    pairs = session(1.2, MIN_PAIRS - 1)
    unusable: Pairs = [
        (0.0, 5.0),
        (-3.0, 5.0),
        (5.0, 0.0),
        (5.0, -4.0),
        (math.nan, 5.0),
        (5.0, math.nan),
        (math.inf, 5.0),
        (5.0, math.inf),
        (1e-300, 1e300),
        (1e300, 1e-300),
    ]
    assert calibrate([]) is None
    assert calibrate(pairs + unusable * 10) is None
    assert calibrate([*pairs, *unusable, (100, 120)]) is not None


def test_identical_pairs_and_the_bound() -> None:
    found = calibrate([(200, 200)] * 50)
    assert found is not None
    assert (found.ratio, found.bound, found.pairs) == (1.0, 0.0, 50)


def test_is_deterministic_and_fast() -> None:
    pairs = session(1.3, 15_000, 0.3)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        found = calibrate(pairs)
        best = min(best, time.perf_counter() - start)
    assert found == calibrate(list(pairs))
    assert best < 0.1
