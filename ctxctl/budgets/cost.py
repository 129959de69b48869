"""What calls cost at a model's list prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Prices:
    """What one call pays, USD per million tokens. input: tokens that nothing was cached of; read: served from the
    cache; write: read anew and stored; write_1h: stored for an hour; output: of the answer."""

    input: float
    read: float
    write: float
    write_1h: float
    output: float


def prices_of(row: ModelRow, prompt: int) -> Prices | None:
    """Prices of a call with so long a prompt, None when the row lacks one that every call needs.

    A cache read without a price of its own costs as much as input, and so does a write; entries kept for an hour have a
    write price of their own where the row has one. A prompt longer than `long_from` is billed as a whole at the long
    prices; cache prices rise there by the same factor as the input price.
    """
    input_price, output_price = row.input_price, row.output_price
    if input_price is None or output_price is None:
        return None
    factor = 1.0
    if row.long_from is not None and prompt > row.long_from and row.long_input_price is not None:
        factor = row.long_input_price / input_price if input_price else 1.0
        output_price = row.long_output_price if row.long_output_price is not None else output_price
    read = row.cache_read_price if row.cache_read_price is not None else input_price
    write = row.cache_write_price if row.cache_write_price is not None else input_price
    hour = row.cache_write_1h_price if row.cache_write_1h_price is not None else write
    return Prices(input_price * factor, read * factor, write * factor, hour * factor, output_price)


def cost_of(usage: Usage, row: ModelRow) -> float | None:
    """USD of one call, None when the row lacks a price that it needs."""
    prices = prices_of(row, usage.prompt)
    if prices is None:
        return None
    kept_long = min(usage.cache_write_1h, usage.cache_write)
    written = (usage.cache_write - kept_long) * prices.write + kept_long * prices.write_1h
    prompt = usage.input * prices.input + usage.cache_read * prices.read + written
    return (prompt + usage.output * prices.output) / 1e6


def session_cost(calls: Iterable[Usage], table: ModelTable, model: str | None) -> float | None:
    """USD of all calls that report usage, each at its own model's prices; None when one of them has no price.

    model: for calls that name none.
    """
    total, rows, any_call = 0.0, {}, False
    for usage in calls:
        if not usage.reported:
            continue
        any_call = True
        name = usage.model or model
        if name not in rows:
            rows[name] = table.find(name)
        row = rows[name]
        cost = cost_of(usage, row) if row is not None else None
        if cost is None:
            return None
        total += cost
    return total if any_call else None
