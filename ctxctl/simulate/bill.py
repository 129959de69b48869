"""The bill of a replay in three cache regimes, and how far it can be trusted (replay measures).

    C = sum over calls of p_in * (r * c + w * (L - c)) + p_out * o

L: tokens of the prompt, c: of them in common with the request before, o: of the answer, r and w: price of a cache read
and of a write, in multiples of the input price. none: c = 0 and nothing is stored; ideal: the provider's cache holds
every common prefix; calibrated: as much of it as the recording's cache served (`CacheFit`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, sqrt
from statistics import median

from ctxctl.budgets.cost import Prices, prices_of
from ctxctl.errors import InputError
from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace

REGIMES = ("none", "ideal", "calibrated")
HOUR, FIVE_MINUTES = 3600.0, 300.0


@dataclass(frozen=True, slots=True)
class Costs:
    """USD in each regime; None where it is not known."""

    none: float | None = None
    ideal: float | None = None
    calibrated: float | None = None

    def ratio(self, base: Costs) -> Costs:
        """Each as a multiple of another bill."""
        return Costs(*(_ratio(getattr(self, n), getattr(base, n)) for n in REGIMES))

    def best(self) -> float | None:
        """The calibrated bill, else the ideal one."""
        return self.calibrated if self.calibrated is not None else self.ideal


def _ratio(one: float | None, base: float | None) -> float | None:
    return one / base if one is not None and base else None


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """read, write: price in multiples of the input price, instead of the model's row. life: seconds that an entry
    lives, None: as the recording used it. minimum: shortest prefix that is cached."""

    read: float | None = None
    write: float | None = None
    life: float | None = None
    minimum: int = 1024


@dataclass(frozen=True, slots=True)
class CacheFit:
    """What a recording's cache served. shortfall: tokens of each common prefix that it did not, factor: of the rest.
    written: share of what was not served that was stored for later, at the price of a write."""

    shortfall: float
    factor: float
    written: float = 1.0

    def served(self, cached: int) -> float:
        """Tokens that it serves of a common prefix of so many."""
        return min(float(cached), self.factor * max(0.0, cached - self.shortfall))


class Tariff:
    """What the calls of one trace pay: prices by call, from the model's row.

    model: prices every call as this model instead of its own. Raises InputError for a model that the table does not
    know, with what is like it: a bill is never 0 for want of a price.
    """

    def __init__(self, trace: Trace, table: ModelTable, terms: CacheTerms, model: str | None = None) -> None:
        self.terms = terms
        self.rows: list[ModelRow | None] = []
        known: dict[str | None, ModelRow | None] = {}
        for turn in trace.turns:
            name = model or (turn.usage.model if turn.usage is not None else None) or trace.model
            if name not in known:
                known[name] = _row(name, table, trace.path)
            self.rows.append(known[name])
        kept = sum(t.usage.cache_write_1h for t in trace.turns if t.usage is not None)
        written = sum(t.usage.cache_write for t in trace.turns if t.usage is not None)
        self.hour = kept / written if written else 0.0
        self._life = life_of(trace)
        self._prices: dict[tuple[int, bool], Prices | None] = {}

    @property
    def life(self) -> float:
        """Seconds that a cache entry lives: as the recording shows, and an hour where it mostly stored for one."""
        if self.terms.life is not None:
            return self.terms.life
        return max(self._life, HOUR if self.hour > 0.5 else FIVE_MINUTES)

    @property
    def row(self) -> ModelRow | None:
        """The row of the last call."""
        return self.rows[-1] if self.rows else None

    def listed(self) -> Tariff:
        """The same without prices that were laid over those of the list."""
        if self.terms.read is None and self.terms.write is None:
            return self
        plain = copy(self)
        plain.terms = replace(self.terms, read=None, write=None)
        plain._prices = {}
        return plain

    def prices(self, call: int, prompt: int) -> Prices | None:
        """Prices of a call with so long a prompt, with the terms laid over."""
        row = self.rows[call]
        if row is None:
            return None
        long = row.long_from is not None and prompt > row.long_from
        key = (id(row), long)
        if key not in self._prices:
            found = prices_of(row, prompt)
            if found is not None:
                read = found.read if self.terms.read is None else found.input * self.terms.read
                write = found.write * (1 - self.hour) + found.write_1h * self.hour
                if self.terms.write is not None:
                    write = found.input * self.terms.write
                found = replace(found, read=read, write=write, write_1h=write)
            self._prices[key] = found
        return self._prices[key]

    def to_read(self, tokens: int) -> float | None:
        """USD of sending so many new tokens once, at the prices of the last call."""
        prices = self.prices(len(self.rows) - 1, 0) if self.rows else None
        return None if prices is None else tokens * prices.write / 1e6

    def multipliers(self) -> tuple[float, float] | None:
        """Price of a cache read and write in multiples of the input price, of the last call."""
        prices = self.prices(len(self.rows) - 1, 0) if self.rows else None
        if prices is None or not prices.input:
            return None
        return prices.read / prices.input, prices.write / prices.input


def _row(name: str | None, table: ModelTable, path: str) -> ModelRow | None:
    if name is None:
        return None
    row = table.find(name)
    if row is None:
        like = table.suggest(name)
        hint = "--model NAME prices it as another; `ctxctl list models` shows them"
        raise InputError(
            f"model {name!r} is not in the price table",
            path=path,
            hint=(f"did you mean {like[0]!r}? " if like else "") + hint,
        )
    return row


def life_of(trace: Trace) -> float:
    """Seconds for which the recording's cache served entries: the longest of five minutes, an hour and for ever such
    that after most of the pauses up to it the cache still had half of the prompt."""
    kept = FIVE_MINUTES
    calls = [(t.time, t.usage) for t in trace.turns if t.time is not None and t.usage is not None and t.usage.prompt]
    pauses = [
        (time - before, usage.cache_read * 2 >= usage.prompt)
        for (before, _), (time, usage) in pairwise(calls)
        if time - before > FIVE_MINUTES
    ]
    for least, most in ((FIVE_MINUTES, HOUR), (HOUR, inf)):
        served = [hit for pause, hit in pauses if least < pause <= most]
        if sum(served) * 2 <= len(served):
            break
        kept = most
    return kept


def costs_of(replay: Replay, tariff: Tariff, fit: CacheFit | None, among: frozenset[int] | None = None) -> Costs:
    """The bill of a replay. fit: what the recording's cache served, None when it does not show. among: the calls that
    it is about, all when None."""
    calls: list[tuple[int, int, int, int]] = [
        (k, prompt, cached, output)
        for k, (prompt, cached, output) in enumerate(zip(replay.prompts, replay.cached, replay.outputs, strict=True))
    ]
    last = len(calls) - 1
    if among is not None:
        calls = [c for c in calls if c[0] in among]
    calls += [(last, prompt, cached, output) for prompt, cached, output in replay.helper]
    plain = stored = saved = fitted = 0.0
    for call, prompt, cached, output in calls:
        prices = tariff.prices(call, prompt)
        if prices is None:
            return Costs()
        answer = prices.output * output
        plain += prices.input * prompt + answer
        stored += prices.write * prompt + answer
        saved += (prices.write - prices.read) * cached
        if fit is not None:
            hit = fit.served(cached)
            share = fit.written if tariff.terms.write is None else 1.0
            new = prices.input + (prices.write - prices.input) * share
            fitted += new * (prompt - hit) + prices.read * hit + answer
    calibrated = None if fit is None else fitted / 1e6
    return Costs(plain / 1e6, (stored - saved) / 1e6, calibrated)


def break_even(replay: Replay, multipliers: tuple[float, float] | None) -> float | None:
    """Further calls after which the median change of the window has paid for the prefix that it broke:
    (w - r) * tokens behind it / (r * tokens freed)."""
    if multipliers is None or not multipliers[0]:
        return None
    read, write = multipliers
    turns = [(write - read) * behind / (read * freed) for behind, freed in replay.breaks if freed > 0]
    return median(turns) if turns else None


def best_interval(keep: int, multipliers: tuple[float, float] | None) -> float | None:
    """Turns between two clearings that cost least when the results of `keep` turns stay: sqrt(2 * keep * (w - r) /
    r)."""
    if multipliers is None or not multipliers[0]:
        return None
    read, write = multipliers
    return sqrt(2 * max(1, keep) * max(0.0, write - read) / read)
