"""`ctxctl health --listen`: the metrics of sessions over HTTP, for Prometheus.

Nothing runs between requests. A request looks which files changed and measures those again, in a thread of its own: a
scrape that would take too long gets what is known so far. Each session is measured by itself, so that findings across
sessions are not among the metrics.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli.inputs import Input, resolve
from ctxctl.cli.io import Streams, error_text, say
from ctxctl.errors import CtxctlError, ExitCode, InputError, NotATranscriptError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from ctxctl.cli.examining import Asked, Measuring
    from ctxctl.health.result import Health
    from ctxctl.reports.family import Family

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0
"""Seconds that a request waits for measuring; Prometheus gives up after 10 unless told otherwise."""

State = tuple[tuple[str, int, int, int], ...]
"""What tells that a file, or one that is read with it, changed: path, inode, size, time of the last change."""


@dataclass(frozen=True, slots=True)
class Known:
    """What became of a file at one state. error: why it could not be read; both None: no transcript."""

    state: State
    health: Health | None = None
    error: str | None = None


class Watched:
    """The sessions of a command line, measured again when they changed.

    Sums never fall while this lives: sessions that were deleted stay in them, and one that was cut back adds nothing
    until it is beyond what was counted. Prometheus would take a fall for a restart and count everything twice. Nor are
    there sums before each file was looked at once: it would take what is found later for what was spent just now.
    """

    def __init__(self, paths: Sequence[str], measuring: Measuring, series: int) -> None:
        self._paths, self._measuring, self._series = list(paths), measuring, series
        self._known: dict[str, Known] = {}
        self._counted: dict[tuple[str, str | None], dict[Any, float]] = {}
        self._complete = False
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None

    def families(self) -> list[Family]:
        """The metrics now, or after PATIENCE seconds what is known by then."""
        self.begin().join(PATIENCE)
        return self._families()

    def begin(self) -> threading.Thread:
        """Start to measure what changed, unless that is under way."""
        with self._lock:
            if self._running is None or not self._running.is_alive():
                self._running = threading.Thread(target=self._refresh, daemon=True)
                self._running.start()
            return self._running

    def _refresh(self) -> None:
        inputs = self._inputs()
        there = {item.path for item in inputs}
        for item in inputs:
            state = state_of(item.path)
            known = self._known.get(item.path)
            if known is None or known.state != state:
                self._keep(item.path, self._measured(item, state), there)
        with self._lock:
            self._complete = True
            for path in [path for path in self._known if path not in there]:
                del self._known[path]

    def _inputs(self) -> Sequence[Input]:
        """The files now; each path by itself, since one that is gone must not hide the others."""
        found: dict[str, Input] = {}
        for path in self._paths:
            try:
                for item in resolve([path]).items:
                    found.setdefault(os.path.realpath(item.path), item)
            except NothingFoundError:
                continue
            except CtxctlError:
                found.setdefault(path, Input(path))
        return list(found.values())

    def _measured(self, item: Input, state: State) -> Known:
        try:
            return Known(state, self._measuring.one(item.path, self._measuring.examiner()))
        except CtxctlError as error:
            if item.found and isinstance(error, (NotATranscriptError, NothingFoundError)):
                return Known(state)
            told = error_text(error)
        except Exception as error:  # whatever it is, the other sessions go on being served
            what = f"{type(error).__name__}: {error}"
            told = f"error: {item.path}: {what}\nhint: this is a bug in ctxctl: please report it"
        say(told)
        return Known(state, error=told)

    def _keep(self, path: str, known: Known, there: Set[str]) -> None:
        from ctxctl.reports.build.families import counts_of

        with self._lock:
            self._known[path] = known
            if known.health is not None:
                counted = self._counted.setdefault(self._counted_as(path, known.health.session, there), {})
                for key, value in counts_of(known.health).items():
                    counted[key] = max(value, counted.get(key, value))

    def _counted_as(self, path: str, session: str | None, there: Set[str]) -> tuple[str, str | None]:
        """Under what a session is counted: where its file was before, when it was moved or packed since."""
        key = (path, session)
        if session is not None and key not in self._counted:
            for old in self._counted:
                if old[1] == session and old[0] not in there:
                    self._counted[key] = self._counted.pop(old)
                    break
        return key

    def _families(self) -> list[Family]:
        from ctxctl.reports.build.families import families

        with self._lock:
            healths = [known.health for known in self._known.values() if known.health is not None]
            failed = sum(1 for known in self._known.values() if known.error is not None)
            counted = self._counted.values() if self._complete else ()
            counts: list[Mapping[Any, float]] = [dict(one) for one in counted]
        return families(healths, failed=failed, series=self._series, counts=counts)


class Collector:
    """What prometheus_client asks for metrics."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterable[Any]:
        """The families that have samples, as prometheus_client's own."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in self._watched.families():
            if not family.samples:
                continue
            names = [name for name, _ in family.samples[0][0]]
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=names)
            for labels, value in family.samples:
                metric.add_metric([text for _, text in labels], value)
            yield metric


def listen(address: str, paths: list[str] | None, asked: Asked, streams: Streams) -> int:
    """Serve `/metrics` at an address until SIGTERM (status 0) or SIGINT (130); says the URL on stderr.

    address: `HOST:PORT`, or `:PORT` and `PORT` for this machine alone. paths: files, folders and globs, looked at anew
    with each request. asked: what else the command line says (settings, format, window, codes to leave out).

    Raises UsageError for an address that can't be had, for stdin, and where prometheus-client is missing; InputError
    for a path that does not exist.
    """
    from ctxctl.cli.examining import Measuring

    host, port = address_of(address)
    _check(paths)
    client = _client()
    watched = Watched(paths or (), Measuring(asked), asked.series)
    registry = client.CollectorRegistry()
    registry.register(Collector(watched))
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except (OSError, UnicodeError) as error:  # the latter for a name that is none
        told = getattr(error, "strerror", None) or error
        at_port = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        hint = (
            f"take another port, such as --listen :{port % 65535 + 1}"
            if at_port
            else "name this machine, or give a port alone (:9464)"
        )
        raise UsageError(f"--listen {address}: {told}", hint=hint) from None
    stopped = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    woken_before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    try:
        if not _is_loopback(host):
            streams.note("warning: whoever reaches this machine can read the names of your sessions and files")
        shown = f"[{host}]" if ":" in host else host
        say(f"serving http://{shown}:{server.server_port}/metrics, Ctrl-C ends it")
        watched.begin()
        # a signal may reach any thread: waiting for a lock would not end, were it not this one
        while not stopped.is_set():
            woken.recv(1)
    finally:
        signal.set_wakeup_fd(woken_before)
        signal.signal(signal.SIGTERM, before)
        woken.close()
        wake.close()
        server.shutdown()
        server.server_close()
        thread.join()
    return ExitCode.OK


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[IPv6]:PORT`, `:PORT` or `PORT`.

    Without a host it is the loopback address: what sessions are about is nobody else's business unless their owner says
    so with a host such as 0.0.0.0. Port 0 takes a free one.
    """
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    bad = ":" in host and not text.strip().startswith("[")
    if bad or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--listen {text!r} is no address", hint="give HOST:PORT or :PORT, such as :9464")
    return host if colon and host else LOOPBACK, int(port)


def state_of(path: str) -> State:
    """What to compare of a session's file and of those that are read with it. A file that is gone has no entry."""
    from ctxctl.formats import FORMATS

    files = {path: None}
    for _, reader in FORMATS:
        files.update((str(companion), None) for companion in reader.companions(Path(path)))
    found = []
    for name in files:
        try:
            stat = os.stat(name)
        except OSError:
            continue
        found.append((name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check(paths: list[str] | None) -> None:
    import glob

    if not paths or "-" in paths:
        raise UsageError(
            "--listen needs files or folders that it can read again", hint="ctxctl health --listen :9464 FOLDER"
        )
    for path in paths:
        if not os.path.lexists(path) and not glob.has_magic(path):
            raise InputError("there is no such file or folder", path=path, hint="check the spelling")


def _client() -> Any:
    try:
        import prometheus_client
    except ImportError:
        raise UsageError(
            "--listen needs prometheus-client, which is not installed", hint="pip install 'ctxctl[prometheus]'"
        ) from None
    return prometheus_client
