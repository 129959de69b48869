"""OpenTelemetry: metrics sent to a collector once, by OTLP over HTTP.

The values and the exporter are the official SDK's (extra `otel`). Headers, certificates and compression come from the
environment variables of its specification (`OTEL_EXPORTER_OTLP_HEADERS` and others), as with any of its exporters.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ctxctl import __version__
from ctxctl.errors import InputError, UsageError
from ctxctl.reports.family import Family

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricsData

TIMEOUT = 10
"""Seconds after which sending is given up; the specification's default."""
PATH = "/v1/metrics"
BILLION = 1_000_000_000


def export(families: Sequence[Family], endpoint: str, *, timeout: float = TIMEOUT) -> None:
    """Send the families to a collector.

    endpoint: URL; without a path, OTLP's own is added (`http://localhost:4318` -> `http://localhost:4318/v1/metrics`).
    timeout: seconds in all, with repetitions after failures that may pass.

    Raises UsageError as `check` does, and InputError when the collector did not take them.
    """
    check(endpoint)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult

    url = url_of(endpoint)
    data = data_of(families, time.time_ns())
    with _Heard() as heard:
        exporter = OTLPMetricExporter(endpoint=url, timeout=timeout)
        try:
            result = exporter.export(data)
        finally:
            exporter.shutdown()
    if result is not MetricExportResult.SUCCESS:
        raise InputError(
            f"the collector at {shown(url)} did not take the metrics{heard.reason()}",
            hint="check that it listens for OTLP over HTTP at that URL (port 4318 by default)",
        )


def check(endpoint: str) -> None:
    """Raises UsageError for what is no URL, and where the SDK is missing: what is known before anything is measured."""
    url_of(endpoint)
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter
        import opentelemetry.sdk.metrics.export  # noqa: F401
    except ImportError:
        raise UsageError(
            "--otlp needs the OpenTelemetry SDK, which is not installed", hint="pip install 'ctxctl[otel]'"
        ) from None


def url_of(endpoint: str) -> str:
    """The URL that is posted to."""
    try:
        parts = urlsplit(endpoint)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # half an IPv6 address, a port beyond 65535
        known = False
    if not known:
        raise UsageError(f"--otlp {shown(endpoint)!r} is no URL", hint="give one such as http://localhost:4318")
    return urlunsplit(parts._replace(path=PATH)) if parts.path in ("", "/") else endpoint


def shown(url: str) -> str:
    """A URL without the user and the password in it, for what people read and CI keeps."""
    return re.sub(r"(?<=//)[^/?#]*@", "", url)


def data_of(families: Sequence[Family], now: int) -> MetricsData:
    """The families that have samples as the SDK's values. now: nanoseconds since 1970.

    Names are those of Prometheus, and units are annotations in braces, which translation to Prometheus leaves out: one
    dashboard serves both ways. A counter starts when the oldest session did: with the time of this run a collector
    would take each run for a restart, and count everything again.
    """
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    resource = Resource.create({"service.name": "ctxctl", "service.version": __version__})
    scope = InstrumentationScope("ctxctl", __version__)
    metrics = [_metric(family, now) for family in families if family.samples]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _metric(family: Family, now: int) -> Metric:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, NumberDataPoint, Sum

    start = int(family.since * BILLION) if family.since is not None else 0
    points = [NumberDataPoint(dict(labels), start, now, value) for labels, value in family.samples]
    data = (
        Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if family.kind == "counter" else Gauge(points)
    )
    return Metric(family.name, family.help, family.unit, data)


class _Heard(logging.Handler):
    """What the exporter logs while it sends, instead of on stderr: the reason of a failure."""

    def __init__(self) -> None:
        super().__init__()
        self._logger = logging.getLogger("opentelemetry")
        self._messages: list[str] = []

    def __enter__(self) -> _Heard:
        self._propagated = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False
        return self

    def __exit__(self, *_: Any) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())

    def reason(self) -> str:
        """What was met first, in brackets: later messages say only that it was tried again, and given up."""
        if not self._messages:
            return ""
        met = re.sub(r"^Transient error (.+) encountered while .*$", r"\1", self._messages[0].strip(), flags=re.DOTALL)
        return f" ({met})"
