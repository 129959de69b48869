"""The checks of the boot sequence, over real repositories, files, ports and commands."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctxctl.model.state import AgentState, Environment, FileState, Position, Service, WorkingFile
from ctxctl.model.summary import FileFact
from ctxctl.state import services
from ctxctl.state.checks import verify
from ctxctl.state.environment import observe
from ctxctl.state.options import ServiceOptions, StateOptions

WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *WHO, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def saved(folder: Path, **names: str) -> AgentState:
    """A state as a checkpoint in this folder saves it; keywords: files with their role."""
    facts = [FileFact(name, role, ()) for name, role in names.items()]  # type: ignore[arg-type]
    around, used = observe(str(folder), facts, Environment(), (), folder=folder, working_set=20)
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    return AgentState(task_goal="g", environment=around, working_set=used, saved_at=stamp)


def by_name(state: AgentState, folder: Path, **rest: bool) -> dict[str, tuple[bool | None, str]]:
    return {check.name: (check.ok, check.detail) for check in verify(state, folder, **rest).checks}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "trunk")
    (folder / "a").write_text("a")
    run(folder, "add", ".")
    run(folder, "commit", "-qm", "first")
    return folder


def test_nothing_changed(repo: Path) -> None:
    state = saved(repo, a="modified")
    found = verify(state, repo)
    assert [check.name for check in found.checks] == [
        "cwd",
        "git_head",
        "git_branch",
        "git_dirty",
        "files",
        "transcript",
    ]
    assert [check.ok for check in found.checks] == [True] * 5 + [None]
    assert (found.stale, found.missing, found.dirty, found.newer, found.failed) == ((), (), (), False, ())
    assert verify(state, repo).stale == ()


def test_the_head_moved_on_back_and_aside(repo: Path) -> None:
    state = saved(repo)
    first = run(repo, "rev-parse", "HEAD")
    for number in range(3):
        run(repo, "commit", "-q", "--allow-empty", "-m", str(number))
    ok, detail = by_name(state, repo)["git_head"]
    assert ok is False and detail.startswith("3 commits later (") and first[:12] in detail
    later = saved(repo)
    run(repo, "reset", "-q", "--hard", first)
    assert by_name(later, repo)["git_head"][1].startswith("3 commits back (")
    run(repo, "commit", "-q", "--allow-empty", "-m", "aside")
    assert by_name(later, repo)["git_head"][1].startswith("on another line: 1 commit more and 3 commits less (")
    unknown = replace(state, environment=replace(state.environment, git_head="f" * 40))
    assert "not in this repository" in by_name(unknown, repo)["git_head"][1]
    option = replace(state, environment=replace(state.environment, git_head="--output=/tmp/x"))
    assert by_name(option, repo)["git_head"][0] is False


def test_the_branch(repo: Path) -> None:
    state = saved(repo)
    run(repo, "checkout", "-q", "-b", "side")
    assert by_name(state, repo)["git_branch"] == (False, "trunk -> side")
    run(repo, "checkout", "-q", "--detach")
    assert by_name(state, repo)["git_branch"] == (False, "trunk -> detached")
    assert by_name(saved(repo), repo)["git_branch"] == (True, "detached")


def test_the_repository_is_gone_or_new(repo: Path, tmp_path: Path) -> None:
    state = saved(repo)
    (repo / ".git").rename(tmp_path / "away")
    found = by_name(state, repo)
    assert {found[name][0] for name in ("git_head", "git_branch", "git_dirty")} == {False}
    plain = saved(repo)
    assert {by_name(plain, repo)[name][0] for name in ("git_head", "git_branch", "git_dirty")} == {None}
    (tmp_path / "away").rename(repo / ".git")
    assert {by_name(plain, repo)[name][0] for name in ("git_head", "git_branch", "git_dirty")} == {None}


def test_dirty_files_then_and_now(repo: Path) -> None:
    (repo / "new").write_text("n")
    state = saved(repo)
    assert by_name(state, repo)["git_dirty"] == (True, "1 changed file, as saved")
    (repo / "new").unlink()
    (repo / "a").write_text("b")
    (repo / "agent_state.json").write_text("{}")
    assert by_name(state, repo)["git_dirty"] == (False, "changed since: a; no longer changed: new")


def test_stale_and_missing_files(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1, 1))
    state = saved(tmp_path, a="modified", b="modified", c="read", d="modified", e="modified", f="modified")
    (tmp_path / "d").write_text("D")
    os.utime(tmp_path / "d", (1, 1))  # size and time stamp as they were
    (tmp_path / "b").unlink()
    (tmp_path / "c").write_text("longer")
    os.utime(tmp_path / "a")  # touched, not changed
    (tmp_path / "e").unlink()
    (tmp_path / "e").mkdir()
    found = verify(state, tmp_path)
    assert (found.stale, found.missing) == (("c", "d", "e", "b"), ("b",))
    check = next(check for check in found.checks if check.name == "files")
    assert (check.ok, check.detail) == (False, "3 changed since: c, d, e; 1 gone: b")


def test_a_read_file_in_use_is_hashed_whatever_its_time_stamp(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("1")
    os.utime(tmp_path / "r", (1, 1))
    state = saved(tmp_path, r="read")
    (tmp_path / "r").write_text("2")
    os.utime(tmp_path / "r", (1, 1))
    assert verify(state, tmp_path).stale == ("r",)
    assert verify(replace(state, working_set=()), tmp_path).stale == ()


def test_hashes_of_a_plain_state(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    around = Environment(files=(FileState("a", "modified", sha256="0" * 64), FileState("b", "modified")))
    state = AgentState(environment=around, working_set=(WorkingFile("c", "1" * 64), WorkingFile("d")))
    assert verify(state, tmp_path).stale == ("a", "c")


def test_what_could_not_be_compared_is_not_called_good(tmp_path: Path) -> None:
    with open(tmp_path / "big", "wb") as file:
        file.truncate(1 << 30)
    os.symlink("loop", tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    files = [FileState(n, "modified", (), "0" * 64, 1 << 30) for n in ("big", "loop")]
    state = AgentState(environment=Environment(cwd=str(tmp_path), files=tuple(files)))
    start = time.monotonic()
    assert by_name(state, tmp_path)["files"] == (None, "2 could not be compared")
    pipe = replace(state, environment=Environment(files=(FileState("pipe", "read", (), "0" * 64, 1),)))
    assert verify(pipe, tmp_path).stale == ("pipe",)
    assert time.monotonic() - start < 1


def test_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for cwd, ok, words in (
        (None, None, "no working folder is known"),
        (str(tmp_path / "nowhere"), False, "is not there"),
        (str(tmp_path / "file"), False, "is no folder"),
        ("relative", False, "is no absolute path"),
        (str(tmp_path), True, str(tmp_path)),
    ):
        found = by_name(AgentState(environment=Environment(cwd=cwd, git_head="a" * 40)), tmp_path)
        assert found["cwd"][0] is ok and words in found["cwd"][1]
        assert found["git_head"][0] is False


def test_a_transcript_that_grew_shrank_or_went(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("x" * 100)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    state = AgentState(transcript=Position(path=str(path), size=100), saved_at=now)
    assert by_name(state, tmp_path)["transcript"] == (True, "nothing new since the checkpoint (100 bytes)")
    path.write_text("x" * 1600)
    assert by_name(state, tmp_path)["transcript"] == (False, "1,500 bytes newer than the checkpoint")
    assert verify(state, tmp_path).newer
    path.write_text("x" * 60)
    assert by_name(state, tmp_path)["transcript"][1].startswith("40 bytes shorter")
    path.write_text("y" * 100)
    os.utime(path, (time.time() + 60,) * 2)
    assert by_name(state, tmp_path)["transcript"] == (False, "written after the checkpoint, with the same size")
    assert by_name(replace(state, saved_at="soon"), tmp_path)["transcript"][0] is True
    path.unlink()
    assert by_name(state, tmp_path)["transcript"][0] is False
    assert not verify(state, tmp_path).newer
    path.mkdir()
    assert by_name(state, tmp_path)["transcript"][0] is None


def test_the_transcript_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.jsonl")
    state = AgentState(transcript=Position(path=str(tmp_path / "s.jsonl"), size=0))
    assert by_name(state, tmp_path)["transcript"][0] is None


def listening(family: int, host: str) -> tuple[socket.socket, int]:
    server = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((host, 0))
    server.listen()
    return server, server.getsockname()[1]


@pytest.fixture
def closed() -> Iterator[int]:
    """A port of this machine that nothing listens on, and that nothing else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_ports(tmp_path: Path, closed: int) -> None:
    four, port = listening(socket.AF_INET, "127.0.0.1")
    with four:
        given = (Service("up", port=port), Service("down", port=closed), Service("odd", port=99999), Service("none"))
        found = by_name(AgentState(environment=Environment(services=given)), tmp_path)
    assert found["services:up"] == (True, f"port {port} answers on 127.0.0.1")
    assert found["services:down"] == (False, f"nothing answers on port {closed}")
    assert found["services:odd"] == (False, "99999 is no TCP port (1 to 65535)")
    assert found["services:none"] == (None, "neither a port nor a command is given")


