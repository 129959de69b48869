"""What the handed cases on chains, files, secrets and damage say, held to `ctxctl compact`."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from case_messages import CASES, case, lines, linked, messages_of, said, valid

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases) are not here")


# chain (compact side)


def everything(number: str, within: Any, folder: Path, *options: str) -> Any:
    """Compacted at every sensible size: a list of (result, records)."""
    source, out = case(number), folder / "out.jsonl"
    size = within("compact", "--to", "100%", "--dry-run", "--json", source).result["before_tokens"]
    found = []
    for budget in [*range(1, size, max(1, size // 16)), size - 1]:
        done = within("compact", "--to", str(budget), "--force", "--no-recall", "--json", "-o", out, *options, source)
        assert done.status in (0, 5), done.err
        if done.status == 0:
            records = lines(out)
            linked(records)
            valid([r["message"] for r in said(records)])
            found.append((done.result, records))
            out.unlink()
    assert found
    return found


def test_056_the_gap_is_bridged(within: Any, folder: Path) -> None:
    done = within("compact", "--to", "100%", "--dry-run", "--json", case("056"))
    assert done.status == 0 and "dangling_parent" in done.err
    for result, records in everything("056", within, folder):
        assert said(records)[-1]["uuid"] == lines(case("056"))[-1]["uuid"] or "summary" in json.dumps(records)
        assert result["after_tokens"] < result["before_tokens"]


@pytest.mark.parametrize("number", ["058", "059", "064"])
def test_chains(number: str, within: Any, folder: Path) -> None:
    started = time.monotonic()
    everything(number, within, folder)
    assert time.monotonic() - started < 30


def test_061_the_last_metadata_records_stay(within: Any, folder: Path) -> None:
    before = lines(case("061"))
    for _, records in everything("061", within, folder):
        for kind in ("custom-title", "permission-mode", "last-prompt"):
            newest = [r for r in before if r["type"] == kind][-1]
            kept = [r for r in records if r["type"] == kind]
            ignored = ("sessionId", "leafUuid")
            assert {k: v for k, v in kept[-1].items() if k not in ignored} == {
                k: v for k, v in newest.items() if k not in ignored
            }
        assert "early" not in json.dumps([r.get("message") for r in said(records)])


def test_062_what_was_compacted_stays_away(within: Any, folder: Path) -> None:
    result = within("compact", "--to", "100%", "--dry-run", "--json", case("062")).result
    assert result["before_tokens"] < 150
    for _, records in everything("062", within, folder):
        assert "ALPHAOLD" not in json.dumps(records)


def test_066_the_other_branch_stays_away(within: Any, folder: Path) -> None:
    for _, records in everything("066", within, folder):
        assert "branch A answer" not in json.dumps(records)


# io


def test_069_links_and_modes(within: Any, folder: Path) -> None:
    subprocess.run(["sh", str(case("069", "setup.sh")), str(folder)], check=True, capture_output=True)
    link, real = folder / "link.jsonl", folder / "real" / "t.jsonl"
    os.utime(real, (1_700_000_000, 1_700_000_000))
    original = real.read_bytes()
    size = within("compact", "--to", "100%", "--dry-run", "--json", link).result["before_tokens"]
    old = os.umask(0o022)
    try:
        for budget in (size // 4, size // 3, size // 2, size * 3 // 4):
            done = within("compact", "--to", str(budget), "--in-place", "--json", link)
            if done.status == 0:
                break
        assert within("compact", "--to", str(size), "-o", folder / "copy.jsonl", link).status == 0
    finally:
        os.umask(old)
    assert done.status == 0 and done.result["changed"] is True, done.err
    assert link.is_symlink() and os.readlink(link) == "real/t.jsonl" and real.read_bytes() != original
    for path in (*(folder / "real").iterdir(), folder / "copy.jsonl"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert (folder / "real" / "t.jsonl.bak").read_bytes() == original


@pytest.mark.parametrize("name", ["now-empty", "now-array", "now-cut"])
def test_070_a_bad_read_replaces_nothing(name: str, within: Any, folder: Path) -> None:
    source, out = folder / "s.jsonl", folder / "out.jsonl"
    shutil.copy(case("070", "good.jsonl"), source)
    os.utime(source, (1_700_000_000, 1_700_000_000))
    assert within("compact", "--to", "100%", "-o", out, source).status == 0
    good = out.read_bytes()
    shutil.copy(case("070", f"{name}.jsonl"), source)
    os.utime(source, (1_700_000_000, 1_700_000_000))
    bad = source.read_bytes()
    for options in (("-o", out), ("--force", "-o", out), ("--in-place",), ("--force", "--in-place")):
        done = within("compact", "--to", "50%", *options, source)
        assert done.status in (2, 3, 6) and done.out == b""
        assert out.read_bytes() == good and source.read_bytes() == bad
    assert sorted(p.name for p in folder.iterdir()) == ["out.jsonl", "s.jsonl"]


@pytest.mark.parametrize("size", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_072_a_huge_file(size: int, folder: Path) -> None:
    """14 messages between megabytes of other records: found, and compacted in little memory."""
    big, out = folder / "big.jsonl", folder / "out.jsonl"
    subprocess.run(
        [sys.executable, str(case("072", "gen_big.py")), str(big), str(size)], check=True, capture_output=True
    )
    os.utime(big, (1_700_000_000, 1_700_000_000))
    command = [sys.executable, "-m", "ctxctl", "compact", "--json", "--to", "97%", "-o", str(out), str(big)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, cwd=folder, timeout=100)
    assert done.returncode == 0, done.stderr[-500:]
    assert time.monotonic() - started < 60
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak < 400 * 1024 and (peak > before or before < 400 * 1024)
    assert json.loads(done.stdout)["result"]["target_met"] is True
    records = [json.loads(line) for line in out.read_bytes().splitlines()]
    rows = said(records)
    assert rows[-1]["message"]["content"][0]["text"] == "main message 13"
    valid([r["message"] for r in rows])


# security


@pytest.mark.parametrize("options", [("--to", "90%"), ("--to", "60%"), ("-s", "conversation", "--to", "70%")])
def test_079_no_secret_in_what_is_written_new(options: Any, within: Any, folder: Path) -> None:
    secrets = case("079", "secrets.txt").read_text().splitlines()
    secrets = [s for s in secrets if s.strip()]
    out = folder / "out.jsonl"
    done = within("compact", *options, "--json", "--no-recall", "-o", out, case("079"))
    assert done.status in (0, 5), done.err
    for secret in secrets:
        assert secret not in done.out.decode() and secret not in done.err
    if done.status == 0:
        messages = messages_of(out)
        valid(messages)
        for message in messages:
            for block in message["content"] if isinstance(message["content"], list) else [message["content"]]:
                text = json.dumps(block)
                if "[summary]" in text or "[cleared: " in text:
                    assert not any(secret in text for secret in secrets)
        assert done.result["after_tokens"] <= done.result["before_tokens"]


def test_079_without_redaction_it_says_so(within: Any) -> None:
    done = within("compact", "--to", "60%", "--no-redact", "--dry-run", case("079"))
    assert "--no-redact" in done.err


# parse


@pytest.mark.parametrize(("number", "text"), [("001", "final answer"), ("003", "tail answer")])
def test_damage_hides_nothing(number: str, text: str, within: Any, folder: Path) -> None:
    out = folder / "out.jsonl"
    done = within("compact", "--to", "100%", "-o", out, case(number))
    assert done.status == 0 and ":4: " in done.err
    seen = 0
    for budget in range(24, 60):
        done = within("compact", "--to", str(budget), "--force", "--no-recall", "--json", "-o", out, case(number))
        assert done.status in (0, 5) and ":4: " in done.err
        if done.status == 0 and done.result["changed"]:
            seen += 1
            records = lines(out)
            if done.result["target"] >= done.result["before_tokens"] - 1:
                assert text in json.dumps([r.get("message") for r in said(records)])
            valid([r["message"] for r in said(records)])
    assert seen


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_005_lone_surrogates(variables: dict[str, str], ctxctl: Any, folder: Path) -> None:
    out = folder / "out.jsonl"
    size = ctxctl("compact", "--to", "100%", "--dry-run", "--json", case("005")).result["before_tokens"]
    done = ctxctl("compact", "--to", str(size - 1), "--json", "-o", out, case("005"), env=variables)
    assert done.status in (0, 5), done.err
    if done.status == 0:
        valid([r["message"] for r in said(lines(out))])
        assert done.result["normalised"]["surrogates"] + done.result["sanitized"]["surrogates"] <= 2
    kept = ctxctl(
        "compact",
        "--to",
        str(size - 1),
        "--pin",
        "kind=tool_call",
        "--pin",
        "kind=tool_result",
        "--json",
        "--force",
        "-o",
        out,
        case("005"),
        env=variables,
    )
    if kept.status == 0 and kept.result["changed"]:
        lines(out)
        assert kept.result["normalised"]["surrogates"] == 2


def test_007_the_mark_and_the_line_ends(within: Any, folder: Path) -> None:
    out, source = folder / "out.jsonl", case("007")
    task = json.loads(source.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\r\n")[0])["message"]["content"]
    size = within("compact", "--to", "100%", "--dry-run", "--json", source).result["before_tokens"]
    written = 0
    for budget in range(1, size + 1, max(1, size // 12)):
        done = within("compact", "--to", str(budget), "--force", "--no-recall", "--json", "-o", out, source)
        if done.status == 0 and done.result["changed"]:
            written += 1
            records = lines(out)
            assert done.result["normalised"]["bom"] == 1 and done.result["normalised"]["crlf"] >= 1
            assert json.dumps(task)[1:-1] in json.dumps([r.get("message") for r in said(records)])
    assert written
