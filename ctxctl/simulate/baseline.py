"""The recording itself, priced: what its replay is held against, and what its cache served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ctxctl.budgets.cost import cost_of, prices_of
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace
from ctxctl.model.usage import Usage
from ctxctl.simulate.bill import CacheFit, Costs, Tariff, costs_of

OFF = 0.01
"""Above this error of the median call no figure in money is called calibrated."""
MODEL_OFF = 0.05
"""Nor above this error of the whole bill, when its cache reads are those of the fit."""
GROSS = 4
"""Multiple of the median beyond which a call's shortfall counts no further."""


def trusted(replay_error: float | None, model_error: float | None) -> bool:
    """Whether errors are small enough for figures in money to be called calibrated; not when one is unknown."""
    if replay_error is None or model_error is None:
        return False
    return replay_error <= OFF and model_error <= MODEL_OFF


@dataclass(frozen=True, slots=True)
class Baseline:
    """The recording itself, priced. cost: of its replay in each regime, all calls. Of the calls whose usage was
    reported: recorded_cost as the transcript states it, list_cost at list prices, replayed_cost: the replayed prompts
    with the reported cache reads. replay_error: of the median call, total_error: of the sum, both of replayed against
    recorded (list where nothing is recorded). model_error: of the calibrated bill of these calls, which knows of the
    cache what the fit says alone. efficiency: cached tokens reported / ideal; fit: how it comes about. halves: error
    of the second half's bill as predicted by the fit of the first, and by the ideal cache. cause: why the sum is off
    by more than 1 %. row: of the prices; date: of them."""

    turns: int
    prompt_tokens: int
    cost: Costs
    recorded_cost: float | None
    list_cost: float | None
    replayed_cost: float | None
    replay_error: float | None
    total_error: float | None
    efficiency: float | None
    fit: CacheFit | None
    halves: tuple[float, float] | None
    cause: str | None
    model: str | None
    date: str | None
    reported_calls: int = 0
    model_error: float | None = None

    @property
    def bill(self) -> float | None:
        """As recorded, else at list prices; None when neither is known."""
        return self.recorded_cost if self.recorded_cost is not None else self.list_cost

    @property
    def calibrated(self) -> bool:
        """Whether replay and cache model reproduce the bill, so that money can be trusted."""
        return trusted(self.replay_error, self.model_error)


