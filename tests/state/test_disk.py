"""Disks that take no more and folders that take nothing: a clear error, and the old state as it was."""

from __future__ import annotations

import ctypes
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from state_runs import Done, apart, contents, environment, state_of, texts, within

from ctxctl.errors import ExitCode

OVERRIDE = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of <linux/capability.h>: what lets root write where no one may."""
DROP_BOUND = 24
"""PR_CAPBSET_DROP of <linux/prctl.h>."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a state of two subtasks."""
    made = tmp_path / "w"
    made.mkdir()
    within(made, "checkpoint", "--set", "goal=Move it", "--add-todo", "one", "--add-todo", "two").ok()
    return made


def like_anybody() -> None:
    """Give up what root may do beyond others, for the program that is started next."""
    if os.geteuid() == 0:
        for right in OVERRIDE:
            ctypes.CDLL(None).prctl(DROP_BOUND, right, 0, 0, 0)


def limited(size: int) -> Callable[[], None]:
    """No file may grow above so many bytes, as on a disk that is full by then."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def refused(done: Done, named: str) -> None:
    """An error that says which file, with what to do; nothing on stdout."""
    assert done.status == ExitCode.INPUT and done.out == b"", (done.status, done.err)
    assert ("error: " in done.err or '{"error":' in done.err) and named in done.err, done.err


def kept(folder: Path, before: dict[str, bytes]) -> None:
    now = contents(folder)
    assert {name: now.get(name) for name in before} == before
    assert set(now) == set(before), "nothing is left over"


@pytest.mark.parametrize("size", [0, 1, 700, 2000])
def test_a_full_disk(size: int, folder: Path) -> None:
    before = contents(folder)
    done = apart(folder, "checkpoint", "--add-todo", "three " * 600, preexec_fn=limited(size))
    refused(done, "agent_state.json")
    kept(folder, before)
    apart(folder, "checkpoint", "--add-todo", "three").ok()
    assert texts(state_of(folder)) == ["one", "two", "three"]


def test_a_full_disk_and_no_state_yet(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    refused(apart(folder, "checkpoint", "--add-todo", "one", preexec_fn=limited(10)), "agent_state.json")
    assert contents(folder) == {}


def test_room_for_the_state_and_not_for_the_progress(folder: Path) -> None:
    """The state comes first and is whole; the error names the file that is not there."""
    (folder / "agent_progress.md").unlink()
    (folder / "agent_progress.md").mkdir()
    done = apart(folder, "checkpoint", "--add-todo", "three")
    assert done.status == ExitCode.INPUT and "agent_progress.md" in done.err
    assert texts(state_of(folder)) in (["one", "two"], ["one", "two", "three"])
    (folder / "agent_progress.md").rmdir()
    apart(folder, "checkpoint", "--add-todo", "four").ok()
    lines = (folder / "agent_progress.md").read_text().splitlines()
    assert sum(line.startswith("- [ ]") for line in lines) == len(texts(state_of(folder)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, where this process may make one."""
    made = tmp_path / "small"
    made.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(made)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("no right to mount a small file system")
    yield made
    subprocess.run(["umount", str(made)], check=True)


def test_a_small_file_system(small_disk: Path) -> None:
    """Subtasks are added until the disk is full; then the state is the last one that was reported as saved."""
    run = within(small_disk, "checkpoint", "--add-todo", "n0")
    number = 0
    while run.status == 0 and number < 60:
        good = contents(small_disk)
        number += 1
        run = within(small_disk, "checkpoint", "--add-todo", f"n{number} " + "much to do " * 1500)
    refused(run, str(small_disk) if str(small_disk) in run.err else "agent_")
    assert "No space left" in run.err
    now = contents(small_disk)
    assert now["agent_state.json"] == good["agent_state.json"]
    assert [text.split()[0] for text in texts(state_of(small_disk))] == [f"n{n}" for n in range(number)]
    assert not [name for name in now if name.endswith(".tmp")]
    for path in small_disk.glob("agent_audit.jsonl"):
        assert path.read_bytes().endswith(b"\n"), "no torn record"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.parametrize("arguments", [("--add-todo", "three"), ("--done", "s1"), ("--set", "goal=other")], ids=str)
