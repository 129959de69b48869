"""What a simulation means, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.reports.plot import compact
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.rows import Run

LOSS = 0.05
NOTICE = 0.02
"""Differences in cost below this are not worth a word."""


def meaning_of(
    runs: Sequence[Run], base: Costs, multipliers: tuple[float, float] | None, ceilings: Sequence[Run]
) -> Iterator[str]:
    """One line per thing that a reader should take away."""
    played = [r for r in runs if r.unsupported is None]
    if not played:
        return
    if not any(r.evictions or r.compactions for r in played):
        peak = max((r.peak or 0 for r in played), default=0)
        yield (
            f"No policy had anything to do: the window never held more than {compact(peak)} tokens. Doing nothing is "
            "the cheapest there is; a smaller --window or --trigger shows what would happen."
        )
        return
    yield from _cheapest(played, base)
    yield from _sign(played, multipliers)
    yield from _masking(played, multipliers)
    yield from _overflows(ceilings, played)


def _cheapest(runs: Sequence[Run], base: Costs) -> Iterator[str]:
    runs = [r for r in runs if r.group != "control"]
    able = [r for r in runs if r.cost_ratio.best() is not None and (r.rmr or 0.0) <= LOSS and not r.overflow_turns]
    if not able:
        if any(r.rmr is not None and r.rmr > LOSS for r in runs):
            yield f"Every policy here loses more than {LOSS:.0%} of what later turns used, or overflows."
        return
    best = min(able, key=lambda r: (r.cost_ratio.best() or 0.0, r.rmr or 0.0))
    ratio, paid = best.cost_ratio.best() or 0.0, base.best()
    if ratio < 1 - NOTICE and paid is not None:
        yield (
            f"{best.policy} would have saved {1 - ratio:.0%} of the bill (${paid * (1 - ratio):,.2f}) and lost "
            f"{best.rmr or 0:.1%} of what later turns used."
        )
    else:
        yield (
            f"With the cache priced, no policy that keeps its loss under {LOSS:.0%} is cheaper than what was done "
            f"(best: {best.policy} at {ratio:.2f}x)."
        )


def _sign(runs: Sequence[Run], multipliers: tuple[float, float] | None) -> Iterator[str]:
    """Cheaper without a cache and dearer with it."""
    flipped = [
        r
        for r in runs
        if (cached := r.cost_ratio.best()) is not None
        and cached > 1 + NOTICE
        and r.cost_ratio.none is not None
        and r.cost_ratio.none < 1 - NOTICE
        and not r.policy.startswith("mask")
    ]
    if flipped and multipliers is not None:
        worst = max(flipped, key=lambda r: r.cost_ratio.best() or 0)
        yield (
            f"{worst.policy} sends {1 - (worst.cost_ratio.none or 0):.0%} less and still costs "
            f"{worst.cost_ratio.best():.2f}x: it changed what had been sent at {worst.edits:,} turns, and everything "
            f"behind a change is read anew at {multipliers[1]:g}x instead of {multipliers[0]:g}x the input price."
        )


def _masking(runs: Sequence[Run], multipliers: tuple[float, float] | None) -> Iterator[str]:
    for run in runs:
        cached, plain = run.cost_ratio.best(), run.cost_ratio.none
        if not run.policy.startswith("mask") or cached is None or plain is None:
            continue
        if cached <= 1 + NOTICE or plain >= 1 - NOTICE:
            continue
        word = "double the bill" if 1.7 <= cached <= 2.4 else "raise the bill"
        advice = ""
        if run.best_interval is not None and run.best_interval >= 2:
            advice = f" Clearing in batches pays instead: about every {run.best_interval:.0f} turns."
        yield (
            f"{run.policy} would {word} ({cached:.2f}x), although without caching it would cost {plain:.2f}x: "
            f"each masking changes an old message, so the provider reads all that follows anew.{advice}"
        )
        return


def _overflows(ceilings: Sequence[Run], runs: Sequence[Run]) -> Iterator[str]:
    over = [r for r in runs if r.overflow_turns]
    if over:
        worst = max(over, key=lambda r: r.overflow_turns)
        yield (
            f"{worst.policy} leaves {worst.overflow_turns:,} calls above the window: the provider would have refused "
            "them."
        )
