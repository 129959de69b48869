"""Tokens that a limit stands for under a given window and answer reserve."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from ctxctl.simulate.presets.amounts import Limit
from ctxctl.simulate.presets.schema import Preset, Trigger


def limit_tokens(limit: Limit, window: int, output: int, model: str | None = None) -> Fraction:
    """The value of a limit, exact. window: of the model; output: its longest answer, tokens; model: its name."""
    if limit.of_model is not None and limit.model in (model or "").lower():
        return limit_tokens(limit.of_model, window, output, model)
    if limit.beyond is not None and limit.beyond_window is not None and window > limit.beyond_window:
        return limit_tokens(limit.beyond, window, output, model)
    if window in limit.windows:
        return Fraction(limit.windows[window])
    if limit.lowest:
        value = min(limit_tokens(part, window, output, model) for part in limit.lowest)
    elif limit.highest:
        value = max(limit_tokens(part, window, output, model) for part in limit.highest)
    else:
        ratio = _exact(limit.ratio) if limit.ratio is not None else Fraction(0)
        value = Fraction(limit.tokens) if limit.tokens is not None else window * ratio
        value = value / _exact(limit.divide) - limit.minus
        if limit.reserve:
            kept = output if limit.reserve_most is None else min(output, limit.reserve_most)
            value -= kept if limit.reserve_least is None else max(kept, limit.reserve_least)
    if limit.at_least is not None:
        value = max(value, Fraction(limit.at_least))
    if limit.at_most is not None:
        value = min(value, Fraction(limit.at_most))
    return Fraction(floor(value)) if limit.whole else value


def _exact(value: float) -> Fraction:
    """0.9 is nine tenths: what the file says, not its nearest binary number."""
    return Fraction(repr(value))


def trigger_tokens(preset: Preset, window: int, output: int, model: str | None = None) -> int | None:
    """Tokens at which a preset acts, rounded down; None where its trigger is none in tokens. It may be 0 or less."""
    found = [
        floor(limit_tokens(part.limit, window, output, model))
        for part in (_parts(preset.trigger) if preset.trigger is not None else ())
        if part.limit is not None
    ]
    return min(found, default=None)


def _parts(trigger: Trigger) -> tuple[Trigger, ...]:
    return (trigger, *trigger.any_of)