def test_a_folder_that_takes_nothing(arguments: Any, folder: Path) -> None:
    before = contents(folder)
    folder.chmod(0o555)
    try:
        done = apart(folder, "checkpoint", *arguments, preexec_fn=like_anybody)
        if done.status == 0:
            pytest.skip("this process may write everywhere")
        refused(done, str(folder) if str(folder) in done.err else "agent_state.json")
        assert "ermission" in done.err
        kept(folder, before)
        unread = apart(folder, "resume", preexec_fn=like_anybody)
        assert unread.status == 0 and b"[CONTEXT_WINDOW_RESUME]" in unread.out, "a prompt needs no right to write"
    finally:
        folder.chmod(0o755)


def test_a_state_that_may_not_be_read(folder: Path) -> None:
    before = contents(folder)
    (folder / "agent_state.json").chmod(0)
    try:
        done = apart(folder, "checkpoint", "--add-todo", "three", preexec_fn=like_anybody)
    finally:
        (folder / "agent_state.json").chmod(0o644)
    if done.status == 0:
        pytest.skip("this process may read everything")
    refused(done, "agent_state.json")
    kept(folder, before)


def test_a_folder_that_is_not_there(folder: Path) -> None:
    done = apart(folder, "checkpoint", "--add-todo", "x", "--state-dir", "no/such/folder")
    if done.status == 0:  # it may be made, as for other companions
        assert texts(state_of(folder / "no/such/folder")) == ["x"]
    else:
        assert done.status in (ExitCode.USAGE, ExitCode.INPUT) and "no/such/folder" in done.err
    done = apart(folder, "checkpoint", "--add-todo", "x", "--state-dir", "agent_progress.md/deep")
    assert done.status in (ExitCode.USAGE, ExitCode.INPUT) and "agent_progress.md" in done.err


# -- a state file that is none


def test_a_state_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "agent_state.json").mkdir()
    (tmp_path / "agent_state.json" / "mine").write_text("kept")
    for command in (("checkpoint", "--add-todo", "x"), ("resume",)):
        done = within(tmp_path, *command)
        assert done.status == ExitCode.INPUT and "agent_state.json" in done.err and "irectory" in done.err, done.err
    assert contents(tmp_path) == {"agent_state.json/mine": b"kept"}


def test_a_link_stays_a_link(folder: Path, tmp_path: Path) -> None:
    synced = tmp_path / "synced"
    synced.mkdir()
    for name in ("agent_state.json", "agent_progress.md"):
        (folder / name).rename(synced / name)
        (folder / name).symlink_to(synced / name)
    (synced / "agent_state.json").chmod(0o640)
    within(folder, "checkpoint", "--add-todo", "three").ok()
    assert (folder / "agent_state.json").is_symlink() and (folder / "agent_progress.md").is_symlink()
    assert texts(state_of(synced)) == ["one", "two", "three"]
    assert stat.S_IMODE((synced / "agent_state.json").stat().st_mode) == 0o640
    assert "three" in (synced / "agent_progress.md").read_text()
    assert {p.name for p in synced.iterdir()} == {"agent_state.json", "agent_progress.md"}


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    link = tmp_path / "agent_state.json"
    link.symlink_to(tmp_path / "later.json")
    within(tmp_path, "checkpoint", "--add-todo", "one").ok()
    assert link.is_symlink() and texts(state_of(tmp_path)) == ["one"] and (tmp_path / "later.json").is_file()
    link.unlink()
    link.symlink_to(tmp_path / "no" / "folder.json")
    done = within(tmp_path, "checkpoint", "--add-todo", "one")
    assert done.status == ExitCode.INPUT and "agent_state.json" in done.err, done.err
    assert link.is_symlink()


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "agent_state.json").symlink_to(tmp_path / "agent_state.json")
    done = within(tmp_path, "checkpoint", "--add-todo", "one")
    assert done.status == ExitCode.INPUT and "agent_state.json" in done.err, done.err


