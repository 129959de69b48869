"""`ctxctl health --listen`: scraped over real HTTP, while files come, grow, break and go."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ctxctl.cli.examining import Asked, Measuring
from ctxctl.cli.listening import Watched, address_of, state_of
from ctxctl.errors import UsageError

ENVIRONMENT = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Server:
    """A running `ctxctl health --listen`. scrape: all samples, as Prometheus' own parser reads them."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ctxctl", "health", *arguments],
            cwd=folder,
            env={
                **ENVIRONMENT,
                "HOME": str(folder / "home"),
                "XDG_CONFIG_HOME": str(folder / "xdg"),
                "LANG": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.lines = []
        while True:
            line = self.process.stderr.readline()
            self.lines.append(line)
            if found := re.search(r"serving (http://\S+/metrics)", line):
                self.url = found[1]
                return
            assert line, f"ended with {self.process.wait()}: {self.lines}"

    def get(self, **headers: str) -> Any:
        return urllib.request.urlopen(urllib.request.Request(self.url, headers=headers), timeout=30)

    def scrape(self) -> Samples:
        text = self.get().read().decode("utf-8")
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for f in families for s in f.samples}

    def end(self, number: int) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a session in it."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copy(SAMPLES / "axios-to-fetch.jsonl", folder / "one.jsonl")
    return folder


SAMPLES = Path(__file__).parents[2] / "sample_transcripts"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*arguments: str | Path) -> Server:
        started.append(Server(tmp_path, *map(str, arguments)))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def total(samples: Samples, name: str) -> float | None:
    return samples.get((name, frozenset()))


def sessions(samples: Samples) -> set[str]:
    return {dict(labels)["session"] for name, labels in samples if name == "ctxctl_session_turns"}


def test_files_come_grow_break_and_go(serve: Callable[..., Server], runs: Path) -> None:
    server = serve("--listen", ":0", runs)
    assert server.url.startswith("http://127.0.0.1:")
    first = server.scrape()
    assert (total(first, "ctxctl_sessions"), total(first, "ctxctl_session_read_errors")) == (1, 0)
    assert server.scrape() == first

    # one more comes, in a folder further down
    (runs / "deep").mkdir()
    codex = (SAMPLES / "codex-rollout.jsonl").read_bytes()
    half = b"".join(codex.splitlines(keepends=True)[:20])
    (runs / "deep" / "two.jsonl").write_bytes(half)
    second = server.scrape()
    assert total(second, "ctxctl_sessions") == 2 and len(sessions(second)) == 2
    # it grows
    (runs / "deep" / "two.jsonl").write_bytes(codex)
    third = server.scrape()
    turns = [total(s, "ctxctl_turns_total") for s in (first, second, third)]
    assert turns == sorted(set(turns)), turns  # type: ignore[type-var]
    # what is no transcript is passed over, what is broken is counted, and neither stops it
    (runs / "notes.json").write_text('{"a": 1}')
    (runs / "broken.jsonl").symlink_to(runs / "broken.jsonl")
    (runs / "packed.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00no gzip")
    fourth = server.scrape()
    assert (total(fourth, "ctxctl_sessions"), total(fourth, "ctxctl_session_read_errors")) == (2, 1)
    (runs / "packed.jsonl.gz").unlink()
    # one goes: it has no series any more, but sums keep what it cost, since a fall would mean a restart
    (runs / "one.jsonl").unlink()
    fifth = server.scrape()
    assert (total(fifth, "ctxctl_sessions"), total(fifth, "ctxctl_session_read_errors")) == (1, 0)
    assert total(fifth, "ctxctl_cost_usd_total") == total(third, "ctxctl_cost_usd_total")
    code, out, err = server.end(signal.SIGTERM)
    assert (code, out) == (0, "")
    assert "packed.jsonl.gz" in err and "Traceback" not in err


def test_a_file_that_moves_is_not_counted_twice(serve: Callable[..., Server], runs: Path) -> None:
    server = serve("--listen", ":0", runs)
    before = server.scrape()
    with gzip.open(runs / "old.jsonl.gz", "wb") as packed:
        packed.write((runs / "one.jsonl").read_bytes())
    (runs / "one.jsonl").unlink()
    after = server.scrape()
    assert total(after, "ctxctl_sessions") == 1
    for name in ("ctxctl_turns_total", "ctxctl_cost_usd_total"):
        assert total(after, name) == total(before, name)
    # a copy beside it is another one
    shutil.copy(runs / "old.jsonl.gz", runs / "copy.jsonl.gz")
    assert total(server.scrape(), "ctxctl_turns_total") == 2 * (total(before, "ctxctl_turns_total") or 0)


