"""Parsers that others wrote read compacted sessions: ccusage (npm) sums the usage of what was kept, claude-code-log
(PyPI) loads every message. Where one can't be installed or run, SKIPPED is printed."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from real_readers import FIELDS, TRANSCRIPTS, is_answer, objects, paths

HELPER = Path(__file__).resolve().parents[1] / "formats" / "claude_drafts.py"
spec = importlib.util.spec_from_file_location("claude_drafts", HELPER)
assert spec is not None and spec.loader is not None
drafts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drafts)

CCUSAGE = "ccusage@20.0.24"
CODE_LOG = "claude-code-log==1.7.0"
SESSIONS = [p for p in paths("claude-code") if p.suffix == ".jsonl" and p.stat().st_size > 20_000]
WAIT = 180
"""Seconds that an installation may take."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no handed transcripts")]


def skip(why: str) -> NoReturn:
    print(f"SKIPPED: {why}")
    pytest.skip(why)


def run(command: list[str], home: Path, **extra: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "HOME": str(home), **extra}
    return subprocess.run(command, capture_output=True, env=environment, timeout=WAIT, check=False)


@pytest.fixture(scope="module")
def ccusage(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Any]:
    """The totals that ccusage prints for a folder of sessions."""
    home = tmp_path_factory.mktemp("ccusage")
    npx = shutil.which("npx")
    if npx is None:
        skip("npx is not installed")
    try:
        if run([npx, "--yes", CCUSAGE, "--version"], home).returncode:
            skip(f"{CCUSAGE} can't be installed")
    except subprocess.TimeoutExpired:
        skip(f"{CCUSAGE} takes too long to install")

    def totals(folder: Path) -> Any:
        command = [npx, "--yes", CCUSAGE, "claude", "session", "--json", "--offline"]
        done = run(command, home, CLAUDE_CONFIG_DIR=str(folder))
        assert done.returncode == 0, done.stderr[-400:]
        return json.loads(done.stdout)["totals"]

    return totals


@pytest.fixture(scope="module")
def code_log(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Any]:
    """The uuids of the messages that claude-code-log loads from a file."""
    home = tmp_path_factory.mktemp("code-log")
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(home / "lib"), CODE_LOG]
    try:
        if run(command, home).returncode:
            skip(f"{CODE_LOG} can't be installed")
    except subprocess.TimeoutExpired:
        skip(f"{CODE_LOG} takes too long to install")
    script = (
        "import json, sys; from pathlib import Path; from claude_code_log.converter import load_transcript\n"
        "found = load_transcript(Path(sys.argv[1]))\n"
        "json.dump([getattr(m, 'uuid', None) for m in found], open(sys.argv[2], 'w'))"
    )

    def load(path: Path) -> Any:
        out = home / "out.json"
        done = run([sys.executable, "-c", script, str(path), str(out)], home, PYTHONPATH=str(home / "lib"))
        assert done.returncode == 0, done.stderr[-400:]
        return json.loads(out.read_bytes())

    return load


def output(path: Path, folder: Path) -> Path:
    """A random compaction of a session as a file where its agent would look for it."""
    made = drafts.Rewritten(path)
    out = folder / "projects" / "p" / f"{drafts.NEW_ID}.jsonl"
    out.parent.mkdir(parents=True)
    out.write_bytes(made.write(made.outcome(random.Random(1))))
    return out


def usage_of_kept(original: Path, written: Path) -> dict[str, int]:
    """Usage as the original states it on the lines that were kept: per response and field the largest, summed."""
    kept = {record.get("uuid") for _, record in objects(written)}
    calls: dict[Any, dict[str, int]] = {}
    for _, record in objects(original):
        if record.get("uuid") in kept and is_answer(record):
            message = record["message"]
            call = calls.setdefault((message.get("id"), record.get("requestId")), {})
            for name, stated in FIELDS.items():
                call[name] = max(call.get(name, 0), (message.get("usage") or {}).get(stated) or 0)
    return {name: sum(call[name] for call in calls.values()) for name in FIELDS}


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: p.name[:40])
def test_ccusage_reports_the_usage_of_what_was_kept(path: Path, ccusage: Callable[[Path], Any], tmp_path: Path) -> None:
    out = output(path, tmp_path)
    found = ccusage(tmp_path)
    names = {"inputTokens": "input", "outputTokens": "output"}
    names |= {"cacheReadTokens": "cache_read", "cacheCreationTokens": "cache_write"}
    assert {ours: found[theirs] for theirs, ours in names.items()} == usage_of_kept(path, out)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: p.name[:40])
def test_claude_code_log_loads_every_message(path: Path, code_log: Callable[[Path], Any], tmp_path: Path) -> None:
    out = output(path, tmp_path)
    written = [r["uuid"] for _, r in objects(out) if r["type"] in ("user", "assistant")]
    assert [id_ for id_ in code_log(out) if id_ in set(written)] == written