def baseline_of(trace: Trace, replay: Replay, tariff: Tariff) -> Baseline:
    """Price the recording and hold its replay against the bill. replay: of the policy `recorded`."""
    usages = [t.usage if t.usage is not None and t.usage.reported else None for t in trace.turns]
    fit = fit_cache(usages, replay.cached)
    replayed: list[float | None] = []
    listed: list[float | None] = []
    recorded: list[float | None] = []
    told: set[int] = set()
    for call, usage in enumerate(usages):
        row = tariff.rows[call]
        if usage is None or row is None:
            continue
        told.add(call)
        again = replace(
            usage,
            input=max(0, replay.prompts[call] - usage.cache_read - usage.cache_write),
            cache_read=min(usage.cache_read, replay.prompts[call]),
        )
        replayed.append(cost_of(again, row))
        listed.append(cost_of(usage, row))
        recorded.append(usage.cost)
    own = _sum(recorded)
    against = recorded if own is not None else listed
    errors = [
        abs(a - b) / b for a, b in zip(replayed, against, strict=True) if a is not None and b is not None and b > 0
    ]
    total, truth = _sum(replayed), own if own is not None else _sum(listed)
    off = abs(total - truth) / truth if total is not None and truth else None
    modelled = costs_of(replay, tariff.listed(), fit, frozenset(told)).calibrated
    # a bill at other prices than the list's says nothing of the cache: there the replayed one stands for it
    fair = total if off is not None and off > OFF else truth
    return Baseline(
        len(trace.turns),
        sum(replay.prompts),
        costs_of(replay, tariff, fit),
        own,
        _sum(listed),
        total,
        median(errors) if errors else None,
        off,
        efficiency_of(usages, replay.cached),
        fit,
        halves_of(replay, tariff, usages),
        cause_of(usages, tariff) if off is not None and off > OFF and own is not None else None,
        tariff.row.id if tariff.row is not None else None,
        tariff.row.date if tariff.row is not None else None,
        len(told),
        abs(modelled - fair) / fair if modelled is not None and fair else None,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return sum(v for v in found if v is not None) if found and None not in found else None


def efficiency_of(usages: Sequence[Usage | None], cached: Sequence[int]) -> float | None:
    """Cached tokens that were reported / those that an ideal cache would have had; None where no call tells."""
    read = sum(u.cache_read for u, _ in zip(usages, cached, strict=True) if u is not None)
    ideal = sum(c for u, c in zip(usages, cached, strict=True) if u is not None)
    return read / ideal if ideal else None


def fit_cache(usages: Sequence[Usage | None], cached: Sequence[int], *, close: bool = True) -> CacheFit | None:
    """Fit what a recording's cache served of the common prefixes.

    Caches lag: of each prefix the newest tokens are not served yet, however long it is. So the fit is the mean number
    of tokens that were not, each call's capped at four times the median, since a total miss says little of the next
    call. close: scale what is served so that its sum over these calls is the reported one.
    """
    pairs = [(u.cache_read, c) for u, c in zip(usages, cached, strict=True) if u is not None and c > 0]
    if not pairs:
        return None
    missing = [max(0, c - read) for read, c in pairs]
    cap = GROSS * median(missing)
    shortfall = sum(min(m, cap) for m in missing) / len(missing)
    served = sum(max(0.0, c - shortfall) for _, c in pairs)
    reported = sum(read for read, _ in pairs)
    stored = sum(u.cache_write for u in usages if u is not None)
    new = stored + sum(u.input for u in usages if u is not None)
    written = stored / new if new else 1.0
    if not reported:
        return CacheFit(0.0, 0.0, written)
    return CacheFit(shortfall, reported / served if close and served else 1.0, written)


def halves_of(replay: Replay, tariff: Tariff, usages: Sequence[Usage | None]) -> tuple[float, float] | None:
    """Relative error of the second half's bill, predicted by what the cache served in the first, and by an ideal
    cache."""
    middle = len(usages) // 2
    listed = tariff.listed()
    fit = fit_cache(usages[:middle], replay.cached[:middle], close=False)
    if middle < 2 or fit is None:
        return None
    truth = predicted = ideal = 0.0
    for call in range(middle, len(usages)):
        usage, row = usages[call], tariff.rows[call]
        prices = listed.prices(call, replay.prompts[call])
        if usage is None or row is None or prices is None:
            continue
        own = usage.cost if usage.cost is not None else cost_of(usage, row)
        if own is None:
            continue
        truth += own * 1e6
        hit, answer = fit.served(replay.cached[call]), prices.output * replay.outputs[call]
        new = prices.input + (prices.write - prices.input) * fit.written
        predicted += new * (replay.prompts[call] - hit) + prices.read * hit + answer
        whole = prices.write * replay.prompts[call] + answer
        ideal += whole - (prices.write - prices.read) * replay.cached[call]
    return (predicted / truth - 1, ideal / truth - 1) if truth else None


def cause_of(usages: Sequence[Usage | None], tariff: Tariff) -> str:
    """What would explain that the recorded bill differs from list prices: another price of a cache read, or nothing
    that is known."""
    rates: list[float] = []
    for call, usage in enumerate(usages):
        row = tariff.rows[call]
        if usage is None or row is None or usage.cost is None or not usage.cache_read:
            continue
        prices = prices_of(row, usage.prompt)
        if prices is not None:
            rest = usage.input * prices.input + usage.cache_write * prices.write + usage.output * prices.output
            rates.append((usage.cost * 1e6 - rest) / usage.cache_read)
    if rates:
        middle = median(rates)
        close = sum(1 for r in rates if abs(r - middle) <= 0.02 * abs(middle) + 1e-9)
        listed = tariff.listed().prices(len(tariff.rows) - 1, 0)
        if close >= 0.8 * len(rates) and listed is not None and middle > 0:
            return f"billed with cache reads at ${middle:.3g} per million tokens (list: ${listed.read:.3g})"
    return "not explained by the price of cache reads"
