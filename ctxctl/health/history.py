"""The history of runs: one SQLite file that several jobs may write at the same time (requirement H3).

Tables: `runs` (when, which version, where in git), and `sessions` (a row per session and run: its facts, its metrics in
columns of their names, and its alerts and findings by level and code as JSON). Other programs may read it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson

from ctxctl import __version__
from ctxctl.errors import InputError
from ctxctl.health.figures import Measured, measured, values_of
from ctxctl.health.result import METRICS, Health, Trend, TurnMetrics
from ctxctl.health.trend import POINTS, trend_of
from ctxctl.model.text import clean
from ctxctl.state import git
from ctxctl.state.files import bounded_mode, opened_plain

APPLICATION = 0x63747868  # "ctxh"
"""SQLite's application id of a history, by which a file of another program is known."""
SCHEMA = 1
WAIT = 30.0
"""Seconds for other jobs that write."""
CHECKED = 64 * 1024 * 1024
"""Bytes up to which a file is checked as a whole before it is used."""
FACTS = (
    *("path", "session", "model", "format", "started", "ended", "turns", "requests", "window", "tokens", "peak"),
    *("peak_utilization", "cost", "compactions"),
)
_TEXT = frozenset(("path", "session", "model", "format", "started", "ended", "compaction_frequency"))
COLUMNS = (*FACTS, *METRICS)
TABLES = f"""
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, ctxctl TEXT NOT NULL,
  ref TEXT, branch TEXT, commit_hash TEXT, tags TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE sessions (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  {", ".join(f'"{name}" {"TEXT" if name in _TEXT else "NUMERIC"}' for name in COLUMNS)},
  codes TEXT NOT NULL DEFAULT '{{}}'
);
CREATE INDEX sessions_of ON sessions(run);
"""
CI_REFS = (
    *("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CHANGE_BRANCH", "BRANCH_NAME"),
    *("BUILDKITE_BRANCH", "CIRCLE_BRANCH", "BITBUCKET_BRANCH"),
)
"""Variables in which CI systems name the branch: they check out a commit, so git itself knows none."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where in git a run was made. ref: what it is recorded under."""

    ref: str | None = None
    branch: str | None = None
    commit: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the history. time: ISO 8601; version: of ctxctl."""

    id: int
    time: str
    version: str
    where: Where
    sessions: tuple[Measured, ...]


def where_of(folder: str | Path, ref: str | None = None, environment: Mapping[str, str] | None = None) -> Where:
    """Where a folder stands in git. ref: a name that was given; by default the branch, as git or the CI tells."""
    environment = os.environ if environment is None else environment
    state = git.head(folder)
    named = next((environment[name] for name in CI_REFS if environment.get(name)), None)
    tags = git.tags(folder) if state.head is not None else ()
    return Where(ref or state.branch or named or next(iter(tags), None), state.branch, state.head, tags)


def record(
    path: str | Path,
    healths: Sequence[Health],
    when: datetime,
    ref: str | None = None,
    *,
    where: Where | None = None,
    keep: int | None = None,
) -> int:
    """Add a run to the history, which is made when it is not there; the number of the run.

    ref: the branch that it is recorded under. where: in git; by default that of the working folder. keep: how many runs
    of this ref stay; by default all. The run is in the file as a whole or not at all. Raises InputError for what is no
    history, is damaged or can't be written; then nothing has changed.
    """
    where = where_of(os.getcwd(), ref) if where is None else where
    stamp = when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    _made(Path(path), [health.path for health in healths])
    with _open(Path(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _prepare(Path(path), connection)
        run = connection.execute(
            "INSERT INTO runs (time, ctxctl, ref, branch, commit_hash, tags) VALUES (?, ?, ?, ?, ?, ?)",
            (stamp, __version__, _clean(where.ref), where.branch, where.commit, _json(list(where.tags))),
        ).lastrowid
        assert run is not None
        marks = ", ".join("?" * (len(COLUMNS) + 2))
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        connection.executemany(
            f"INSERT INTO sessions (run, {names}, codes) VALUES ({marks})", (_row(run, health) for health in healths)
        )
        if keep is not None:
            old = "SELECT id FROM runs WHERE ref IS ? ORDER BY id DESC LIMIT -1 OFFSET ?"
            given = (_clean(where.ref), max(1, keep))
            connection.execute(f"DELETE FROM sessions WHERE run IN ({old})", given)
            connection.execute(f"DELETE FROM runs WHERE id IN ({old})", given)
        connection.execute("COMMIT")
    return run


def runs(path: str | Path, ref: str | None = None, *, most: int | None = None) -> list[Run]:
    """The runs of a history, the newest first. ref: those at a branch, tag or commit (its hash, or the beginning of it)
    alone; most: no more than so many. Raises InputError for what is no history, or there is none."""
    if not os.path.exists(path):
        raise InputError(
            "there is no such history",
            path=str(path),
            hint=f"`ctxctl health --history {path} PATH...` records the first run",
        )
    found: list[Run] = []
    with _open(Path(path), write=False) as connection:
        if _state(Path(path), connection) == "new":
            return []
        rows = connection.execute("SELECT id, time, ctxctl, ref, branch, commit_hash, tags FROM runs ORDER BY id DESC")
        for id_, time, version, name, branch, commit, tags in rows:
            where = Where(name, branch, commit, tuple(_loaded(tags, list)))
            if ref is not None and not _is_at(where, ref):
                continue
            found.append(Run(id_, time, version, where, tuple(_sessions(connection, id_))))
            if most is not None and len(found) == most:
                break
    return found


def refs(path: str | Path) -> list[str]:
    """Names that runs are recorded under, the newest first."""
    with _open(Path(path), write=False) as connection:
        if _state(Path(path), connection) == "new":
            return []
        rows = connection.execute("SELECT ref FROM runs WHERE ref IS NOT NULL GROUP BY ref ORDER BY max(id) DESC")
        return [name for (name,) in rows]


def trend(path: str | Path, ref: str | None = None) -> Trend:
    """The trend over the last 10 runs, each the mean over its sessions."""
    points = []
    for number, run in enumerate(reversed(runs(path, ref, most=POINTS)), 1):
        means = {name: _mean(run.sessions, name) for name in ("utilization", "burn_rate", "fidelity")}
        points.append(TurnMetrics(number, 0, **means))  # type: ignore[arg-type]
    return trend_of(points)


def is_history(path: str | Path) -> bool:
    """Whether a file is one of SQLite."""
    with suppress(OSError, InputError), opened_plain(Path(path)) as file:
        return file.read(16) == b"SQLite format 3\0"
    return False


def _is_at(where: Where, ref: str) -> bool:
    plain = ref.removeprefix("refs/heads/").removeprefix("refs/tags/").removeprefix("origin/")
    if plain in (where.ref, where.branch, *where.tags) or ref == where.ref:
        return True
    return len(plain) >= 7 and where.commit is not None and where.commit.startswith(plain.lower())


def _mean(sessions: Sequence[Measured], name: str) -> float | None:
    values = [value for session in sessions if (value := session.values.get(name)) is not None]
    return fmean(values) if values else None


def _row(run: int, health: Health) -> tuple[Any, ...]:
    facts = [getattr(health, name) for name in FACTS]
    metrics = [getattr(health.metrics, name) for name in METRICS]
    codes: dict[str, dict[str, int]] = {}
    for (level, code), count in measured(health).codes.items():
        codes.setdefault(code, {})[level] = count
    return (run, *(_clean(value) for value in (*facts, *metrics)), _json(codes))


def _clean(value: Any) -> Any:
    """A value that SQLite can hold."""
    if isinstance(value, str):
        return clean(value)
    return _json(dict(value)) if isinstance(value, Mapping) else value


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _loaded(text: Any, kind: type) -> Any:
    with suppress(orjson.JSONDecodeError, TypeError):
        if isinstance(value := orjson.loads(text), kind):
            return value
    return kind()


def _sessions(connection: sqlite3.Connection, run: int) -> Iterator[Measured]:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    for *values, codes in connection.execute(
        f"SELECT {names}, codes FROM sessions WHERE run = ? ORDER BY rowid", (run,)
    ):
        row = dict(zip(COLUMNS, values, strict=True))
        layers = row["compaction_frequency"]
        metrics = {name: row[name] for name in METRICS}
        metrics["compaction_frequency"] = _loaded(layers, dict) if layers is not None else None
        counts = {
            (level, code): count
            for code, levels in _loaded(codes, dict).items()
            if isinstance(levels, dict)
            for level, count in levels.items()
            if isinstance(count, int)
        }
        yield Measured(str(row["path"]), row["session"], values_of(metrics, row, row["requests"]), counts)


# the file


def _made(path: Path, sources: Sequence[str]) -> None:
    """Make the file when it is not there, no wider readable than the sessions that it speaks of."""
    if os.path.lexists(path):
        return
    mode = 0o666
    for source in sources or ("",):
        mode &= bounded_mode(source)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
    except FileExistsError:  # another job was faster
        pass
    except OSError as error:
        raise _unwritten(path, error.strerror or str(error)) from None


@contextmanager
def _open(path: Path, *, write: bool = True) -> Iterator[sqlite3.Connection]:
    """A connection; errors of SQLite become InputError, and what was begun is taken back."""
    try:
        opened_plain(path).close()
    except FileNotFoundError:
        raise InputError("there is no such history", path=str(path)) from None
    # what a job that was killed left half done is taken back by the next one that opens it, if it may write
    mode = "rw" if write or os.access(path, os.W_OK) else "ro"
    at = f"{Path(os.path.realpath(path)).as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(at, uri=True, timeout=WAIT, isolation_level=None)) as connection:
            yield connection
    except sqlite3.OperationalError as error:
        said = str(error)
        if "locked" in said or "busy" in said:
            raise InputError(
                f"another process has been writing it for {WAIT:g} s",
                path=str(path),
                hint="run it again when that one has finished",
            ) from None
        if write and ("readonly" in said or "unable to open" in said or "full" in said or "I/O" in said):
            raise _unwritten(path, said) from None
        raise _damaged(path, said) from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None


def _state(path: Path, connection: sqlite3.Connection) -> str:
    """`new` for an empty file, `ours` for a history; InputError for anything else."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and application in (0, APPLICATION):
        return "new"
    if application != APPLICATION:
        raise InputError("it is a database of another program, no history", path=str(path), hint=_another(path))
    if schema > SCHEMA:
        raise InputError(
            f"a newer ctxctl wrote it (schema {schema}, this one knows {SCHEMA})",
            path=str(path),
            hint="update ctxctl, or name another file with --history",
        )
    if not {"runs", "sessions"} <= tables:
        raise _damaged(path, "a table is missing")
    if os.path.getsize(path) <= CHECKED:
        said = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        if said != ["ok"]:
            raise _damaged(path, str(said[0]) if said else "the check says nothing")
    return "ours"


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Make the tables where the file is new; within a transaction, so that of several jobs one does it."""
    if _state(path, connection) == "new":
        for statement in TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _another(path: Path) -> str:
    return f"name another file with --history; {path} was left as it is"


def _damaged(path: Path, said: str) -> InputError:
    if "not a database" in said:
        return InputError("it is no history that ctxctl wrote", path=str(path), hint=_another(path))
    hint = (
        f"`mv {path} {path}.damaged`, and the next run begins a new one; `sqlite3 {path}.damaged .recover` may save it"
    )
    return InputError(f"the history is damaged: {said}", path=str(path), hint=hint)


def _unwritten(path: Path, said: str) -> InputError:
    return InputError(f"can't be written: {said}", path=str(path), hint="name a file in a folder that you may write to")
