"""The audit trail: its form, held to a checker of its own, and appending under all that can go wrong."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.model.edits import Note
from ctxctl.state import audit
from ctxctl.state.audit import FIRST, TYPES, AuditTrail, Event, append, check_writable, record
from ctxctl.state.audit_verify import read, verify
from ctxctl.state.notes import append_notes, read_notes
from ctxctl.state.options import StateOptions

NOW = "2026-11-30T10:15:00+00:00"


def checked(data: bytes) -> list[dict[str, Any]]:
    """The records of a whole trail, by the standard library alone; fails where the chain does not hold."""
    prev, found = "0" * 64, []
    assert data.endswith(b"\n")
    for number, line in enumerate(data[:-1].split(b"\n"), 1):
        record = json.loads(line)
        again = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert again.encode() == line
        claimed = record.pop("hash")
        body = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(body.encode()).hexdigest() == claimed
        assert (record["seq"], record["prev"]) == (number, prev)
        prev = claimed
        found.append(record)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent_audit.jsonl"


def test_the_form(path: Path) -> None:
    append(path, [Event("eviction", {"count": 3}, 7, "s1"), Event("save", {})], now=NOW)
    append(path, [Event("resume", {}, time="2026-11-30T11:00:00+00:00")], now=NOW)
    one, two, three = checked(path.read_bytes())
    assert one == {
        "schema": "ctxctl.audit/1",
        "seq": 1,
        "time": NOW,
        "type": "eviction",
        "turn": 7,
        "transcript": "s1",
        "data": {"count": 3},
        "prev": "0" * 64,
    }
    assert (two["type"], two["turn"], two["transcript"], three["time"]) == ("save", None, None, three["time"])
    assert three["time"] == "2026-11-30T11:00:00+00:00"


def test_other_types_are_refused(path: Path) -> None:
    for type_ in TYPES:
        append(path, [Event(type_, {})], now=NOW)
    assert [r["type"] for r in checked(path.read_bytes())] == list(TYPES)
    with pytest.raises(ValueError, match="did you mean 'eviction'"):
        Event("evction", {})


def test_no_events_make_no_file(path: Path) -> None:
    append(path, [], now=NOW)
    assert not path.exists()


def test_one_record_in_a_state_folder(tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, 10, 15, tzinfo=UTC)
    options = StateOptions(audit_file="trail.jsonl")
    found = record(tmp_path / "state", options, "save", {"window": 2}, now=now, turn=5, transcript="s1")
    assert found == tmp_path / "state" / "trail.jsonl"
    assert checked(found.read_bytes())[0]["data"] == {"window": 2}


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abz_09", max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.text("abz_09", max_size=6), PLAIN, max_size=4), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_whatever_the_data_every_json_library_gets_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, data: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("audit") / "a.jsonl"
    for item in data:
        append(path, [Event("steering", item)], now=NOW)
    assert len(checked(path.read_bytes())) == len(data)
    assert verify(path).intact


def test_numbers(path: Path) -> None:
    given = {"a": 0.1 + 0.2, "b": 2.0, "c": float("nan"), "d": 1e300, "e": 1e-7, "f": 10**20, "g": -0.00005, "h": True}
    append(path, [Event("eviction", given)], now=NOW)
    found = checked(path.read_bytes())[0]["data"]
    assert found == {"a": 0.3, "b": 2, "c": None, "d": str(int(1e300)), "e": 0, "f": str(10**20), "g": -0.0001, "h": 1}
    assert b'"e":0,' in path.read_bytes() and b"E" not in path.read_bytes() and b"-0," not in path.read_bytes()


@pytest.mark.parametrize("data", [{"größe": 1}, {1: 1}, {"a": object()}, {"a": "x" * audit.LARGEST}])
def test_data_without_a_form_is_refused_and_nothing_written(path: Path, data: Any) -> None:
    append(path, [Event("save", {})], now=NOW)
    before = path.read_bytes()
    with pytest.raises(ValueError):
        append(path, [Event("save", {}), Event("save", data)], now=NOW)
    assert path.read_bytes() == before


def test_credentials_are_taken_out_and_hashes_stay(path: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    sha = hashlib.sha256(b"x").hexdigest()
    data = {"reason": f"token {key}", "list": [{"deep": key}], "output_sha256": sha, "sha256": key, "text": sha}
    append(path, [Event("compaction", data, transcript=key)], now=NOW)
    assert key.encode() not in path.read_bytes()
    found = checked(path.read_bytes())[0]["data"]
    assert found["output_sha256"] == sha and found["text"] != sha


def test_lone_surrogates_become_replacement_characters(path: Path) -> None:
    append(path, [Event("steering", {"text": "half \ud83d of it"})], now=NOW)
    assert checked(path.read_bytes())[0]["data"]["text"] == "half \ufffd of it"


# crashes


def test_cut_at_any_byte_it_goes_on(path: Path) -> None:
    append(path, [Event("save", {"n": 1, "text": "é"})], now=NOW)
    first = path.read_bytes()
    append(path, [Event("save", {"n": 2, "text": "ü😀\n"}), Event("eviction", {"n": 3})], now=NOW)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        append(path, [Event("resume", {"after": cut})], now=NOW)
        found = verify(path)
        assert found.intact, (cut, found)
        kept = [line for line in whole[:cut].split(b"\n") if line and line in whole.split(b"\n")]
        assert found.records == len(kept) + 1
        torn = 0 < cut < len(first) - 1 or b"\n".join([*kept, b""]) not in (whole[:cut], whole[:cut] + b"\n")
        assert bool(found.torn) == (torn and cut > 0), cut
        assert path.read_bytes().startswith(whole[:cut])


def test_zero_bytes_after_a_power_cut(path: Path) -> None:
    append(path, [Event("save", {})], now=NOW)
    path.write_bytes(path.read_bytes() + b'{"data":{"n' + b"\0" * 4000)
    append(path, [Event("save", {})], now=NOW)
    found = verify(path)
    assert found.intact and found.records == 2 and found.torn == (2,)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on file sizes")
def test_a_full_disk_loses_nothing(path: Path) -> None:
    append(path, [Event("save", {})], now=NOW)
    before = path.read_bytes()
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ctxctl.errors import InputError; from ctxctl.state.audit import Event, append\n"
        "path = Path(sys.argv[1]); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, -1))\n"
        "try: append(path, [Event('save', {'text': 'x' * 1000})], now='2026-11-30')\n"
        "except InputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert "can't be written: File too large" in done.stdout and not done.stderr
    assert path.read_bytes() == before


def test_twenty_writers_at_once_keep_one_chain(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ctxctl.state.audit import Event, append\n"
        "for n in range(25): append(Path(sys.argv[1]), [Event('save', {'writer': int(sys.argv[2]), 'n': n})] * 2,"
        " now='2026-11-30T10:00:00Z')\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(n)]) for n in range(20)]
    assert [writer.wait(120) for writer in writers] == [0] * 20
    found = checked(path.read_bytes())
    assert len(found) == 20 * 25 * 2
    assert {(r["data"]["writer"], r["data"]["n"]) for r in found} == {(w, n) for w in range(20) for n in range(25)}


def test_killed_writers_leave_a_chain_that_holds(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ctxctl.state.audit import Event, append\n"
        "print('up', flush=True)\n"
        "while True: append(Path(sys.argv[1]), [Event('save', {'text': 'x' * 5000})] * 3, now='2026-11-30T10:00:00Z')\n"
    )
    for wait in (0.0, 0.01, 0.03, 0.08):
        writers = [
            subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) for _ in range(3)
        ]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            writers[0].wait(0.05 + wait)
        for writer in writers:
            writer.kill()
            writer.wait()
    append(path, [Event("resume", {})], now=NOW)
    assert verify(path).intact


# files


def test_the_end_alone_is_read(path: Path) -> None:
    append(path, [Event("save", {"text": "word " * 1000})] * 200, now=NOW)

    class Counting:
        def __init__(self, file: Any) -> None:
            self.file, self.bytes = file, 0

        def read(self, size: int) -> bytes:
            self.bytes += size
            return bytes(self.file.read(size))

        def seek(self, *to: int) -> int:
            return int(self.file.seek(*to))

    with open(path, "rb") as file:
        counting: Any = Counting(file)
        assert audit._head(path, counting)[0] == 200
        assert counting.bytes < 40_000 < path.stat().st_size


def test_no_wider_than_what_it_is_about(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    source.touch()
    source.chmod(0o600)
    append(path, [Event("save", {})], now=NOW, mode_of=str(source))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("held", [b"# notes\n", b'{"type":"user"}\n', b"\x00\xff" * 5000, b"[]\n" * 5000])
def test_another_kind_of_file_is_left_alone(path: Path, held: bytes) -> None:
    path.write_bytes(held)
    for attempt in (lambda: append(path, [Event("save", {})], now=NOW), lambda: check_writable(path)):
        with pytest.raises(InputError, match="no audit trail"):
            attempt()
    assert path.read_bytes() == held


def test_what_can_be_told_beforehand(path: Path, tmp_path: Path) -> None:
    check_writable(path)
    check_writable(tmp_path / "not" / "yet" / "there.jsonl")
    assert os.listdir(tmp_path) == []
    append(path, [Event("save", {})], now=NOW)
    check_writable(path)
    for wrong in (tmp_path, path / "below.jsonl", path / "a" / "b.jsonl"):
        with pytest.raises(InputError, match="can't be written"):
            check_writable(wrong)
    if os.getuid():
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="Permission denied"):
            check_writable(tmp_path / "new.jsonl")
        tmp_path.chmod(0o700)


# the trail of a live session


def test_events_wait_until_they_are_written(path: Path) -> None:
    times = iter(datetime(2026, 11, 30, 10, minute, tzinfo=UTC) for minute in range(60))
    with AuditTrail(path, clock=lambda: next(times), transcript="s1") as trail:
        trail.add("eviction", {"count": 1}, turn=3)
        trail.add("budget_refusal", {}, turn=3)
        assert not path.exists() and trail.waiting == 2
        trail.flush()
        assert trail.waiting == 0
        trail.add("save", {})
        with pytest.raises(ValueError):
            trail.add("other", {})
    found = checked(path.read_bytes())
    assert [(r["type"], r["turn"], r["time"][14:16]) for r in found] == [
        ("eviction", 3, "00"),
        ("budget_refusal", 3, "01"),
        ("save", None, "02"),
    ]
    assert {r["transcript"] for r in found} == {"s1"}


def test_what_can_t_be_written_waits(path: Path) -> None:
    path.mkdir()
    trail = AuditTrail(path)
    trail.add("save", {"n": 1})
    with pytest.raises(InputError):
        trail.flush()
    assert trail.waiting == 1
    path.rmdir()
    trail.add("save", {"n": 2})
    trail.flush()
    assert [r["data"]["n"] for r in checked(path.read_bytes())] == [1, 2]


def test_what_waits_costs_nothing_anew(path: Path) -> None:
    path.mkdir()  # nothing can be written there
    trail = AuditTrail(path)
    data = {"units": [f"unit {number} of the session" for number in range(100)]}
    spans = []
    for _ in range(2):
        began = time.perf_counter()
        for _ in range(60):
            trail.add("eviction", data)
            with pytest.raises(InputError):
                trail.flush()
        spans.append(time.perf_counter() - began)
    assert trail.waiting == 120
    assert spans[1] < 2 * spans[0]  # it would be three times as much


# others that hold it, and what is no file


def taken(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def test_a_lock_that_stays_taken_ends_the_wait(path: Path, tmp_path: Path) -> None:
    append(path, [Event("save", {})], now=NOW)
    before, handle = path.read_bytes(), taken(path)
    trail = AuditTrail(path, wait=0.1)
    trail.add("save", {})
    notes = tmp_path / "notes.md"
    other = taken(notes)
    attempts: list[Callable[[], Any]] = [
        lambda: append(path, [Event("save", {})], now=NOW, wait=0.1),
        lambda: record(tmp_path, StateOptions(audit_file=path.name), "save", {}, now=NOW, wait=0.1),
        trail.flush,
        lambda: list(read(path, wait=0.1)),
        lambda: verify(path, wait=0.1),
        lambda: append_notes(notes, [Note("done", "x")], NOW, wait=0.1),
    ]
    for attempt in attempts:
        began = time.monotonic()
        with pytest.raises(InputError, match=r"another process has been writing it for 0\.1 s"):
            attempt()
        assert 0.1 <= time.monotonic() - began < 2
    assert trail.waiting == 1 and path.read_bytes() == before
    os.close(handle)
    os.close(other)
    trail.flush()
    assert len(checked(path.read_bytes())) == 2
    assert append_notes(notes, [Note("done", "x")], NOW, wait=0.1) == 1


def test_a_lock_that_is_let_go_is_waited_for(path: Path) -> None:
    handle = taken(path)
    threading.Timer(0.3, os.close, [handle]).start()
    append(path, [Event("save", {})], now=NOW)
    assert len(checked(path.read_bytes())) == 1


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device", "link to a pipe"])
def test_what_is_no_plain_file_is_refused_at_once(path: Path, tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(os.path.relpath(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    attempts: list[Callable[[], Any]] = [
        lambda: append(path, [Event("save", {})], now=NOW),
        lambda: record(tmp_path, StateOptions(audit_file=path.name), "save", {}, now=NOW),
        lambda: check_writable(path),
        lambda: list(read(path)),
        lambda: verify(path),
        lambda: append_notes(path, [Note("done", "x")], NOW),
        lambda: read_notes(path),
    ]
    signal.alarm(10)
    try:
        for attempt in attempts:
            with pytest.raises(InputError, match="can't be"):
                attempt()
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("seq", [2**53, 2**63, 2**64 - 1, -1, 0, True, 1.5])
def test_a_number_that_none_can_follow_is_no_record(path: Path, seq: Any) -> None:
    line = json.dumps({"data": {}, "seq": seq, "prev": FIRST, "hash": "a" * 64})
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="no audit trail"):
        append(path, [Event("save", {})], now=NOW)


def test_what_is_nested_too_deeply_is_no_record(path: Path) -> None:
    append(path, [Event("save", {})], now=NOW)
    deep = '{"data":' + "[" * 400 + "]" * 400 + f',"hash":"{"a" * 64}","prev":"{"b" * 64}","seq":2}}\n'
    with open(path, "a") as file:
        file.write(deep)
    found = verify(path)
    assert not found.intact and "no record" in found.broken[0].why
    assert [entry["seq"] for entry in read(path)] == [1]
