"""The same call with the same outcome, again and again."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding

TIMES = 3


@DETECTORS.register("repeated_calls")
class RepeatedCalls(Detector):
    """Signal: a call with equal arguments gives an equal result at least three times, and the earlier results are
    still in the window. What changed meanwhile can't have mattered, since the outcome is the same."""

    code = "repeated_calls"
    signal = "the same call gave the same result at least 3 times while the first was still in the window"
    fix = "tell the agent that the result has not changed: it is above; or answer repeats from a cache"

    def find(self, session: Session) -> Iterator[Finding]:
        return iter(())
