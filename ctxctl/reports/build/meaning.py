"""What a simulation means, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.reports.plot import compact, plural
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.rows import Run

LOSS = 0.05
NOTICE = 0.02
"""Differences in cost below this are not worth a word."""


def meaning_of(
    runs: Sequence[Run],
    base: Costs,
    multipliers: tuple[float, float] | None,
    ceilings: Sequence[Run],
    calibrated: bool = True,
) -> Iterator[str]:
    """One line per thing that a reader should take away. calibrated: whether figures in money can be trusted."""
    played = [r for r in runs if r.unsupported is None]
    if not played:
        return
    recorded = next((r for r in ceilings if r.policy == "recorded"), None)
    if not any(r.evictions or r.compactions or r.overflow_turns for r in played):
        peak = max((r.peak or 0 for r in played), default=0)
        yield (
            f"No policy had anything to do: the window never held more than {compact(peak)} tokens. Doing nothing is "
            "the cheapest there is; a smaller --window or --trigger shows what would happen."
        )
        return
    yield from _cheapest(played, base, recorded, calibrated)
    yield from _sign(played, multipliers)
    yield from _masking(played, multipliers)
    yield from _overflows(played)


def _cheapest(runs: Sequence[Run], base: Costs, recorded: Run | None, calibrated: bool) -> Iterator[str]:
    fits = [r for r in runs if r.group != "control" and not r.overflow_turns]
    lost = recorded.rmr if recorded is not None else None
    own = f" What the agent did itself lost {lost:.1%}." if lost else ""
    low = [r for r in fits if r.rmr is None or r.rmr <= LOSS]
    if not low:
        if fits:
            yield f"Every policy here loses more than {LOSS:.0%} of what later turns used.{own}"
        return
    priced = [r for r in low if r.cost_ratio.best() is not None]
    if not priced:
        return
    best = min(priced, key=lambda r: (r.cost_ratio.best() or 0.0, r.rmr or 0.0))
    ratio, paid = best.cost_ratio.best() or 0.0, base.best()
    if ratio < 1 - NOTICE and paid is not None:
        loss = "; no reference tells what it lost"
        if best.rmr is not None:
            loss = f" and lost {best.rmr:.1%} of what later turns used"
        money = f"${paid * (1 - ratio):,.2f}" if calibrated else f"about ${paid * (1 - ratio):,.2f}, uncalibrated"
        yield f"{best.policy} would have saved {1 - ratio:.0%} of the bill ({money}){loss}.{own}"
    else:
        yield (
            f"With the cache priced, no policy that keeps its loss under {LOSS:.0%} is cheaper than what was done "
            f"(best: {best.policy} at {ratio:.2f}x).{own}"
        )


def _sign(runs: Sequence[Run], multipliers: tuple[float, float] | None) -> Iterator[str]:
    """Cheaper without a cache and dearer with it."""
    flipped = [r for r in runs if _flips(r) and not r.policy.startswith("mask")]
    if flipped and multipliers is not None:
        worst = max(flipped, key=lambda r: r.cost_ratio.best() or 0)
        yield (
            f"{worst.policy} sends {1 - (worst.cost_ratio.none or 0):.0%} less and still costs "
            f"{worst.cost_ratio.best():.2f}x: it changed what had been sent at {plural(worst.edits, 'turn')}, and "
            f"everything behind a change is read anew at {multipliers[1]:g}x instead of {multipliers[0]:g}x the input "
            "price."
        )


def _flips(run: Run) -> bool:
    cached, plain = run.cost_ratio.best(), run.cost_ratio.none
    return cached is not None and cached > 1 + NOTICE and plain is not None and plain < 1 - NOTICE


def _masking(runs: Sequence[Run], multipliers: tuple[float, float] | None) -> Iterator[str]:
    rolling = [r for r in runs if r.policy.startswith("mask") and "every=" not in r.policy and _flips(r)]
    if not rolling:
        return
    run = rolling[0]
    cached = run.cost_ratio.best() or 0.0
    word = "double the bill" if 1.7 <= cached <= 2.4 else "raise the bill"
    advice = ""
    if run.best_interval is not None and run.best_interval >= 2:
        advice = f" Of batches, about {run.best_interval:.0f} turns apart costs least."
    yield (
        f"{run.policy} would {word} ({cached:.2f}x), although without caching it would cost "
        f"{run.cost_ratio.none:.2f}x: each masking changes an old message, so the provider reads all that follows "
        f"anew.{advice}"
    )


def _overflows(runs: Sequence[Run]) -> Iterator[str]:
    over = [r for r in runs if r.overflow_turns]
    if over:
        worst = max(over, key=lambda r: r.overflow_turns)
        others = f", and {plural(len(over) - 1, 'other row')} some too" if len(over) > 1 else ""
        yield (
            f"{worst.policy} leaves {plural(worst.overflow_turns, 'call')} above the window{others}: the provider "
            "would have refused them."
        )