def test_a_port_on_ipv6_only(tmp_path: Path) -> None:
    try:
        server, port = listening(socket.AF_INET6, "::1")
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        state = AgentState(environment=Environment(services=(Service("web", port=port),)))
        assert by_name(state, tmp_path)["services:web"] == (True, f"port {port} answers on ::1")


def test_many_ports_wait_together(tmp_path: Path) -> None:
    """Listeners whose queue is full never answer; all of them cost one time limit."""
    with ExitStack() as stack:
        ports = []
        for _ in range(5):
            server = stack.enter_context(socket.socket())
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            ports.append(server.getsockname()[1])
            for _ in range(4):
                caller = stack.enter_context(socket.socket())
                caller.setblocking(False)
                caller.connect_ex(("127.0.0.1", ports[-1]))
        time.sleep(0.1)
        given = [Service(str(port), port=port) for port in ports]
        start = time.monotonic()
        found = services.look(given, cwd=tmp_path, run_commands=False)
        assert time.monotonic() - start < 1.0
        assert len(found) == 5


def test_a_state_is_no_reason_to_try_every_port(tmp_path: Path) -> None:
    given = [Service(str(n), port=n) for n in range(1, 60000)]
    start = time.monotonic()
    found = services.look(given, cwd=tmp_path, run_commands=False)
    assert time.monotonic() - start < 2
    assert len(found) == len(given) and found[-1] == (None, "not tried: more than 100 services")


