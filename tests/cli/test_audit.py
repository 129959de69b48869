"""`ctxctl audit`, and the records that `ctxctl compact` leaves."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRAIL = "agent_audit.jsonl"
SESSION = "axios-to-fetch.jsonl"


@pytest.fixture
def compacted(ctxctl: Any, samples: Path, tmp_path: Path) -> Any:
    """Compacts the sample into out.jsonl, or what is named, with more options; the `result`."""
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")

    def run(*more: str, output: str = "out.jsonl") -> Any:
        done = ctxctl("compact", "--to", "22k", "--json", "-o", output, "s.jsonl", *more)
        assert done.code == 0, done.err
        return done.result()

    return run


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_compaction_is_recorded(ctxctl: Any, compacted: Any, tmp_path: Path) -> None:
    found = compacted()
    assert found["written"] == ["out.jsonl", "out.jsonl.recall.db", TRAIL]
    (record,) = records(tmp_path / TRAIL)
    data = record["data"]
    assert (record["type"], record["seq"], record["prev"]) == ("compaction", 1, "0" * 64)
    assert data["source"] == str(tmp_path / "s.jsonl") and data["output"] == str(tmp_path / "out.jsonl")
    assert data["output_sha256"] == hashlib.sha256((tmp_path / "out.jsonl").read_bytes()).hexdigest()
    assert data["recall_id"] == found["recall_id"] and data["backup"] is None and data["in_place"] is False
    assert (data["before_tokens"], data["after_tokens"]) == (found["before_tokens"], found["after_tokens"])
    assert data["target_tokens"] == found["target"]
    assert [s["strategy"] for s in data["steps"]] == [s["strategy"] for s in found["steps"]]
    assert [s["units"] for s in data["steps"]] == [s["units"] for s in found["steps"]]


def test_what_was_evicted_is_a_record_of_its_own(ctxctl: Any, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "Which functions are slow?"}]
    for n in range(30):
        lines += [{"role": "assistant", "content": f"f{n} " * 200}, {"role": "user", "content": f"and f{n + 1}?"}]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--to", "2000", "--window", "128k", "-s", "tool-results", "-o", "out.jsonl", "--json", "chat.jsonl")
    found = ctxctl("compact", *arguments).result()
    assert found["evicted"]
    assert [r["type"] for r in records(tmp_path / TRAIL)] == ["compaction", "eviction"]
    data = records(tmp_path / TRAIL)[1]["data"]
    assert data["count"] == len(found["evicted"])
    assert data["tokens"] == sum(e["tokens"] for e in found["evicted"])
    assert ctxctl("audit", "verify").code == 0


def test_what_changes_nothing_is_not_recorded(ctxctl: Any, compacted: Any, tmp_path: Path) -> None:
    compacted("--no-audit")
    assert ctxctl("compact", "--to", "22k", "--dry-run", "s.jsonl").code == 0
    assert ctxctl("compact", "--to", "10k", "--dry-run", "s.jsonl").code == 5
    assert ctxctl("compact", "--to", "10k", "-o", "small.jsonl", "--no-audit", "s.jsonl").code == 5
    assert ctxctl("compact", "--to", "90k", "-o", "same.jsonl", "s.jsonl").code == 0
    assert not (tmp_path / TRAIL).exists()


def test_a_target_that_can_t_be_met_is_a_refusal(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    done = ctxctl("compact", "--to", "100", "-o", "small.jsonl", "--json", "s.jsonl")
    assert done.code == 5 and not (tmp_path / "small.jsonl").exists()
    found = done.result()
    assert found["written"] == [TRAIL]
    (record,) = records(tmp_path / TRAIL)
    data = record["data"]
    assert (record["type"], record["turn"] is None) == ("budget_refusal", False) and record["transcript"]
    assert (data["by"], data["target_tokens"], data["source"]) == ("target", 100, str(tmp_path / "s.jsonl"))
    assert (data["before_tokens"], data["after_tokens"]) == (found["before_tokens"], found["after_tokens"])
    assert data["floor_tokens"] == sum(found["floor"]["causes"].values()) and data["causes"]
    for more in (("--in-place", "--force"), ("-o", "-")):
        assert ctxctl("compact", "--to", "100", *more, "s.jsonl").code == 5
    assert [r["data"]["in_place"] for r in records(tmp_path / TRAIL)] == [False, True, False]
    assert ctxctl("audit", "verify").code == 0


def test_a_contract_that_does_not_hold_is_a_refusal(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    (tmp_path / ".ctxctl.yaml").write_text("contract:\n  validators:\n    - {name: never, command: 'false'}\n")
    done = ctxctl("compact", "--to", "22k", "-o", "out.jsonl", "--json", "s.jsonl")
    assert done.code == 1 and not (tmp_path / "out.jsonl").exists(), done.err
    (record,) = records(tmp_path / TRAIL)
    assert (record["type"], record["data"]["by"]) == ("budget_refusal", "contract")
    assert record["data"]["broken"] == ["validator never"] and TRAIL in done.result()["written"]


def test_a_summary_that_fails_is_a_refusal(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    llm = ("--llm", "false", "--on-llm-failure", "fail", "-s", "conversation")
    done = ctxctl("compact", "--to", "22k", "-o", "out.jsonl", *llm, "s.jsonl")
    assert (done.code, done.out) == (5, ""), done.err
    (record,) = records(tmp_path / TRAIL)
    assert (record["type"], record["data"]["by"]) == ("budget_refusal", "summary_failed")
    assert record["data"]["why"] and record["data"]["floor_tokens"] is None


def test_it_goes_where_the_state_is(ctxctl: Any, compacted: Any, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("cross_window:\n  audit_file: trail.jsonl\n")
    found = compacted("--state-dir", "state")
    assert found["written"][-1] == "state/trail.jsonl" and not (tmp_path / TRAIL).exists()
    for arguments in (("--state-dir", "state"), ("state",), ("state/trail.jsonl",)):
        done = ctxctl("audit", "verify", "--json", *arguments)
        assert done.code == 0 and done.result()["records"] == 1
    assert ctxctl("audit", "verify").code == 6


def test_in_place_and_stdout_are_recorded_too(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    (tmp_path / "s.jsonl").chmod(0o600)
    done = ctxctl("compact", "--to", "22k", "-o", "-", "s.jsonl")
    assert done.code == 0 and done.out
    assert ctxctl("compact", "--to", "22k", "--in-place", "--force", "s.jsonl").code == 0
    one, two = records(tmp_path / TRAIL)
    assert (one["data"]["output"], one["data"]["output_sha256"], one["data"]["in_place"]) == ("-", None, False)
    assert two["data"]["in_place"] is True and two["data"]["backup"] == str(tmp_path / "s.jsonl.bak")
    assert (tmp_path / TRAIL).stat().st_mode & 0o077 == 0


def test_a_trail_that_can_t_be_written_stops_it_beforehand(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    for held in (b"# notes\n", None):
        shutil.rmtree(tmp_path / TRAIL, ignore_errors=True)
        if held is None:
            (tmp_path / TRAIL).unlink()
            (tmp_path / TRAIL).mkdir()
        else:
            (tmp_path / TRAIL).write_bytes(held)
        done = ctxctl("compact", "--to", "22k", "-o", "out.jsonl", "s.jsonl")
        assert (done.code, done.out) == (3, "") and done.err.startswith(f"error: {TRAIL}: ")
        assert "--no-audit" in done.err
        assert sorted(p.name for p in tmp_path.iterdir()) == [".git", TRAIL, "s.jsonl"]
    done = ctxctl("compact", "--to", "22k", "-o", "out.jsonl", "--no-audit", "s.jsonl")
    assert done.code == 0 and (tmp_path / "out.jsonl").exists()


def test_a_trail_that_fails_in_the_end_is_said_and_the_output_stays(ctxctl: Any, samples: Path, tmp_path: Path) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a folder in which nobody can write")
    shutil.copy(samples / SESSION, tmp_path / "s.jsonl")
    done = ctxctl("compact", "--to", "22k", "-o", "out.jsonl", "--state-dir", "/proc", "-q", "s.jsonl")
    assert (tmp_path / "out.jsonl").exists() == (done.code == 0)
    said = "this compaction is not in the audit trail" if done.code == 0 else "can't be written"
    assert said in done.err and "/proc/agent_audit.jsonl" in done.err


# show


@pytest.fixture
def trail(tmp_path: Path, ctxctl: Any) -> Path:
    """30 records of two types, a minute apart, one of them with signs for a terminal."""
    from ctxctl.state.audit import Event, append

    path = tmp_path / TRAIL
    for n in range(30):
        type_ = "save" if n % 3 else "resume"
        append(path, [Event(type_, {"n": n, "by": "a\x1b[31m\nb"}, n, "s1")], now=f"2026-11-30T10:{n:02}:00+00:00")
    return path


def test_show(ctxctl: Any, trail: Path) -> None:
    done = ctxctl("audit", "show")
    assert (done.code, done.err) == (0, "") and "30 records" in done.out and "--last N shows more" in done.out
    assert "n 29\n" in done.out and "n 10\n" in done.out and "n 9\n" not in done.out and "\x1b" not in done.out
    assert ctxctl("audit", "show", "--last", "0").out.count("2026-11-30T10") == 30
    assert ctxctl("audit", "show", "--last", "2").out.count("2026-11-30T10") == 2


def test_show_what_was_asked_for(ctxctl: Any, trail: Path) -> None:
    def shown(*arguments: str) -> list[int]:
        return [r["data"]["n"] for r in ctxctl("audit", "show", "--json", *arguments).result()["records"]]

    assert shown() == list(range(30))
    assert shown("--type", "resume") == list(range(0, 30, 3))
    assert shown("--type", "resume,save", "--last", "3") == [27, 28, 29]
    assert shown("--since", "2026-11-30T10:27:00Z") == [27, 28, 29] == shown("--since", "2026-11-30T12:27+02:00")
    assert shown("--since", "2026-11-30", "--type", "save")[:2] == [1, 2]
    for arguments in (("--since", "2036-01-01"), ("--type", "steering")):
        done = ctxctl("audit", "show", *arguments)
        assert (done.code, done.out) == (6, "") and "no record fits" in done.err
    assert ctxctl("audit", "show", "--since", "1h").code in (0, 6)


def test_show_in_other_forms(ctxctl: Any, trail: Path) -> None:
    lines = ctxctl("audit", "show", "--output-format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == records(trail)
    rows = list(csv.DictReader(io.StringIO(ctxctl("audit", "show", "--output-format", "csv").out)))
    assert [json.loads(row["data"])["n"] for row in rows] == list(range(30))
    assert rows[3]["type"] == "resume" and rows[3]["seq"] == "4" and len(rows[3]["hash"]) == 64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--type", "evictions"), "did you mean 'eviction'"),
        (("--since", "yesterday"), "is no time"),
        (("--since", "99999999999d"), "is no time"),
        (("--json", "--output-format", "csv"), "exclude each other"),
        (("--last", "-1"), "--last"),
        (("x.jsonl", "--state-dir", "."), "exclude each other"),
    ],
)
def test_show_wrongly(ctxctl: Any, trail: Path, arguments: tuple[str, ...], said: str) -> None:
    done = ctxctl("audit", "show", *arguments)
    assert (done.code, done.out) == (2, "") and said in done.err


# verify


def test_verify(ctxctl: Any, trail: Path) -> None:
    head = records(trail)[-1]["hash"]
    done = ctxctl("audit", "verify")
    assert (done.code, done.err) == (0, "") and "intact" in done.out and f"30:{head}" in done.out
    assert ctxctl("audit", "verify", "--anchor").out == f"30:{head}\n"
    found = ctxctl("audit", "verify", "--json").result()
    assert found == {
        "path": TRAIL,
        "intact": True,
        "records": 30,
        "head": {"seq": 30, "hash": head},
        "anchor": f"30:{head}",
        "broken": [],
        "faults": 0,
        "torn": [],
    }


def test_verify_names_the_first_broken_record(ctxctl: Any, trail: Path) -> None:
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"n":4', b'"n":5'), *lines[6:]]))
    done = ctxctl("audit", "verify")
    assert done.code == 1 and "broken" in done.out and "record 6" in done.out
    assert done.err.startswith(f"failed: {TRAIL}:5: record 5 was changed: ") and done.err.count("\n") == 1
    found = ctxctl("audit", "verify", "--json")
    assert found.code == 1
    assert [(b["line"], b["seq"]) for b in found.result()["broken"]] == [(5, 5), (6, 6)]
    anchor = ctxctl("audit", "verify", "--anchor")
    assert (anchor.code, anchor.out) == (1, "") and "record 5" in anchor.err


def test_verify_against_an_anchor(ctxctl: Any, trail: Path) -> None:
    kept = ctxctl("audit", "verify", "--anchor").out
    assert ctxctl("audit", "verify", "--expect", kept).code == 0
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:-1]))
    assert ctxctl("audit", "verify").code == 0
    done = ctxctl("audit", "verify", "--expect", kept)
    assert done.code == 1 and "its end was cut off" in done.err
    assert ctxctl("audit", "verify", "--anchor", "--expect", kept).out == ""
    for wrong in ("30", "30:xyz", ""):
        done = ctxctl("audit", "verify", "--expect", wrong)
        assert (done.code, done.out) == (2, "") and "is no anchor" in done.err
    done = ctxctl("audit", "verify", "--expect", "3:" + "a" * 64, "--expect", "3:" + "b" * 64)
    assert done.code == 2 and "two hashes" in done.err
    assert ctxctl("audit", "verify", "--json", "--anchor").code == 2


def test_verify_tells_a_torn_end(ctxctl: Any, trail: Path) -> None:
    trail.write_bytes(trail.read_bytes()[:-20])
    done = ctxctl("audit", "verify")
    assert done.code == 0 and "half a line" in done.out
    done = ctxctl("audit", "verify", "--anchor")
    assert done.code == 0 and done.out.startswith("29:") and done.err.startswith(f"warning: {TRAIL}:30: half a line")


def test_nothing_to_verify(ctxctl: Any, tmp_path: Path) -> None:
    for command in ("show", "verify"):
        done = ctxctl("audit", command)
        assert (done.code, done.out) == (6, "") and "no audit trail" in done.err and "hint: " in done.err
        (tmp_path / "empty.jsonl").touch()
        assert ctxctl("audit", command, "empty.jsonl").code == 6
    error = json.loads(ctxctl("audit", "verify", "--json").err)["error"]
    assert (error["code"], error["path"]) == ("nothing_found", TRAIL)


def test_a_transcript_is_no_trail(ctxctl: Any, samples: Path) -> None:
    done = ctxctl("audit", "verify", samples / SESSION)
    assert done.code == 1 and ":1: the line is no record" in done.err


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
@pytest.mark.parametrize("last", [(), ("--last", "7"), ("--last", "0")])
def test_forms_of_many_records(ctxctl: Any, tmp_path: Path, form: str, last: tuple[str, ...]) -> None:
    """More than are written at once, so that the pieces must fit together."""
    from ctxctl.state.audit import Event, append

    events = [Event("save", {"n": n, "t": 'a "b",\nc'}) for n in range(2500)]
    append(tmp_path / TRAIL, events, now="2026-11-30T10:00:00Z")
    stored = records(tmp_path / TRAIL)
    wanted = stored[-7:] if "7" in last else stored
    done = ctxctl("audit", "show", "--output-format", form, *last)
    assert (done.code, done.err) == (0, "")
    if form == "json":
        result = done.result()
        assert result["records"] == wanted
        assert (result["found"], result["shown"], result["path"]) == (2500, len(wanted), TRAIL)
        assert set(done.json()) == {"schema", "ctxctl", "settings", "result"}
    elif form == "jsonl":
        assert [json.loads(line) for line in done.out.splitlines()] == wanted
    else:
        rows = list(csv.DictReader(io.StringIO(done.out)))
        assert [row["hash"] for row in rows] == [record["hash"] for record in wanted]
        assert [json.loads(row["data"]) for row in rows] == [record["data"] for record in wanted]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status")
@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_a_long_trail_does_not_lie_in_memory(tmp_path: Path, form: str) -> None:
    """Its memory does not grow with the trail: 40,000 records would take about 60 MB."""
    from ctxctl.state.audit import Event, append

    peaks = []
    for number in (1_000, 40_000):
        path = tmp_path / f"{number}.jsonl"
        append(path, [Event("save", {"n": n}) for n in range(number)], now="2026-11-30T10:00:00Z")
        code = (
            "import sys; from ctxctl.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
            "print(peak.split()[1], file=sys.stderr)"
        )
        words = [sys.executable, "-c", code, "audit", "show", "--output-format", form, str(path)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60)
        assert len(done.stdout) > 150 * number
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] - peaks[0] < 20_000


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link to a pipe"])
def test_what_is_no_plain_file_is_refused_at_once(ctxctl: Any, samples: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / TRAIL
    odd(path, kind)
    commands = (
        ("audit", "show"),
        ("audit", "verify"),
        ("compact", "--to", "22k", "-o", "out.jsonl", str(samples / SESSION)),
    )
    for words in commands:
        done = ctxctl(*words)
        assert (done.code, done.out) == (3, ""), (words, done.err)
        assert TRAIL in done.err and "Traceback" not in done.err
    assert not (tmp_path / "out.jsonl").exists()


def odd(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(os.path.relpath(path))
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        os.mkfifo(path.with_name("pipe"))
        path.symlink_to("pipe")


def test_no_trail_says_what_begins_one(ctxctl: Any) -> None:
    done = ctxctl("audit", "verify")
    assert done.code == 6 and all(name in done.err for name in ("checkpoint", "resume", "compact"))
