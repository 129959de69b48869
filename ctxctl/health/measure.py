"""A session's health: metrics, alerts, findings and trend in one value (requirements H1 to H5, H8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ctxctl.budgets.cost import session_cost
from ctxctl.health.alerts import alerts_of, high_turns, is_stable
from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.fidelity import fidelity_of
from ctxctl.health.metrics import metrics_of
from ctxctl.health.result import Health
from ctxctl.health.session import Session
from ctxctl.health.trend import trend_of
from ctxctl.model.finding import Finding
from ctxctl.pressure.gates import DAMAGE


class Examiner:
    """Measures sessions one after the other, and at the end says what is wrong across them.

    ignore: codes of alerts and detectors that are not reported; UsageError for an unknown one is raised by whoever
    reads the option (`known_codes`).
    """

    def __init__(self, ignore: Sequence[str] = ()) -> None:
        self._ignored = frozenset(ignore)
        self._detectors: list[Detector] = [kind() for code, kind in DETECTORS if code not in self._ignored]
        self._notes: dict[str, list[tuple[str, Any]]] = {}

    def measure(self, session: Session) -> Health:
        """The health of one session."""
        options = session.options.health
        transcript, analysis = session.transcript, session.analysis
        fidelity = fidelity_of(session) if "fidelity_score" in options.metrics else None
        metrics, series = metrics_of(session, fidelity)
        stable = is_stable(session)
        alerts = alerts_of(series, metrics, options.alerts, stable)
        findings: list[Finding] = []
        for detector in self._detectors:
            findings += detector.find(session)
            if (note := detector.note(session)) is not None:
                self._notes.setdefault(detector.code, []).append((session.path, note))
        times = [call.time for call in transcript.usage if call.time is not None]
        peak = analysis.peak
        return Health(
            session.path,
            transcript.id,
            transcript.model,
            transcript.format,
            session.window,
            analysis.context.tokens,
            peak.tokens if peak is not None else None,
            peak.utilization if peak is not None else None,
            analysis.turns,
            analysis.usage.requests,
            session_cost(transcript.usage, session.table, transcript.model),
            high_turns(series, options.alerts, metrics.utilization),
            transcript.full_compactions,
            analysis.curve,
            metrics,
            series,
            tuple(alert for alert in alerts if alert.code not in self._ignored),
            tuple(sorted(findings, key=lambda f: (f.turn or 0, f.code))),
            trend_of(series),
            fidelity,
            started=_stamp(min(times)) if times else None,
            ended=_stamp(max(times)) if times else None,
            usage=analysis.usage,
            stable=stable,
            window_source=analysis.window.source,
            damage=sum(d.count for d in analysis.diagnostics if d.code in DAMAGE),
        )

    def across(self, healths: Sequence[Health]) -> list[Health]:
        """The same sessions, with what shows only across them."""
        found: dict[str, list[Finding]] = {}
        for path, finding in self._over():
            found.setdefault(path, []).append(finding)
        return [replace(h, findings=(*h.findings, *found[h.path])) if h.path in found else h for h in healths]

    def _over(self) -> Iterator[tuple[str, Finding]]:
        for detector in self._detectors:
            if detector.code in self._notes:
                yield from detector.over(self._notes[detector.code])


def _stamp(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