def test_no_sums_before_all_files_were_looked_at(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape that can't wait gets what is known; half a sum would grow as if it were spent now."""
    for number in range(12):
        shutil.copy(SAMPLES / "codex-rollout.jsonl", runs / f"{number}.jsonl")
    given = {field.name: None for field in fields(Asked)}
    asked = Asked(**{**given, "fail_on": (), "limits": {}, "ignore": (), "subagents": True, "series": 50})  # type: ignore[arg-type]
    watched = Watched([str(runs)], Measuring(asked), asked.series)
    monkeypatch.setattr("ctxctl.cli.listening.PATIENCE", 0.001)
    seen, sums = [], set()
    while not seen or seen[-1] < 13:
        found = {family.name: [value for _, value in family.samples] for family in watched.families()}
        seen += found["ctxctl_sessions"]
        sums.update(found["ctxctl_turns_total"])
    watched.begin().join()
    found = {family.name: [value for _, value in family.samples] for family in watched.families()}
    assert min(seen) < 13 and {*sums, *found["ctxctl_turns_total"]} == {45 + 12 * 16}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_that_reaches_another_thread_ends_it(
    serve: Callable[..., Server], runs: Path, number: int, status: int
) -> None:
    """The kernel gives a signal to any thread of a process."""
    threads = Path(f"/proc/{(server := serve('--listen', ':0', runs)).process.pid}/task")
    if not threads.is_dir():
        pytest.skip("no /proc")
    others = {int(thread.name) for thread in threads.iterdir()} - {server.process.pid}
    os.kill(max(others), number)
    assert server.process.wait(timeout=30) == status


@pytest.mark.slow
def test_prometheus_gets_what_it_asks_for(serve: Callable[..., Server], runs: Path) -> None:
    server = serve("--listen", "localhost:0", runs / "one.jsonl")
    plain = server.get()
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    metrics = server.get(Accept="application/openmetrics-text; version=1.0.0")
    assert metrics.headers["Content-Type"].startswith("application/openmetrics-text")
    assert metrics.read().endswith(b"# EOF\n")
    code, out, err = server.end(signal.SIGINT)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


@pytest.mark.slow
def test_nothing_runs_between_requests(serve: Callable[..., Server], runs: Path) -> None:
    server = serve("--listen", ":0", runs)
    server.scrape()

    def ticks() -> int:
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    if not Path("/proc/self/stat").exists():
        pytest.skip("no /proc")
    before = ticks()
    time.sleep(1.0)
    assert ticks() - before <= 1  # a hundredth of a second


@pytest.mark.slow
def test_another_host_than_this_machine_is_said_to_be_open(serve: Callable[..., Server], runs: Path) -> None:
    server = serve("--listen", "0.0.0.0:0", runs)
    assert any("can read the names" in line for line in server.lines)


def test_a_port_in_use(runs: Path, ctxctl: Callable[..., Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = ctxctl("health", "--listen", f":{taken.getsockname()[1]}", runs)
    assert (done.code, done.out) == (2, "")
    assert "in use" in done.err and "hint: take another port" in done.err


@pytest.mark.parametrize("host", ["ü..", "a" * 300, "192.0.2.1"])
def test_a_host_that_is_not_this_machine(runs: Path, ctxctl: Callable[..., Any], host: str) -> None:
    done = ctxctl("health", "--listen", f"{host}:0", runs)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: --listen") and "hint: name this machine" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "files or folders"), (("-",), "files or folders"), (("missing",), "no such file"), (("a", "b.jsonl"), "a: ")],
)
def test_paths_that_can_not_be_watched(ctxctl: Callable[..., Any], arguments: tuple[str, ...], said: str) -> None:
    done = ctxctl("health", "--listen", ":0", *arguments)
    assert done.code in (2, 3) and done.out == ""
    assert said in done.err and "hint: " in done.err


def test_without_the_library_the_error_names_it(tmp_path: Path, ctxctl: Callable[..., Any]) -> None:
    hidden = tmp_path / "hidden" / "prometheus_client.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ImportError")
    path = os.pathsep.join(filter(None, (str(hidden.parent), os.environ.get("PYTHONPATH"))))
    done = ctxctl("health", "--listen", ":0", SAMPLES, PYTHONPATH=path)
    assert done.code == 2
    assert "pip install 'ctxctl[prometheus]'" in done.err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        ("localhost:1", ("localhost", 1)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("[::]:0", ("::", 0)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", ":", "host", "host:", ":65536", ":-1", "::1", "::1:9464", ":٣", "a:b:1", "[]:1x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is no address"):
        address_of(text)


def test_a_file_of_a_sub_agent_changes_the_state_of_its_session(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_text("{}\n")
    before = state_of(str(session))
    helper = tmp_path / "s" / "subagents" / "agent-1.jsonl"
    helper.parent.mkdir(parents=True)
    helper.write_text("{}\n")
    after = state_of(str(session))
    assert before != after and len(after) == 2
    session.unlink()
    assert len(state_of(str(session))) == 1
