"""Several writers of one state at the same time: nothing that one of them reported as saved is lost."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from state_runs import CHECKPOINT, apart, environment, state_of, texts, within
from synthetic_task import SyntheticTask

from ctxctl.errors import ExitCode


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [*CHECKPOINT, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment(folder.parent), stdout=pipe, stderr=pipe)


def watched(folder: Path, runs: list[subprocess.Popen[bytes]]) -> int:
    """Read both files until all runs have ended; how often. Each read finds a whole file."""
    reads = 0
    version = 0
    while any(run.poll() is None for run in runs):
        try:
            state = json.loads((folder / "agent_state.json").read_bytes())
        except FileNotFoundError:
            continue
        assert state["state_version"] >= version, "versions only grow"
        version = state["state_version"]
        try:
            progress = (folder / "agent_progress.md").read_text()
        except FileNotFoundError:
            continue
        assert progress.startswith("# Agent Progress - Window ") and "\n## Open Issues\n" in progress
        reads += 1
    return reads


def test_many_that_add(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    runs = [started(folder, "--add-todo", f"n{number}", "--json") for number in range(8)]
    assert watched(folder, runs) > 5
    outs = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0] * 8, [err for _, err in outs]
    state = state_of(folder)
    assert sorted(texts(state)) == sorted(f"n{number}" for number in range(8))
    assert state["state_version"] == 8
    versions = sorted(json.loads(out)["result"]["state_version"] for out, _ in outs)
    assert versions == list(range(1, 9)), "each run had a version of its own"
    assert len({s["id"] for s in state["remaining_subtasks"]}) == 8
    for number, name in enumerate(sorted(texts(state)), 1):
        assert name in (folder / "agent_progress.md").read_text(), number


def test_a_session_and_hands_at_once(tmp_path: Path) -> None:
    """A checkpoint of a session and edits by hand in between lose nothing of each other."""
    folder = tmp_path / "w"
    folder.mkdir()
    task = SyntheticTask(folder, 3, count=40, windows=4, agents=("todos",))
    path = task.open(None)
    for _ in task.work():
        pass
    runs = [started(folder, "--add-todo", f"n{n}") if n % 2 else started(folder, str(path)) for n in range(6)]
    watched(folder, runs)
    assert [run.wait() for run in runs] == [0] * 6, [run.communicate()[1] for run in runs]
    assert sorted(texts(state_of(folder))) == sorted([*task.truth.items, "n1", "n3", "n5"])


def test_one_version_has_one_writer(tmp_path: Path) -> None:
    within(tmp_path, "checkpoint", "--add-todo", "first").ok()
    runs = [started(tmp_path, "--if-version", "1", "--add-todo", f"n{number}") for number in range(5)]
    errors = [run.communicate()[1].decode() for run in runs]
    statuses = [run.returncode for run in runs]
    assert sorted(statuses) == [0, 1, 1, 1, 1], errors
    winner = statuses.index(0)
    assert texts(state_of(tmp_path)) == ["first", f"n{winner}"]
    assert all("version 2" in error and "hint: " in error for n, error in enumerate(errors) if n != winner), errors


def test_the_version_that_a_writer_expects(tmp_path: Path) -> None:
    done = within(tmp_path, "checkpoint", "--if-version", "1", "--add-todo", "x")
    assert done.status == ExitCode.FINDING and not list(tmp_path.iterdir()), done.err
    within(tmp_path, "checkpoint", "--if-version", "0", "--add-todo", "one").ok()
    for wrong in ("0", "2", "7"):
        before = (tmp_path / "agent_state.json").read_bytes()
        done = within(tmp_path, "checkpoint", "--if-version", wrong, "--add-todo", "x")
        assert done.status == ExitCode.FINDING and "agent_state.json" in done.err
        assert (tmp_path / "agent_state.json").read_bytes() == before
    within(tmp_path, "checkpoint", "--if-version", "1", "--add-todo", "two").ok()
    assert texts(state_of(tmp_path)) == ["one", "two"]


def test_a_writer_that_does_not_finish(tmp_path: Path) -> None:
    """The wait is bounded, the error says so, and a killed holder holds nothing."""
    within(tmp_path, "checkpoint", "--add-todo", "one").ok()
    (tmp_path / ".ctxctl.yaml").write_text("cross_window:\n  lock_wait: 0.2\n")
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        before = (tmp_path / "agent_state.json").read_bytes()
        begin = time.monotonic()
        done = apart(tmp_path, "checkpoint", "--add-todo", "two")
        assert done.status == ExitCode.FINDING and "lock_wait" in done.err, done.err
        assert 0.2 <= time.monotonic() - begin < 5
        assert (tmp_path / "agent_state.json").read_bytes() == before
        assert apart(tmp_path, "resume").status == 0, "who only reads need not wait"
    finally:
        os.close(handle)
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, os, time; h = os.open('.', 0); fcntl.flock(h, 2); print(flush=True)\n"
         "time.sleep(60)"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    assert apart(tmp_path, "checkpoint", "--add-todo", "two").status == ExitCode.FINDING
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    apart(tmp_path, "checkpoint", "--add-todo", "two").ok()
    assert texts(state_of(tmp_path)) == ["one", "two"]


@pytest.mark.slow
def test_two_folders_with_links_to_one_state(tmp_path: Path) -> None:
    """Work trees of one repository that share a state: the lock is that of the state, not that of the link."""
    shared = tmp_path / "shared"
    shared.mkdir()
    trees = [tmp_path / "a", tmp_path / "b"]
    for tree in trees:
        tree.mkdir()
        for name in ("agent_state.json", "agent_progress.md"):
            (tree / name).symlink_to(shared / name)
    runs = [started(trees[n % 2], "--add-todo", f"n{n}") for n in range(12)]
    assert [run.wait() for run in runs] == [0] * 12, [run.communicate()[1] for run in runs]
    assert sorted(texts(state_of(shared))) == sorted(f"n{n}" for n in range(12))


@pytest.mark.slow
def test_many_that_add_again_and_again(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    for wave in range(5):
        runs = [started(folder, "--add-todo", f"n{wave}.{number}") for number in range(20)]
        watched(folder, runs)
        assert [run.wait() for run in runs] == [0] * 20, [run.communicate()[1] for run in runs]
    state = state_of(folder)
    assert sorted(texts(state)) == sorted(f"n{wave}.{number}" for wave in range(5) for number in range(20))
    assert state["state_version"] == 100
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
