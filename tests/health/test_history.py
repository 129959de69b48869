"""The history: what is written is read back, by several jobs at once, and nothing else is ever touched."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from healths import a_session, measure, said

from ctxctl import __version__
from ctxctl.errors import InputError
from ctxctl.health.figures import measured
from ctxctl.health.history import COLUMNS, SCHEMA, Where, is_history, record, refs, runs, trend, where_of
from ctxctl.health.result import Trend

WHEN = datetime(2026, 5, 1, 10, 0, 0, tzinfo=UTC)
MAIN = Where("main", "main", "0123456789abcdef0123456789abcdef01234567", ("v1.0",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ctxctl.db"


def test_what_is_recorded_is_read_back(path: Path) -> None:
    well = a_session("a", findings=(said("reload", "info"), said("reload", "info"), said("reload")))
    unknown = a_session("b", cost=None, session=None, metrics=measure(fidelity=None, compaction_frequency=None))
    assert record(path, [well, unknown], WHEN, where=MAIN) == 1
    (run,) = runs(path)
    assert (run.id, run.time, run.version, run.where) == (1, "2026-05-01T10:00:00Z", __version__, MAIN)
    assert run.sessions == (measured(well), measured(unknown))
    assert run.sessions[0].codes == {("info", "reload"): 2, ("warning", "reload"): 1}
    assert is_history(path) and {p.name for p in path.parent.iterdir()} == {"ctxctl.db"}


def test_other_programs_can_read_it(path: Path) -> None:
    record(path, [a_session(cost=5.5)], WHEN, where=MAIN)
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT r.ref, s.path, s.cost, s.utilization, s.codes FROM sessions s JOIN runs r ON r.id = s.run"
        assert connection.execute(query).fetchall() == [("main", "runs/a.jsonl", 5.5, 0.5, "{}")]
        names = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")]
    assert names == ["run", *COLUMNS, "codes"]


@pytest.mark.parametrize(
    ("ref", "count"),
    [
        *(("main", 2), ("refs/heads/main", 2), ("origin/main", 2), ("v1.0", 2), ("topic", 1), ("mian", 0)),
        *(("0123456", 2), ("0123456789ABCDEF", 2), ("01234", 0), (str(MAIN.commit), 2)),
    ],
)
def test_runs_at_a_branch_a_tag_or_a_commit(path: Path, ref: str, count: int) -> None:
    for where in (MAIN, Where("topic", None, "f" * 40), MAIN):
        record(path, [a_session()], WHEN, where=where)
    assert len(runs(path, ref)) == count
    assert [run.id for run in runs(path)] == [3, 2, 1] and refs(path) == ["main", "topic"]
    assert [run.id for run in runs(path, most=2)] == [3, 2]


def test_old_runs_of_the_same_ref_are_let_go_when_asked(path: Path) -> None:
    for where in (MAIN, Where("topic"), MAIN, MAIN):
        record(path, [a_session()], WHEN, where=where)
    record(path, [a_session()], WHEN, where=MAIN, keep=2)
    assert [(run.id, run.where.ref, len(run.sessions)) for run in runs(path)] == [
        *((5, "main", 1), (4, "main", 1), (2, "topic", 1))
    ]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (3,)


def test_a_run_without_sessions_and_odd_texts(path: Path) -> None:
    record(path, [], WHEN, where=Where("\ud800 '; DROP TABLE runs; --"))
    record(path, [a_session(path="x\ud800.jsonl", model=None)], WHEN, where=Where())
    newest, first = runs(path)
    assert first.sessions == () and first.where.ref == "\ufffd '; DROP TABLE runs; --"
    assert newest.sessions[0].path == "x\ufffd.jsonl"


def test_jobs_that_write_at_the_same_time_lose_nothing(path: Path) -> None:
    def job(number: int) -> int:
        return record(path, [a_session(f"{number}-{n}") for n in range(5)], WHEN, where=Where(f"job-{number}"))

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(job, range(24)))
    assert sorted(ids) == list(range(1, 25)) and len(runs(path)) == 24
    assert all({s.path[5:].split("-")[0] for s in run.sessions} == {str(run.where.ref)[4:]} for run in runs(path))


def test_processes_that_make_it_at_the_same_time(path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from datetime import UTC, datetime\n"
        "from healths import a_session\n"
        "from ctxctl.health.history import Where, record\n"
        "record(sys.argv[1], [a_session()], datetime.now(UTC), where=Where('main'))\n"
    )
    jobs = [subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(job.communicate(timeout=60)[1], job.returncode) for job in jobs] == [(b"", 0)] * 4
    assert len(runs(path)) == 4


def test_an_empty_file_is_a_new_history(path: Path) -> None:
    path.touch()
    assert runs(path) == [] and refs(path) == []
    record(path, [a_session()], WHEN, where=MAIN)
    assert len(runs(path)) == 1


def test_the_history_is_no_wider_readable_than_its_sessions(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.touch(0o600)
    record(path, [a_session(path=str(source))], WHEN, where=MAIN)
    assert path.stat().st_mode & 0o777 == 0o600


# -- what is no history --------------------------------------------------------------------------------------------


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (x)")
        connection.commit()


def newer(path: Path) -> None:
    record(path, [], WHEN, where=MAIN)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def without_a_table(path: Path) -> None:
    record(path, [], WHEN, where=MAIN)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE sessions")
        connection.commit()


def torn(path: Path) -> None:
    record(path, [a_session(str(n)) for n in range(300)], WHEN, where=MAIN)
    data = bytearray(path.read_bytes())
    data[8192:12288] = b"\xff" * 4096
    path.write_bytes(data)


def cut(path: Path) -> None:
    record(path, [a_session(str(n)) for n in range(300)], WHEN, where=MAIN)
    path.write_bytes(path.read_bytes()[:8192])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text('{"schema": "ctxctl.health/1"}\n' * 40), "no history that ctxctl wrote"),
        (of_another_program, "another program"),
        (newer, "a newer ctxctl wrote it"),
        (without_a_table, "damaged"),
        (torn, "damaged"),
        (cut, "damaged"),
    ],
)
def test_what_is_no_history_is_refused_and_left_as_it_is(
    path: Path, make: Callable[[Path], object], message: str
) -> None:
    make(path)
    before = path.read_bytes()
    for attempt in (lambda: record(path, [a_session()], WHEN, where=MAIN), lambda: runs(path)):
        with pytest.raises(InputError, match=message) as told:
            attempt()
        assert told.value.path == str(path) and told.value.hint
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == [path.name]


def test_folders_pipes_and_what_is_not_there(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such history") as told:
        runs(path)
    assert told.value.hint == f"`ctxctl health --history {path} PATH...` records the first run" and not path.exists()
    with pytest.raises(InputError):
        record(tmp_path, [a_session()], WHEN, where=MAIN)
    with pytest.raises(InputError, match="can't be written"):
        record(tmp_path / "missing/x.db", [a_session()], WHEN, where=MAIN)
    os.mkfifo(path)
    with pytest.raises(InputError):
        record(path, [a_session()], WHEN, where=MAIN)


def test_a_link_keeps_pointing_to_where_it_did(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "there.db"
    record(target, [], WHEN, where=MAIN)
    path.symlink_to(target)
    record(path, [], WHEN, where=MAIN)
    assert path.is_symlink() and len(runs(target)) == 2


# -- trend ---------------------------------------------------------------------------------------------------------


def test_the_trend_over_the_last_ten_runs(path: Path) -> None:
    for n in range(12):
        metrics = measure(utilization=n / 20, burn_rate=100.0 * n, fidelity=0.8 if n == 5 else None)
        record(path, [a_session(metrics=metrics), a_session("b", metrics=metrics)], WHEN, where=MAIN)
    record(path, [a_session()], WHEN, where=Where("topic"))
    got = trend(path, "main")
    assert got.data_points == 10 and got.burn_rate_change == 900 and got.avg_fidelity == 0.8
    assert got.utilization_change == pytest.approx(0.45)
    assert trend(path, "topic") == Trend(1, insufficient_data=True)


# -- where in git --------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def test_where_a_run_is_made(tmp_path: Path) -> None:
    assert where_of(tmp_path, environment={}) == Where()
    git(tmp_path, "init", "-b", "topic")
    (tmp_path / ".git/hooks/post-index-change").write_text("#!/bin/sh\ntouch ran\n")
    assert where_of(tmp_path, environment={}) == Where("topic", "topic", None, ())
    git(tmp_path, "commit", "--allow-empty", "-m", "x")
    git(tmp_path, "tag", "v2")
    got = where_of(tmp_path, environment={"GITHUB_REF_NAME": "else"})
    assert (got.ref, got.branch, got.tags) == ("topic", "topic", ("v2",)) and got.commit and len(got.commit) == 40
    git(tmp_path, "checkout", "--detach")
    assert where_of(tmp_path, environment={"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "pr"}).ref == "pr"
    assert where_of(tmp_path, environment={}).ref == "v2" and where_of(tmp_path, "mine", {}).ref == "mine"
    assert not (tmp_path / "ran").exists()
