"""What a session cost, call by call, and how that grew (requirement B5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum
from statistics import fmean

from ctxctl.budgets.cost import prices_of
from ctxctl.budgets.unreferenced import unreferenced_cost
from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import Trace
from ctxctl.model.usage import Usage
from ctxctl.trace.residence import Stay

ENDS = 10
"""Turns at either end whose means are compared."""
FEWEST = 10
"""Turns below which no exponent is fitted: through few points any curve fits."""
MOST_POINTS = 500
STEEPEST = 5.0
"""The largest exponent that is looked for."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class CallCost:
    """USD of one call at list prices. input: tokens that nothing was cached of; cache_read, cache_write: served from
    the provider's cache, stored in it; output: of the answer."""

    turn: int
    input: float
    cache_read: float
    cache_write: float
    output: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.input + self.cache_read + self.cache_write + self.output


@dataclass(frozen=True, slots=True)
class Growth:
    """How the cost of the main thread's calls grew. first_mean, last_mean: USD per call over the first and the last
    calls, `ends` of them; slope: USD that each call costs more than the one before (least squares). exponent: k of
    cumulative cost = c * turn^k, by least squares over all `calls` (of very many, over `points` at even distances): 1
    is linear, 2 quadratic; None below 10 calls; fit: its coefficient of determination."""

    calls: int
    ends: int
    first_mean: float
    last_mean: float
    slope: float
    exponent: float | None
    fit: float | None
    points: int = 0


@dataclass(frozen=True, slots=True)
class Money:
    """USD at list prices. total and its parts (input, cache_read, cache_write, output): of all calls of every thread,
    None when one of them has no price. per_turn: mean per call. recorded: what the transcript itself says was paid.
    calls: of the main thread, those with a price. unreferenced: what calls of the main thread paid for blocks that no
    later turn used, see `ctxctl.budgets.unreferenced`; unreferenced_share: of what these calls cost."""

    total: float | None = None
    input: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    output: float | None = None
    per_turn: float | None = None
    recorded: float | None = None
    requests: int = 0
    calls: tuple[CallCost, ...] = ()
    growth: Growth | None = None
    unreferenced: float | None = None
    unreferenced_share: float | None = None

    @property
    def cache_read_share(self) -> float | None:
        """Share of the money that reading from the cache cost."""
        return self.cache_read / self.total if self.total and self.cache_read is not None else None

    @property
    def cache_write_share(self) -> float | None:
        """Share of the money that storing in the cache cost."""
        return self.cache_write / self.total if self.total and self.cache_write is not None else None


def call_cost(usage: Usage, row: ModelRow) -> CallCost | None:
    """USD of one call by its parts, None when the row lacks a price that it needs."""
    prices = prices_of(row, usage.prompt)
    if prices is None:
        return None
    hour = min(usage.cache_write_1h, usage.cache_write)
    return CallCost(
        usage.turn,
        usage.input * prices.input / 1e6,
        usage.cache_read * prices.read / 1e6,
        ((usage.cache_write - hour) * prices.write + hour * prices.write_1h) / 1e6,
        usage.output * prices.output / 1e6,
    )


class Rows:
    """Model rows by name, looked up once. model: for calls that name none."""

    def __init__(self, table: ModelTable, model: str | None) -> None:
        self._table, self._model = table, model
        self._rows: dict[str | None, ModelRow | None] = {}

    def of(self, usage: Usage) -> ModelRow | None:
        """The row that prices a call."""
        name = usage.model or self._model
        if name not in self._rows:
            self._rows[name] = self._table.find(name)
        return self._rows[name]

    def costs(self, calls: Iterable[Usage]) -> list[CallCost | None]:
        """USD of every call that reports usage, None for one of no known price."""
        rows = ((usage, self.of(usage)) for usage in calls if usage.reported)
        return [call_cost(usage, row) if row is not None else None for usage, row in rows]


def money_of(
    transcript: Transcript, trace: Trace, stays: Sequence[Stay], table: ModelTable, recorded: float | None = None
) -> Money:
    """The money of a session. trace, stays: of its main thread. recorded: USD that the transcript states."""
    rows = Rows(table, transcript.model)
    every = rows.costs(transcript.usage)
    calls = tuple(c for c in rows.costs(u for u in transcript.usage if u.thread == transcript.main) if c is not None)
    spent = unreferenced_cost(trace, stays, rows.of)
    main = fsum(c.total for c in rows.costs(t.usage for t in trace.turns if t.usage is not None) if c is not None)
    share = spent / main if spent is not None and main else None
    growth = growth_of(calls)
    known = [c for c in every if c is not None]
    if not known or len(known) < len(every):
        return Money(
            recorded=recorded,
            requests=len(every),
            calls=calls,
            growth=growth,
            unreferenced=spent,
            unreferenced_share=share,
        )
    total = fsum(c.total for c in known)
    return Money(
        total,
        fsum(c.input for c in known),
        fsum(c.cache_read for c in known),
        fsum(c.cache_write for c in known),
        fsum(c.output for c in known),
        total / len(known),
        recorded,
        len(known),
        calls,
        growth,
        spent,
        share,
    )


def growth_of(calls: Sequence[CallCost]) -> Growth | None:
    """The growth over calls in their order, None below two."""
    count = len(calls)
    if count < 2:
        return None
    costs = [c.total for c in calls]
    ends = min(ENDS, count // 2)
    turns = range(1, count + 1)
    slope = _slope([float(n) for n in turns], costs)
    exponent, fit, points = _exponent(costs) if count >= FEWEST else (None, None, 0)
    return Growth(count, ends, fmean(costs[:ends]), fmean(costs[-ends:]), slope, exponent, fit, points)


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Slope of the least-squares line."""
    x_mean, y_mean = fmean(xs), fmean(ys)
    across = fsum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return across / fsum((x - x_mean) ** 2 for x in xs)


def _exponent(costs: Sequence[float]) -> tuple[float | None, float | None, int]:
    """k of c * turn^k through the cumulative cost, its coefficient of determination, and how many points it was fitted
    to.

    The squares are of money, not of its logarithm: there the first few calls, which store the system prompt, would
    count as much as all others. For a given k the best c is known, so k alone is searched, by golden sections.
    """
    sums = list(accumulate(costs))
    count = len(sums)
    if sums[-1] <= 0:
        return None, None, 0
    step = 1 + (count - 1) // MOST_POINTS
    at = range(count - 1, -1, -step)
    turns, money = [(n + 1) / count for n in at], [sums[n] / sums[-1] for n in at]

    def error(k: float) -> float:
        powers = [x**k for x in turns]
        c = fsum(p * y for p, y in zip(powers, money, strict=True)) / fsum(p * p for p in powers)
        return fsum((y - c * p) ** 2 for p, y in zip(powers, money, strict=True))

    low, high = 0.0, STEEPEST
    while high - low > 1e-6:
        left, right = high - (high - low) * GOLDEN, low + (high - low) * GOLDEN
        if error(left) < error(right):
            high = right
        else:
            low = left
    mean = fmean(money)
    spread = fsum((y - mean) ** 2 for y in money)
    k = (low + high) / 2
    return k, (1 - error(k) / spread if spread else None), len(money)
