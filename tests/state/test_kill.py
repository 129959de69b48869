"""Processes killed while they write the state: what is left is the old state or the new one, and nothing else.

A nursery forks writers that add subtask after subtask, as the command line does, and kills each at a random moment. A
writer tells before each run what it begins and after it what is done. What is checked of the files is read by the
standard library alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from state_runs import apart, environment, state_of, texts, within

NURSERY = r'''
import glob, json, os, random, signal, sys, time
from pathlib import Path
from ctxctl.cli.app import run

folder, seed, points = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
os.chdir(folder)
sink = os.open(os.devnull, os.O_WRONLY)


def one(name):
    return run(["checkpoint", "-q", "--add-todo", name])


def read():
    """(version, names) of the state, (version?, names) of the progress file; None where there is none."""
    try:
        data = Path("agent_state.json").read_bytes()
    except FileNotFoundError:
        state = None
    else:
        value = json.loads(data)
        rest = [s["text"] for s in value["remaining_subtasks"]]
        state = (value["state_version"], [t for t in rest if t.startswith("k")])
    try:
        lines = Path("agent_progress.md").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return state, None
    assert lines[0].startswith("# Agent Progress - Window "), lines[:1]
    assert sum(line.startswith("## Open Issues") for line in lines) == 1, "a torn progress file"
    return state, [line[6:].split()[0] for line in lines if line.startswith("- [ ] k")]


stdout = os.dup(1)
os.dup2(sink, 1)
assert one("first") == 0  # what writers share is loaded now
begin = time.monotonic()
assert one("second") == 0
longest = 3 * (time.monotonic() - begin)
os.dup2(stdout, 1)
killed_in_work, left = 0, 0
done = 0  # subtasks that surely are in the state
first = read()[0][0]
for point in range(points):
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(sink, 1)
        number = done
        while True:
            number += 1
            os.write(tell, b"b")
            if one(f"k{number}") != 0:
                os._exit(3)
            os.write(tell, b"e")
    os.close(tell)
    os.read(ready, 1)
    time.sleep(chance.random() * longest)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"the writer ended by itself with {status}"
    said = b""
    while part := os.read(ready, 65536):
        said += part
    os.close(ready)
    finished = done + said.count(b"e")
    killed_in_work += said.count(b"b") + 1 > said.count(b"e")
    state, progress = read()
    names = state[1] if state else []
    assert names == [f"k{n}" for n in range(1, len(names) + 1)], names[-3:]
    assert finished <= len(names) <= finished + 1, (finished, len(names))
    assert len(names) == (state[0] - first if state else 0), "a version for each write"
    shown = progress or []
    assert shown == names[: len(shown)] and len(shown) >= len(names) - 1, (len(shown), len(names))
    done = len(names)
    left += len(glob.glob(".*.tmp"))
print(json.dumps({"points": points, "in_work": killed_in_work, "done": done, "left": left}))
'''


def nursery(folder: Path, seed: int, points: int) -> Any:
    """Kill so many writers, each within three writes; what came of it."""
    command = [sys.executable, "-c", NURSERY, str(folder), str(seed), str(points)]
    done = subprocess.run(command, capture_output=True, env=environment(folder.parent), timeout=540)
    assert done.returncode == 0, done.stderr.decode()[-900:]
    return json.loads(done.stdout.splitlines()[-1])


def settled(folder: Path, done: int, other: int = 0) -> None:
    """The next checkpoint works at once, and leaves the two files and the audit trail and nothing else."""
    after = apart(folder, "checkpoint", "--add-todo", "afterwards").ok()
    assert "lock" not in after.err
    state = state_of(folder)
    assert len(texts(state)) == done + 3 + other and texts(state)[-1] == "afterwards"
    left = {path.name for path in folder.iterdir()}
    assert {"agent_state.json", "agent_progress.md"} <= left
    assert left <= {"agent_state.json", "agent_progress.md", "agent_audit.jsonl"}, left


def filled(folder: Path, count: int) -> None:
    """A large state, so that writing it takes a while."""
    rest = [f"subtask {number} of many " + "with a long text " * 12 for number in range(count)]
    (folder / "agent_state.json").write_text(json.dumps({"task_goal": "go on", "remaining_subtasks": rest}))


def test_a_writer_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    told = nursery(folder, 1, 25)
    settled(folder, told["done"])


@pytest.mark.slow
def test_two_hundred_writers_that_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    told = nursery(folder, 2, 200)
    assert told["in_work"] > 150 and told["done"] > 100, told
    settled(folder, told["done"])


@pytest.mark.slow
def test_writers_of_a_large_state_that_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    filled(folder, 6000)
    told = nursery(folder, 3, 40)
    assert told["in_work"] > 30 and told["done"] > 20, told
    settled(folder, told["done"], 6000)


def test_the_trail_holds_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    nursery(folder, 4, 12)
    within(folder, "checkpoint", "--add-todo", "afterwards").ok()
    if not (folder / "agent_audit.jsonl").exists():
        pytest.fail("no audit trail of the checkpoints")
    within(folder, "audit", "verify").ok()


def test_what_others_left_stays(tmp_path: Path) -> None:
    """Only a writer's own temporary files are taken away."""
    (tmp_path / ".agent_state.json.abc12345.tmp").write_text("{")
    (tmp_path / ".agent_progress.md.abc12345.tmp").write_text("#")
    for name in ("agent_state.json.tmp", ".other.json.abc.tmp", ".agent_state.json.swp", "agent_state.json.bak"):
        (tmp_path / name).write_text("mine")
    within(tmp_path, "checkpoint", "--add-todo", "one").ok()
    names = {path.name for path in tmp_path.iterdir()} - {"agent_state.json", "agent_progress.md", "agent_audit.jsonl"}
    assert names == {"agent_state.json.tmp", ".other.json.abc.tmp", ".agent_state.json.swp", "agent_state.json.bak"}