def test_a_pipe_in_its_place(tmp_path: Path) -> None:
    """Nobody writes into it: reading it would wait for ever."""
    os.mkfifo(tmp_path / "agent_state.json")
    refused(apart(tmp_path, "checkpoint", "--add-todo", "x", "--json"), "agent_state.json")
    assert stat.S_ISFIFO((tmp_path / "agent_state.json").stat().st_mode)


def test_a_link_in_the_place_of_a_temporary_file(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("agent_state.json.tmp", ".agent_state.json.tmp", "agent_state.json~", ".agent_state.json.x.tmp"):
        (folder / name).symlink_to(victim)
    within(folder, "checkpoint", "--add-todo", "three").ok()
    assert victim.read_text() == "mine" and texts(state_of(folder)) == ["one", "two", "three"]


@pytest.mark.parametrize(
    "bad",
    [b"{", b'{"schema": "ctxctl.state/1", "task_goal', b"null", b"[]", b"7", b'"x"', b"\xff\xfe{", b'{"a": NaN}'],
    ids=str,
)
def test_a_damaged_state_is_written_over_by_nothing(bad: bytes, folder: Path) -> None:
    (folder / "agent_state.json").write_bytes(bad)
    before = contents(folder)
    for arguments in (("--add-todo", "x"), ("--done", "s1"), ("--json", "--set", "goal=x")):
        done = within(folder, "checkpoint", *arguments)
        refused(done, "agent_state.json")
    assert within(folder, "resume").status == ExitCode.INPUT
    kept(folder, before)


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"task_goal": 7}',
        b'{"task_goal": "g", "remaining_subtasks": {"a": 1}}',
        b'{"task_goal": "g", "state_version": "three"}',
        b'{"task_goal": "g", "remaining_subtasks": [7]}',
        b'{"schema": "ctxctl.state/99", "task_goal": "g"}',
        b'{"schema": "other/1", "task_goal": "g"}',
    ],
    ids=str,
)
def test_a_state_of_another_shape_is_kept(wrong: bytes, folder: Path) -> None:
    (folder / "agent_state.json").write_bytes(wrong)
    before = contents(folder)
    refused(within(folder, "checkpoint", "--add-todo", "x"), "agent_state.json")
    kept(folder, before)


def test_an_empty_state_file_is_none_yet(tmp_path: Path) -> None:
    """A disk that was full may have left one of 0 bytes, or of zero bytes."""
    for nothing in (b"", b"\n", b"\0\0\0\0"):
        (tmp_path / "agent_state.json").write_bytes(nothing)
        within(tmp_path, "checkpoint", "--add-todo", "one").ok()
        assert texts(state_of(tmp_path)) == ["one"]


def test_modes_of_what_is_made(tmp_path: Path) -> None:
    """No wider than the transcript; what is there keeps its own."""
    old = os.umask(0o022)
    try:
        for mode, wanted in ((0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644), (0o400, 0o600)):
            folder = tmp_path / f"{mode:o}"
            folder.mkdir()
            session = folder / "t.jsonl"
            session.write_bytes(SESSION)
            session.chmod(mode)
            within(folder, "checkpoint", "t.jsonl").ok()
            made = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir() if p != session}
            assert {"agent_state.json", "agent_progress.md"} <= set(made)
            assert set(made.values()) == {wanted}, made
            (folder / "agent_state.json").chmod(0o600)
            within(folder, "checkpoint", "--add-todo", "x").ok()
            assert stat.S_IMODE((folder / "agent_state.json").stat().st_mode) == 0o600
    finally:
        os.umask(old)


SESSION = (
    b'{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/srv/app","sessionId":"s1","version":"2.1.0",'
    b'"type":"user","uuid":"u1","timestamp":"2026-01-05T10:00:01.000Z","message":{"role":"user","content":"Port it"}}\n'
)


def test_a_home_that_is_not_there(folder: Path) -> None:
    command = [sys.executable, "-m", "ctxctl", "checkpoint", "--add-todo", "three"]
    variables = {**environment(folder), "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
    done = subprocess.run(command, capture_output=True, cwd=folder, env=variables, timeout=60)
    assert done.returncode == 0, done.stderr
