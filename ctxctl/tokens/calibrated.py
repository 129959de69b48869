"""Calibration: what the provider reported, against what was estimated.

Between two consecutive requests of a session the context grows by the blocks that were added. The transcript holds the
provider's number for that growth, so a session measures its own ratio of true to estimated tokens. Such pairs are
noisy: thinking is dropped from the history, hidden reminders are added, caches are reported late. Hence a robust fit
that leans on the table in `estimate` until there is enough evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

MIN_PAIRS = 20
"""Fewer usable pairs than this give no calibration."""

PRIOR_WEIGHT = 20.0
"""The table counts as much as this many requests that agree with it (a ratio of 1.0)."""

_HUBER = 1.345  # 95 % as good as least squares if the residuals are normal after all (Huber 1981)
_NORMAL = 1.4826  # median absolute deviation -> standard deviation, for normal residuals
_FLOOR = 0.01  # smallest relative spread that is believed: whole tokens and message frames are never more exact
_REJECT = 4.0  # spreads from the median beyond which something else than text was added or removed
_ROUNDS = 30
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one session says about the estimates."""

    ratio: float
    """Multiply estimates by this."""
    bound: float
    """Median of |reported - ratio x estimated| / reported over the pairs: half of the requests were closer."""
    pairs: int
    """How many pairs were usable."""


def calibrate(pairs: Sequence[tuple[float, float]]) -> Calibration | None:
    """Fit the ratio of reported to estimated tokens; None with fewer than `MIN_PAIRS` usable pairs.

    `pairs` are (estimated, reported) tokens that were added between two consecutive requests. Pairs that are not
    positive, finite numbers are ignored. Each request has the same say, whatever its size.

    The relative growths `reported / estimated` get Huber's weights around their robust center, found by iteratively
    reweighted means; gross outliers are left out before. The weighted mean is then drawn toward 1.0 by `PRIOR_WEIGHT`
    (ridge). The weights come first: around a ratio that the prior holds back, all the evidence would seem outlying.
    """
    usable = [(e, a) for e, a in pairs if e > 0 and a > 0 and isfinite(e) and isfinite(a) and 0 < a / e < 1e9]
    if len(usable) < MIN_PAIRS:
        return None
    observed = [actual / estimated for estimated, actual in usable]
    center, spread = _middle(observed)
    kept = [value for value in observed if abs(value - center) <= _REJECT * spread]
    center, spread = _middle(kept)
    limit = _HUBER * spread
    for _ in range(_ROUNDS):
        weights = [1.0 if abs(value - center) <= limit else limit / abs(value - center) for value in kept]
        evidence = sum(weights)
        weighted = sum([weight * value for weight, value in zip(weights, kept, strict=True)])
        before, center = center, weighted / evidence
        if abs(center - before) < _TOLERANCE:
            break
    ratio = (PRIOR_WEIGHT + weighted) / (PRIOR_WEIGHT + evidence)
    bound = median([abs(actual - ratio * estimated) / actual for estimated, actual in usable])
    return Calibration(ratio, bound, len(usable))


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """Median and spread (a robust standard deviation) of positive values."""
    center = median(values)
    return center, max(_NORMAL * median([abs(value - center) for value in values]), _FLOOR * center)
