"""What git says of a folder: over real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ctxctl.state import git

WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


def run(folder: Path, *arguments: str) -> str:
    command = ["git", *WHO, "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "trunk")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "b.txt").write_text("b\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_clean_work_tree(repo: Path) -> None:
    found = git.read(repo)
    assert found == git.Git(str(repo), run(repo, "rev-parse", "HEAD"), "trunk", (), "")


def test_all_sorts_of_changes_are_relative_to_the_top(repo: Path) -> None:
    names = ["neu ü.txt", "two\nlines", " leading", 'quo"te', "tab\there", "-n", "\U0001f600.md"]
    for name in names:
        (repo / name).write_text("x")
    (repo / "folder").mkdir()
    (repo / "folder" / "in.txt").write_text("x")
    (repo / "src" / "a.py").write_text("a = 2\n")
    run(repo, "mv", "b.txt", "c.txt")
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("ignored")
    found = git.read(repo / "src")
    assert found.top == str(repo)
    assert found.dirty == tuple(sorted([*names, "folder/", "src/a.py", "b.txt", "c.txt", ".gitignore"]))


def test_settings_of_the_user_do_not_change_what_is_seen(repo: Path) -> None:
    for key, value in (
        ("status.showUntrackedFiles", "no"),
        ("status.relativePaths", "true"),
        ("core.quotePath", "true"),
        ("status.renames", "copies"),
        ("status.showStash", "true"),
        ("color.status", "always"),
        ("status.submoduleSummary", "true"),
    ):
        run(repo, "config", key, value)
    (repo / "ä.txt").write_text("x")
    (repo / "src" / "a.py").write_text("changed\n")
    assert git.read(repo / "src").dirty == ("src/a.py", "ä.txt")


def test_a_branch_without_a_commit(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "-b", "fresh")
    (tmp_path / "n").write_text("")
    assert git.read(tmp_path) == git.Git(str(tmp_path), None, "fresh", ("n",), "")


def test_a_detached_head(repo: Path) -> None:
    run(repo, "checkout", "-q", "--detach")
    found = git.read(repo)
    assert found.branch is None and found.head == run(repo, "rev-parse", "HEAD")


def test_a_conflict(repo: Path) -> None:
    run(repo, "checkout", "-q", "-b", "other")
    (repo / "b.txt").write_text("theirs\n")
    run(repo, "commit", "-q", "-am", "theirs")
    run(repo, "checkout", "-q", "trunk")
    (repo / "b.txt").write_text("ours\n")
    run(repo, "commit", "-q", "-am", "ours")
    subprocess.run(["git", *WHO, "merge", "-q", "other"], cwd=repo, capture_output=True)
    assert git.read(repo).dirty == ("b.txt",)


def test_a_linked_work_tree(repo: Path, tmp_path: Path) -> None:
    run(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "src" / "a.py").write_text("side\n")
    found = git.read(tmp_path / "side" / "src")
    assert (found.top, found.branch, found.dirty) == (str(tmp_path / "side"), "side", ("src/a.py",))


def test_a_submodule_is_dirty_when_something_in_it_is(repo: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    run(inner, "init", "-q")
    (inner / "x").write_text("x")
    run(inner, "add", ".")
    run(inner, "commit", "-q", "-m", "inner")
    run(repo, "submodule", "--quiet", "add", str(inner), "lib/in ner")
    run(repo, "commit", "-q", "-m", "with a submodule")
    assert git.read(repo).dirty == ()
    (repo / "lib" / "in ner" / "x").write_text("y")
    assert git.read(repo).dirty == ("lib/in ner",)
    run(repo / "lib" / "in ner", "commit", "-q", "-am", "moved on")
    assert git.read(repo).dirty == ("lib/in ner",)


def test_nothing_that_the_repository_configures_is_run(repo: Path, tmp_path: Path) -> None:
    marks = [tmp_path / f"ran{n}" for n in range(4)]
    inner = tmp_path / "inner"
    inner.mkdir()
    run(inner, "init", "-q")
    (inner / "x").write_text("x")
    run(inner, "add", ".")
    run(inner, "commit", "-q", "-m", "inner")
    run(repo, "submodule", "--quiet", "add", str(inner), "sub")
    run(repo, "commit", "-q", "-m", "with a submodule")
    (repo / ".gitattributes").write_text("* filter=bad\n")
    run(repo, "config", "filter.bad.clean", f"touch '{marks[0]}'; cat")
    run(repo, "config", "filter.bad.required", "true")
    run(repo, "config", "core.fsmonitor", f"touch '{marks[1]}'; false")
    sub = repo / "sub"
    (sub / ".gitattributes").write_text("* filter=worse\n")
    run(sub, "config", "filter.worse.clean", f"touch '{marks[2]}'; cat")
    run(sub, "config", "core.fsmonitor", f"touch '{marks[3]}'; false")
    (repo / "b.txt").write_text("B\n")  # of the same size: git has to look into it
    (sub / "x").write_text("y")
    assert git.read(repo).dirty == (".gitattributes", "b.txt", "sub")
    assert not [mark for mark in marks if mark.exists()]
    subprocess.run(["git", "status"], cwd=repo, capture_output=True)
    assert marks[0].exists() and marks[2].exists()  # git by itself does run them


def test_a_filter_that_no_option_names_is_not_run(repo: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (repo / ".gitattributes").write_text("* filter=a=b\n")
    run(repo, "config", "filter.a=b.clean", f"touch '{mark}'; cat")  # `-c NAME=VALUE` ends the name at its first `=`
    (repo / "b.txt").write_text("B\n")
    found = git.read(repo)
    assert (found.branch, found.dirty, found.problem) == ("trunk", None, git.FILTERS)
    assert not mark.exists()


def test_a_folder_that_is_made_up_as_a_repository_is_none(repo: Path, tmp_path: Path) -> None:
    """Files that a clone brings, in a folder that a state names, are no settings that git should follow."""
    made_up = tmp_path / "clone" / "data"
    shutil.copytree(repo / ".git", made_up)
    run(made_up, "config", "core.worktree", ".")
    assert git.read(made_up).problem == git.BARE


def test_nothing_is_written(repo: Path) -> None:
    os.utime(repo / "b.txt", (1, 1))  # git would refresh its index
    index = (repo / ".git" / "index").read_bytes()
    before = sorted((str(p), p.lstat().st_mtime_ns) for p in repo.rglob("*"))
    assert git.read(repo).dirty == ()
    assert sorted((str(p), p.lstat().st_mtime_ns) for p in repo.rglob("*")) == before
    assert (repo / ".git" / "index").read_bytes() == index


def test_a_hooks_variables_point_nowhere_else(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run(other, "init", "-q", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert git.read(repo).branch == "trunk"


def test_no_repository_no_folder_no_git(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git.read(tmp_path) == git.Git(problem=git.NO_REPOSITORY)
    assert git.read(tmp_path / "nowhere").problem == "the folder is not there"
    bare = tmp_path / "bare"
    bare.mkdir()
    run(bare, "init", "-q", "--bare")
    assert git.read(bare).problem == git.BARE
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.read(repo) == git.Git(problem=git.NO_GIT)


@pytest.mark.parametrize("damage", ["HEAD", "index", "config", "gitfile"])
def test_a_damaged_repository(repo: Path, damage: str) -> None:
    if damage == "gitfile":
        (repo / ".git").rename(repo / "moved")
        (repo / ".git").write_text("gitdir: /nowhere/at/all\n")
    else:
        (repo / ".git" / damage).write_bytes(b"\x00garbage")
    found = git.read(repo)
    assert found.problem and found.dirty is None
    assert "\n" not in found.problem


def test_git_that_hangs_is_ended_and_so_is_what_it_started(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f"#!/bin/sh\nsleep 60 &\necho $! > '{tmp_path}/child'\nwait\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    start = time.monotonic()
    assert git.read(repo, seconds=0.3).problem == "git took too long"
    assert time.monotonic() - start < 2
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the child still runs")


def test_without_time_for_the_status_head_and_branch_are_told(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    real, slow = shutil.which("git"), tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f'#!/bin/sh\ncase "$*" in *status*) exec sleep 60;; esac\nexec {real} "$@"\n')
    (slow / "git").chmod(0o755)
    head = run(repo, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    assert git.read(repo, seconds=0.5) == git.Git(str(repo), head, "trunk", None, "git took too long")


def test_distance(repo: Path) -> None:
    old = run(repo, "rev-parse", "HEAD")
    for number in range(3):
        run(repo, "commit", "-q", "--allow-empty", "-m", str(number))
    new = run(repo, "rev-parse", "HEAD")
    assert git.distance(repo, old, new) == (0, 3)
    assert git.distance(repo, new, old) == (3, 0)
    assert git.distance(repo, "0" * 40, new) is None
    assert git.distance(repo, "--output=x", new) is None
    assert not (repo / "x").exists()
