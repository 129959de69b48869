"""What a subtask costs in the main window and in one of its own, and from how many calls on the latter is cheaper."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.budgets.cost import Prices

RELATIVE = Prices(1.0, 0.1, 1.0, 1.0, 5.0)
"""Prices where the model's are not known, in those of an input token: what large providers' lists share."""
MOST_CALLS = 500
LEAST_FIXED = 3_000
"""Tokens of a helper's own system prompt and tools at least; transcripts seldom hold them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A subtask in tokens. calls: how many. base: in front of it in the main window. tokens: of its trace. brief,
    result: of what goes to a helper and comes back. fixed: of the helper's own system prompt and tools. later: calls of
    the main window since, which read the trace again. output: written per call."""

    calls: int
    base: int
    tokens: int
    brief: int
    result: int
    fixed: int
    later: int
    output: int


@dataclass(frozen=True, slots=True)
class Cost:
    """own, delegated: in prices of an input token (whole), the later calls included. usd_own, usd_delegated: None where
    no price is known. break_even: calls from which on delegating is cheaper, None where it never is. seconds: that the
    calls took, None where the transcript has no times; a helper takes them too, plus one call to start it."""

    own: int
    delegated: int
    usd_own: float | None
    usd_delegated: float | None
    break_even: int | None
    seconds: float | None


def cost_of(shape: Shape, prices: Prices | None, hit_rate: float, seconds: float | None) -> Cost:
    """prices: of the model, USD per million tokens. hit_rate: share of a prompt that its cache serves."""
    own, delegated = _own(shape, RELATIVE, hit_rate), _delegated(shape, RELATIVE, hit_rate)
    usd = None if prices is None else (_own(shape, prices, hit_rate) / 1e6, _delegated(shape, prices, hit_rate) / 1e6)
    return Cost(
        round(own),
        round(delegated),
        usd[0] if usd else None,
        usd[1] if usd else None,
        _break_even(shape, prices or RELATIVE, hit_rate),
        seconds,
    )


def _prompt(tokens: float, prices: Prices, hit_rate: float) -> float:
    return tokens * (hit_rate * prices.read + (1 - hit_rate) * prices.write)


def _own(shape: Shape, prices: Prices, hit_rate: float) -> float:
    """Each call reads what is in front of the subtask and the trace so far; each later call the whole trace."""
    n, growth = shape.calls, shape.tokens / shape.calls
    prompts = n * shape.base + growth * n * (n - 1) / 2 + shape.later * shape.tokens
    return _prompt(prompts, prices, hit_rate) + n * shape.output * prices.output


def _delegated(shape: Shape, prices: Prices, hit_rate: float) -> float:
    """One more call of the main window writes the brief and one reads the result; the helper's calls read its own
    prompt, the brief and the trace so far."""
    n, growth = shape.calls, shape.tokens / shape.calls
    helper = n * (shape.fixed + shape.brief) + growth * n * (n - 1) / 2
    main = 2 * shape.base + shape.brief + (shape.later + 1) * shape.result
    cold = (shape.fixed + shape.brief) * hit_rate * (prices.write - prices.read)  # nothing is cached of its first call
    written = n * shape.output + shape.brief + shape.result
    return _prompt(helper + main, prices, hit_rate) + cold + written * prices.output


def _break_even(shape: Shape, prices: Prices, hit_rate: float) -> int | None:
    growth = shape.tokens / shape.calls
    for n in range(1, MOST_CALLS + 1):
        tokens = round(n * growth)
        trial = Shape(n, shape.base, tokens, shape.brief, shape.result, shape.fixed, shape.later, shape.output)
        if _delegated(trial, prices, hit_rate) <= _own(trial, prices, hit_rate):
            return n
    return None
