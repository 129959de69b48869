"""The environment of a task: real files, real repositories."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from ctxctl.model.state import Environment, FileState, Service
from ctxctl.model.summary import FileFact
from ctxctl.state.environment import MOST_READ, companions, observe
from ctxctl.state.hashes import Hasher, resolved
from ctxctl.state.options import StateOptions

OPTIONS = StateOptions()
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def old(path: Path, seconds: float = 3600) -> None:
    """Make a file look as if it had been there for a while."""
    then = time.time() - seconds
    os.utime(path, (then, then + 0.123))


def look(
    cwd: Path | str | None, names: list[str], folder: Path, known: Environment | None = None, **rest
) -> Environment:
    facts = [FileFact(name, "modified", ("edited",)) for name in names]
    given = {"folder": folder, "working_set": 20, "companions": companions(OPTIONS), **rest}
    return observe(None if cwd is None else str(cwd), facts, known or Environment(), (), **given)[0]


def test_files_are_hashed_against_the_working_folder(tmp_path: Path) -> None:
    work, state = tmp_path / "work", tmp_path / "state"
    (work / "src").mkdir(parents=True)
    state.mkdir()
    (work / "src" / "a.py").write_bytes(b"a = 1\n")
    old(work / "src" / "a.py")
    (state / "src").mkdir()
    (state / "src" / "a.py").write_bytes(b"another\n")
    inside, absolute, gone = look(work, ["src/a.py", str(work / "src/../src/a.py"), "gone.py"], state).files
    info = (work / "src" / "a.py").stat()
    assert inside == FileState("src/a.py", "modified", ("edited",), sha(b"a = 1\n"), 6, info.st_mtime_ns)
    assert absolute.sha256 == inside.sha256 and absolute.path.endswith("src/../src/a.py")
    assert gone == FileState("gone.py", "modified", ("edited",))


@pytest.mark.parametrize("cwd", ["/no/such/folder", None, "relative"])
def test_without_the_working_folder_paths_start_from_the_states(tmp_path: Path, cwd: str | None) -> None:
    (tmp_path / "a.py").write_text("x")
    around = look(cwd, ["a.py"], tmp_path)
    assert around.files[0].sha256 == sha(b"x")
    assert around.cwd == cwd and around.git_head is None and around.dirty == ()


def test_git_of_the_states_folder_is_not_that_of_a_folder_that_is_not_here(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "here"], cwd=tmp_path, check=True)
    assert look("/no/such/folder", [], tmp_path).git_branch is None
    assert look(None, [], tmp_path).git_branch == "here"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "to_pipe")
    os.symlink("loop", tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "sock"))
    names = ["pipe", "to_pipe", "loop", "folder", "sock", "/dev/zero", "/dev/tty", "nul\0l", "x" * 5000, "", ".", "/"]
    start = time.monotonic()
    around = look(tmp_path, names, tmp_path)
    server.close()
    assert time.monotonic() - start < 1
    assert [(f.sha256, f.size) for f in around.files] == [(None, None)] * len(names)


def test_files_of_the_kernel_end(tmp_path: Path) -> None:
    start = time.monotonic()
    look(tmp_path, ["/proc/kmsg", "/proc/self/mem", "/proc/kcore"], tmp_path)
    assert time.monotonic() - start < 1


def test_a_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    found = look(tmp_path, ["secret"], tmp_path).files[0]
    assert found.size == 1 and (found.sha256 is None or os.geteuid() == 0)


def test_large_files_are_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 30)
    start = time.monotonic()
    found = look(tmp_path, ["sparse"], tmp_path).files[0]
    assert (found.sha256, found.size) == (None, 1 << 30)
    assert time.monotonic() - start < 0.5


def test_the_budget_of_bytes_and_of_time(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"x" * 1000)
    names = ["0", "1", "2", "3"]
    around = look(tmp_path, names, tmp_path, hasher=Hasher(total_bytes=2500))
    assert [f.sha256 is not None for f in around.files] == [True, True, False, False]
    around = look(tmp_path, names, tmp_path, hasher=Hasher(seconds=0))
    assert [(f.sha256, f.size) for f in around.files] == [(None, 1000)] * 4


def test_a_file_that_looks_the_same_is_not_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    old(path)
    info = path.stat()
    known = Environment(files=(FileState("a", "read", (), "known", 1, info.st_mtime_ns),))
    assert look(tmp_path, ["a"], tmp_path, known).files[0].sha256 == "known"
    assert look(tmp_path, [str(path)], tmp_path, known).files[0].sha256 == "known"
    os.utime(path, ns=(0, info.st_mtime_ns + 1))
    assert look(tmp_path, ["a"], tmp_path, known).files[0].sha256 == sha(b"x")


def test_two_writes_within_one_tick_of_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for _ in range(20):
        path.write_text("1")
        around = look(tmp_path, ["a"], tmp_path)
        stamp = path.stat().st_mtime_ns
        path.write_text("2")
        os.utime(path, ns=(stamp, stamp))
        assert look(tmp_path, ["a"], tmp_path, around).files[0].sha256 == sha(b"2")


def test_many_read_files_are_bounded_and_modified_ones_are_not(tmp_path: Path) -> None:
    facts = [FileFact(f"r{n}", "read", ("read",)) for n in range(MOST_READ + 50)]
    facts += [FileFact(f"m{n}", "modified", ("edited",)) for n in range(500)]
    around, used = observe(str(tmp_path), facts, Environment(), (), folder=tmp_path, working_set=20)
    names = [file.path for file in around.files]
    assert names == [f"r{n}" for n in range(50, MOST_READ + 50)] + [f"m{n}" for n in range(500)]
    assert [file.path for file in used] == [f"m{n}" for n in range(499, 479, -1)]


def test_files_in_use_are_the_newest_without_deleted_ones(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    facts = [
        FileFact("a", "modified", ("created",)),
        FileFact("b", "read", ("read",)),
        FileFact("c", "modified", ("created", "deleted")),
        FileFact("d", "modified", ("edited",)),
    ]
    rest = {"folder": tmp_path, "working_set": 2}
    _, used = observe(str(tmp_path), facts, Environment(), (), **rest)
    assert [(file.path, file.sha256) for file in used] == [("d", None), ("b", sha(b"b"))]
    _, used = observe(str(tmp_path), facts, Environment(), (), recent=[str(tmp_path / "a"), "b", "zzz"], **rest)
    assert [file.path for file in used] == ["a", "b"]
    _, used = observe(str(tmp_path), facts, Environment(), (), recent=["…/b", "…", "ls a"], **rest)
    assert [file.path for file in used] == ["b", "d"]
    none = {"folder": tmp_path, "working_set": 0}
    assert observe(str(tmp_path), facts, Environment(), (), **none)[1] == ()


def test_services_are_kept(tmp_path: Path) -> None:
    given = (Service("web", port=1), Service("job", command="true"))
    assert observe(None, [], Environment(), given, folder=tmp_path, working_set=20)[0].services == given


OURS = ["agent_state.json", "agent_progress.md", "agent_audit.jsonl", "agent_notes.md", "agent_ledger.jsonl"]


@pytest.mark.parametrize("where", [".", "ctx", "ctx/deep"])
def test_our_own_files_are_never_dirty(tmp_path: Path, where: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    folder = tmp_path / where
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*OURS, ".agent_state.json.k3j2.tmp", "agent_state.json.bak", "agent_state.json.2.bak"):
        (folder / name).write_text("x")
    assert look(tmp_path, [], folder).dirty == ()
    (folder / "agent_state.jsonl").write_text("no companion")
    expected = {".": "agent_state.jsonl", "ctx": "ctx/", "ctx/deep": "ctx/"}[where]
    assert look(tmp_path, [], folder).dirty == (expected,)


def test_files_of_these_names_elsewhere_are_the_tasks_own(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "agent_notes.md").write_text("x")
    assert look(tmp_path, [], tmp_path / "other").dirty == ("agent_notes.md",)
    (tmp_path.parent / f"{tmp_path.name}-out").mkdir()
    assert look(tmp_path, [], tmp_path.parent / f"{tmp_path.name}-out").dirty == ("agent_notes.md",)


def test_names_of_our_files_come_from_the_settings(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("mine.json", "agent_state.json", "n.md"):
        (tmp_path / name).write_text("x")
    options = StateOptions(state_file="mine.json")
    assert look(tmp_path, [], tmp_path, companions=companions(options, ("n.md",))).dirty == ("agent_state.json",)


def test_a_tracked_companion_that_changed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "agent_progress.md").write_text("x")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", *WHO, "commit", "-qm", "x"], cwd=tmp_path, check=True)
    (tmp_path / "agent_progress.md").write_text("y")
    assert look(tmp_path, [], tmp_path).dirty == ()


def test_observing_twice_gives_the_same(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a").write_text("x")
    old(tmp_path / "a")
    first = look(tmp_path, ["a", "b"], tmp_path)
    assert look(tmp_path, ["a", "b"], tmp_path, first) == first


def test_it_takes_less_than_60_ms(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    names = [f"f{n}.py" for n in range(500)]
    for name in names:
        (tmp_path / name).write_text(name * 500)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", *WHO, "commit", "-qm", "x"], cwd=tmp_path, check=True)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        around = look(tmp_path, names[:100], tmp_path)
        times.append(time.perf_counter() - start)
        assert all(file.sha256 for file in around.files) and around.git_head
    assert min(times) < 0.06


def test_where_a_path_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert resolved("a/../b", "/w") == "/w/b"
    assert resolved("/x/./y", "/w") == "/x/y"
    assert resolved("~/n", "/w") == "/home/ann/n"
    assert resolved("~other/n", "/w") == "/w/~other/n"
