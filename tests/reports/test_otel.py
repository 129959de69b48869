"""OpenTelemetry: what arrives at a collector is what the families hold."""

from __future__ import annotations

import gzip
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from ctxctl import __version__
from ctxctl.errors import InputError, UsageError
from ctxctl.health.result import Health
from ctxctl.reports.build.families import families
from ctxctl.reports.otel import _Heard, export, url_of


class CollectorServer(ThreadingHTTPServer):
    """A collector on loopback that keeps what is posted. status: what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.posts: list[tuple[str, str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: CollectorServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.posts.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[CollectorServer]:
    with CollectorServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_every_value_arrives(health: Callable[..., Health], unmeasured: Health, collector: CollectorServer) -> None:
    exported = families([health(), unmeasured], failed=1)
    export(exported, collector.url)
    ((path, kind, body),) = collector.posts
    assert (path, kind) == ("/v1/metrics", "application/x-protobuf")
    request = ExportMetricsServiceRequest.FromString(body)
    (resource,) = request.resource_metrics
    about = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert (about["service.name"], about["service.version"]) == ("ctxctl", __version__)
    (scope,) = resource.scope_metrics
    found, counters = {}, set()
    for metric in scope.metrics:
        shape = metric.WhichOneof("data")
        if shape == "sum":
            assert metric.sum.is_monotonic
            assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
            counters.add(metric.name)
        for point in getattr(metric, shape).data_points:
            labels = tuple((a.key, a.value.string_value) for a in point.attributes)
            value = getattr(point, point.WhichOneof("value"))
            found[metric.name, metric.unit, metric.description, tuple(sorted(labels))] = value
            assert point.time_unix_nano > 0
            if shape == "sum":
                assert point.start_time_unix_nano == 1_777_629_600 * 10**9  # when the oldest session began
    assert found == {
        (f.name, f.unit, f.help, tuple(sorted(labels))): value for f in exported for labels, value in f.samples
    }
    assert counters == {f.name for f in exported if f.kind == "counter"}


def test_a_collector_that_refuses_is_an_error(
    health: Callable[..., Health], collector: CollectorServer, capfd: pytest.CaptureFixture[str]
) -> None:
    collector.status = 400
    with pytest.raises(InputError, match="did not take the metrics") as caught:
        export(families([health()]), collector.url)
    assert collector.url in str(caught.value) and "4318" in (caught.value.hint or "")
    assert capfd.readouterr() == ("", "")


def test_nobody_there_is_an_error(health: Callable[..., Health], capfd: pytest.CaptureFixture[str]) -> None:
    with CollectorServer() as server:
        url = server.url
    with pytest.raises(InputError, match="did not take the metrics") as caught:
        export(families([health()]), url.replace("://", "://user:secret@"), timeout=0.5)
    assert "secret" not in str(caught.value) and url in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("https://otel.example.com/", "https://otel.example.com/v1/metrics"),
        ("http://host/own/path", "http://host/own/path"),
    ],
)
def test_urls(given: str, url: str) -> None:
    assert url_of(given) == url


@pytest.mark.parametrize("text", ["localhost:4318", "grpc://host:4317", "http://", "", "http://[1", "http://a:99999"])
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(UsageError, match="no URL"):
        url_of(text)


def test_what_is_no_url_is_told_without_its_password() -> None:
    with pytest.raises(UsageError) as caught:
        url_of("http://user:secret@[1/path")
    assert "http://[1/path" in str(caught.value) and "secret" not in str(caught.value)


def test_the_reason_is_what_was_met_first() -> None:
    with _Heard() as heard:
        log = logging.getLogger("opentelemetry.exporter")
        log.warning(
            "Transient error %s encountered while exporting metrics batch, retrying in 1s.", "Service Unavailable"
        )
        log.error("Failed to export metrics batch due to timeout, max retries or shutdown.")
    assert heard.reason() == " (Service Unavailable)"
