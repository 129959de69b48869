"""The window is filled up and cut down, again and again, instead of being kept level (requirement O1)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding
from ctxctl.pressure.shape import DROP

TEETH = 2
"""Compactions that make a sawtooth: one may be the end of a task."""


@DETECTORS.register("occupancy")
class Occupancy(Detector):
    """Signal: at least two full compactions cut the window down by a quarter or more, each from above the watermark.
    Between them most calls pay for a window that is fuller than the task needs, and each cut loses detail at once."""

    code = "occupancy"
    signal = "at least 2 full compactions, each from above the watermark and by a quarter of the tokens or more"
    fix = (
        "lower the mark at which it acts (pressure.act_at: watermark) and clear old tool results in batches from there "
        "on, so that the window stays level near the watermark"
    )

    def find(self, session: Session) -> Iterator[Finding]:
        readings, window = session.analysis.pressure, session.window
        cuts = {c.turn for c in session.transcript.compactions if c.kind == "full" and not c.abandoned}
        mark = session.options.analysis.pressure.watermark
        teeth = []
        for at in range(1, len(readings)):
            before, after = readings[at - 1], readings[at]
            deep = after.tokens < before.tokens * (1 - DROP)
            if after.turn in cuts and deep and window and before.tokens > mark * window:
                teeth.append((before, after))
        if len(teeth) < TEETH or not window:
            return
        tokens = readings.tokens
        above = sum(1 for t in tokens if t > mark * window)
        shown = ", ".join(f"{b.tokens:,} to {a.tokens:,} at turn {a.turn}" for b, a in teeth[:3])
        more = f" and {len(teeth) - 3} more times" if len(teeth) > 3 else ""
        said = (
            f"the window's occupancy is a sawtooth: {len(teeth)} times it was filled to "
            f"{max(b.tokens for b, _ in teeth) / window:.0%} at most and cut down ({shown}{more}); {above} of "
            f"{len(tokens)} calls were above the watermark of {mark:.0%}"
        )
        counts = {
            "drops": len(teeth),
            "peak_tokens": max(b.tokens for b, _ in teeth),
            "dropped_tokens": sum(b.tokens - a.tokens for b, a in teeth),
            "calls_above_watermark": above,
        }
        yield self.finding(said, turns=[a.turn for _, a in teeth], counts=counts)