def test_commands_run_only_on_demand(tmp_path: Path) -> None:
    given = (Service("good", command="touch ran"), Service("bad", command="echo no such thing; exit 3"))
    state = AgentState(environment=Environment(cwd=str(tmp_path), services=given))
    assert by_name(state, tmp_path)["services:good"] == (None, "not run: `touch ran`; --run-commands runs it")
    assert not (tmp_path / "ran").exists()
    found = by_name(state, tmp_path, run_commands=True)
    assert found["services:good"] == (True, "`touch ran`: exit status 0")
    assert found["services:bad"] == (False, "`echo no such thing; exit 3`: exit status 3; no such thing")
    assert (tmp_path / "ran").exists()


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "COMMAND_SECONDS", 0.3)
    command = f"trap '' TERM; sleep 60 & echo $! > '{tmp_path}/child'; wait; sleep 60"
    given = [Service("hangs", command=command), Service("other", command="true")]
    start = time.monotonic()
    found = services.look(given, cwd=tmp_path, run_commands=True)
    assert time.monotonic() - start < 8
    assert found[0][0] is False and "not done after 0.3 s" in found[0][1] and found[1][0] is True
    child = int((tmp_path / "child").read_text())
    stat = Path(f"/proc/{child}/stat")
    assert not stat.exists() or " Z " in stat.read_text()


def test_services_of_the_settings_are_checked_too(tmp_path: Path, closed: int) -> None:
    options = StateOptions(services=(ServiceOptions("web", port=closed), ServiceOptions("db", command="false")))
    state = AgentState(environment=Environment(services=(Service("web", port=1), Service("own"))))
    found = {check.name: check.detail for check in verify(state, tmp_path, options).checks}
    assert found["services:web"] == f"nothing answers on port {closed}"
    assert "services:db" in found and "services:own" in found


def test_names_stay_on_one_line(tmp_path: Path) -> None:
    files = (FileState("two\nlines\x1b[31m\ud800", "modified", (), "0" * 64, 1),)
    given = (Service("a\nb"),)
    state = AgentState(
        environment=Environment(cwd="/no\nwhere", files=files, services=given),
        transcript=Position(path="/gone\x07"),
    )
    for check in verify(state, tmp_path).checks:
        assert check.name.isprintable() and check.detail.isprintable()
        check.detail.encode()


def test_an_empty_state(tmp_path: Path) -> None:
    assert {check.ok for check in verify(AgentState(), tmp_path).checks} == {None}
    assert {check.ok for check in verify(AgentState(), tmp_path / "nowhere").checks} == {None}


def test_checks_take_less_than_a_tenth_of_a_second(repo: Path) -> None:
    names = {f"f{n}": "modified" for n in range(200)}
    for name in names:
        (repo / name).write_text(name * 2000)
    state = saved(repo, **names)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert not [check for check in verify(state, repo).checks if check.ok is False]
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1
