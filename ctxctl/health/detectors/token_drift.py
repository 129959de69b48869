"""The provider's figures grow at another rate than the text that enters the window (requirement O5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from statistics import median

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding
from ctxctl.tokens.estimate import family_for

LEAST = 10
"""Pairs of calls below which nothing is said."""
CERTAIN = 1.645
"""Standard errors of the median that are added to the limit: 95 of 100 medians lie below, of normal residuals."""
_NORMAL = 1.4826  # median absolute deviation -> standard deviation, for normal residuals


@DETECTORS.register("token_drift")
class TokenDrift(Detector):
    """Signal: between consecutive calls the reported prompt grows by a share more (or less) than the text that came in
    counts, in the median over the session, by more than `token_drift_warning`, what the family of the model's tokenizer
    leaves open (`Family.session_bound`, 0 where it is published) and the error of that median.

    The alert of the same name holds the window now against what was reported for it. It can't see what is wrong from
    the first call on: the overhead absorbs the first request, and calibration the rate, where the model's tokenizer is
    not published. This looks at the rate before calibration.
    """

    code = "token_drift"
    signal = (
        "the reported prompt grows by over 10 % more or less per call than the text that came in counts (median of 10 "
        "calls or more, beyond its error and what is open of the model's tokenizer)"
    )
    fix = (
        "check what stands between the agent and the provider (a proxy that rewrites usage, another model than the one "
        "named, reminders or images that the transcript does not hold); until then trust the provider's figures"
    )

    def find(self, session: Session) -> Iterator[Finding]:
        analysis = session.analysis
        if analysis.counter is None or session.transcript.conversations:
            return
        ratios, turns = growths(session)
        if len(ratios) < LEAST:
            return
        middle = median(ratios)
        spread = _NORMAL * median([abs(ratio - middle) for ratio in ratios])
        error = spread / sqrt(len(ratios)) / middle
        drift = 1 / middle - 1
        limit = session.options.health.alerts.token_drift_warning
        limit += 0.0 if analysis.counter.exact else family_for(session.transcript.model).session_bound
        if abs(drift) <= limit + CERTAIN * error:
            return
        said = (
            f"reported tokens grow {middle:.2f} times as fast as the text that enters the window counts "
            f"({analysis.counter.name}, median of {len(ratios)} calls, drift {drift:+.0%}): the usage in the "
            "transcript is not that of this text and model"
        )
        counts = {"calls": len(ratios), "growth_ratio": middle, "drift": drift, "error": error}
        yield self.finding(said, turns=(turns[-1],), counts=counts)


def growths(session: Session) -> tuple[list[float], list[int]]:
    """Reported / counted growth of the window between consecutive calls of one model with no compaction between, as it
    was before calibration, and the turns of the later calls."""
    transcript, analysis = session.transcript, session.analysis
    cuts = {c.turn for c in transcript.compactions} | {at + 1 for at in _rewound(session)}
    calls = [u for u in transcript.usage if u.thread == transcript.main and u.context]
    scale = analysis.counter.ratio if analysis.counter is not None else 1.0
    ratios, turns = [], []
    for before, after in pairwise(calls):
        if after.turn != before.turn + 1 or after.turn in cuts or before.model != after.model:
            continue
        if after.turn > len(analysis.counted) or before.context is None or after.context is None:
            continue
        counted = (analysis.counted[after.turn - 1] - analysis.counted[before.turn - 1]) / scale
        if counted > 0 and after.context > before.context:
            ratios.append((after.context - before.context) / counted)
            turns.append(after.turn)
    return ratios, turns


def _rewound(session: Session) -> Iterator[int]:
    """Turns behind which the session went back to an earlier state."""
    transcript = session.transcript
    yield from (transcript.usage[i].turn for i in transcript.abandoned if i < len(transcript.usage))
