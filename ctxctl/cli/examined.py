"""What one run of `health` found, in the form that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ctxctl.cli.batch import Done, Skipped
from ctxctl.cli.io import Streams
from ctxctl.cli.options import CheckFormat

if TYPE_CHECKING:
    from ctxctl.cli.examining import Asked, Measuring
    from ctxctl.health.compare import Comparison
    from ctxctl.health.result import Health, Trend
    from ctxctl.model.finding import Gate

SHOWN = 3
"""Sessions up to which each has a report of its own."""


@dataclass(frozen=True, slots=True)
class Examined:
    """single: one PATH that names a file. total: gates over all sessions. comparison: with what the run was compared
    to; trend: over the newest runs of the history."""

    done: list[Done[Health]]
    skipped: Skipped
    single: bool
    total: tuple[Gate, ...]
    comparison: Comparison | None = None
    trend: Trend | None = None

    @property
    def healths(self) -> list[Health]:
        """Sessions that were measured."""
        return [d.value for d in self.done if d.value is not None]

    @property
    def failed(self) -> int:
        """How many could not be."""
        return sum(1 for d in self.done if d.error is not None)


def rendered(found: Examined, asked: Asked, measuring: Measuring, streams: Streams) -> bytes | Iterator[bytes]:
    """The payload."""
    form = asked.form
    if form in (CheckFormat.json, CheckFormat.jsonl):
        return _json(found, asdict(measuring.settings), asked)
    if form is CheckFormat.csv:
        from ctxctl.reports import csv
        from ctxctl.reports.build.health_data import COLUMNS, turn_records

        return csv.render(COLUMNS, (row for h in found.healths for row in turn_records(h))).encode()
    if form is CheckFormat.prometheus:
        from ctxctl.reports import prometheus
        from ctxctl.reports.build.families import families

        return prometheus.render(families(found.healths, failed=found.failed, series=asked.series)).encode()
    reports = _reports(found, measuring, streams)
    if form is CheckFormat.text:
        return streams.text(reports, to_file=asked.output is not None)
    if form is CheckFormat.markdown:
        from ctxctl.reports import markdown

        return markdown.render(reports).encode()
    return _checked(found, form, reports, measuring)


def _reports(found: Examined, measuring: Measuring, streams: Streams) -> list[Any]:
    from ctxctl.reports.build.health import health_report, overview_report

    healths = found.healths
    verbose = streams.verbosity > 0
    alerts = measuring.settings.health_monitoring.alerts
    reports = [health_report(h, alerts, verbose=verbose) for h in healths] if len(healths) <= SHOWN else []
    if not found.single:
        reports.append(overview_report(healths, found.failed, found.trend))
    if found.comparison is not None:
        from ctxctl.reports.build.compare import comparison_report

        reports.append(comparison_report(found.comparison))
    return reports


def _json(found: Examined, settings: dict[str, Any], asked: Asked) -> bytes | Iterator[bytes]:
    from ctxctl.reports.build.failure import error_of, failed_data
    from ctxctl.reports.build.health_data import health_data, total_data
    from ctxctl.reports.json import dumps, envelope, pieces

    entries: list[dict[str, Any]] = []
    for d in found.done:
        if d.error is not None:
            entries.append(failed_data(d.path, d.error))
        elif d.value is not None:
            entries.append({"path": d.path, "result": health_data(d.value, turns=asked.turns)})
    if asked.form is CheckFormat.jsonl:
        return b"".join(
            dumps({"path": e["path"], **envelope("health", settings, e.get("result")), **error_of(e)}) for e in entries
        )
    more: dict[str, Any] = {}
    if found.comparison is not None:
        from ctxctl.reports.build.compare import comparison_data

        more["comparison"] = comparison_data(found.comparison)
    if found.trend is not None:
        more["history"] = asdict(found.trend)
    totals = [asdict(gate) for gate in found.total]
    if found.single:
        result = entries[0]["result"]
        return pieces(envelope("health", settings, {**result, "gates": [*result["gates"], *totals], **more}))
    result = {
        "files": entries,
        "skipped": [{"path": path, "reason": reason} for path, reason in found.skipped],
        "total": {**total_data(found.healths, found.failed, len(found.skipped)), "gates": totals},
        **more,
    }
    return pieces(envelope("health", settings, result))


def _checked(found: Examined, form: CheckFormat, reports: Sequence[Any], measuring: Measuring) -> bytes:
    """The forms of CI."""
    from ctxctl.cli.checks import rendered_checks
    from ctxctl.reports.document import Checked

    checked = [
        Checked(d.path, d.path, (), (), d.error)
        if d.value is None
        else Checked(d.path, d.path, (*d.value.alerts, *d.value.findings), d.value.gates)
        for d in found.done
    ]
    return rendered_checks(form, checked, found.total, reports, measuring.fail_on)
