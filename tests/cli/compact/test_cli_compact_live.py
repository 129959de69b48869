"""Sessions that are still written to, full disks and readers that go away: nothing is lost, nothing is left over."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != ".git")


def test_a_session_that_another_process_writes_to(compact: Any, session: Any, folder: Path, snapshot: Any) -> None:
    path = session()
    hold = "import sys,time; f=open(sys.argv[1],'ab'); print(1,flush=True); time.sleep(60)"
    writer = subprocess.Popen([sys.executable, "-c", hold, str(path)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None and writer.stdout.readline()
        before = snapshot()
        for options in (("--in-place",), ("-o", "out.jsonl"), ("-o", "-")):
            done = compact("--to", "30%", *options, path)
            assert (done.code, done.out) == (3, "")
            assert f"another process is writing to it ({writer.pid} " in done.err and "--force" in done.err
            assert snapshot() == before
        assert compact("--to", "30%", "--dry-run", path).code == 0
        assert compact("--to", "30%", "--force", "-o", "out.jsonl", path).code == 0
    finally:
        writer.kill()
        writer.wait()
    assert compact("--to", "30%", "-o", "out2.jsonl", path).code == 0


def test_a_reader_does_not_matter(compact: Any, session: Any) -> None:
    path = session()
    with path.open("rb"):
        assert compact("--to", "30%", "--in-place", path).code == 0


def test_a_session_that_grows(compact: Any, session: Any, folder: Path) -> None:
    """Each line is written by a process that opens and closes the file."""
    path = session()
    line = path.read_bytes().splitlines(keepends=True)[-1]
    stop = threading.Event()

    def grow() -> None:
        while not stop.is_set():
            with path.open("ab") as file:
                file.write(line)
            time.sleep(0.02)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        time.sleep(0.05)
        done = compact("--to", "30%", "-o", "out.jsonl", path)
    finally:
        stop.set()
        thread.join()
    assert (done.code, done.out) == (3, "") and "its agent is still running" in done.err
    assert names(folder) == ["s.jsonl"]


def test_a_session_that_changes_while_a_model_writes(compact: Any, session: Any, folder: Path) -> None:
    """Between the reading and the writing: nothing of what came in between may be lost."""
    path = session()
    slow = f"cat >/dev/null; echo '{{}}' >> {path}; echo short"
    done = compact("--to", "30%", "-s", "conversation", "--llm", slow, "--in-place", path)
    assert done.code == 3 and "changed while it was read" in done.err
    assert names(folder) == ["s.jsonl"] and path.read_bytes().endswith(b"{}\n")


LIMIT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
from ctxctl.cli.main import main
sys.argv = ["ctxctl", *{arguments!r}]
sys.exit(main())
"""


@pytest.mark.parametrize("way", [("--in-place",), ("-o", "out.jsonl"), ("--force", "-o", "old.jsonl"), ("-o", "o.gz")])
@pytest.mark.parametrize("size", [0, 2_000, 30_000])
def test_a_disk_that_is_full(way: Any, size: int, session: Any, folder: Path, snapshot: Any) -> None:
    path = session("s.jsonl", rounds=30)
    (folder / "old.jsonl").write_bytes(b"precious")
    before = snapshot()
    code = LIMIT.format(size=size, arguments=["compact", "--to", "80%", *way, str(path)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert snapshot() == before


def test_a_reader_that_goes_away(session: Any, folder: Path) -> None:
    path = session("s.jsonl", rounds=60)
    command = f"{sys.executable} -m ctxctl compact --to 90% -o - {path} | head -c 1; echo ${{PIPESTATUS[0]}} >&2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.stdout == "{" and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] in ("0", "141")
    assert set(names(folder)) <= {"s.jsonl", "agent_audit.jsonl"}
