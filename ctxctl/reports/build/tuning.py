"""The JSON of `tune`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ctxctl.simulate.options import SweepOptions
from ctxctl.simulate.tune import Score, Tuned, settings_of


def tuning_data(found: Tuned, bound: float, options: SweepOptions) -> dict[str, Any]:
    """`result`; choice is null when nothing is chosen, and `why` says why."""
    return {
        "max_loss": bound,
        "choice": None if found.choice is None else settings_of(found.choice, options),
        "policy": None if found.choice is None else found.choice.spec.text,
        "trained": _score(found.trained),
        "held_out": _score(found.held_out),
        "tried": found.tried,
        "why": found.why,
        "best_loss": found.best_loss,
        "sessions": {"trained": found.training, "held_out": found.testing},
    }


def _score(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    values = asdict(score)
    values.pop("floor")
    values["unit"] = "USD" if values.pop("priced") else "tokens"
    return {**values, "cost_ratio": score.ratio}
