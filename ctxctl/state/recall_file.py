"""The file of a recall store: SQLite tables, and pieces of bytes that are compressed and veiled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ctxctl.errors import InputError

SUFFIX = ".recall.db"
APPLICATION, VERSION = 0x63747872, 1
"""What marks a SQLite file as a recall store (`ctxr`), and the version of its tables."""
PIECE = 1 << 20
"""Bytes that are compressed together, about."""
LEVEL = 1
WAIT = 30.0
"""Seconds to wait for another process that writes into the store."""

TABLES = """
CREATE TABLE runs(
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at TEXT NOT NULL, source TEXT NOT NULL, format TEXT NOT NULL,
  transcript_id TEXT, strategy TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
  output TEXT NOT NULL, output_sha256 TEXT NOT NULL, text_size INTEGER NOT NULL, indexed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE pieces(n INTEGER PRIMARY KEY, run INTEGER NOT NULL, original INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE blocks(
  n INTEGER PRIMARY KEY, run INTEGER NOT NULL, id TEXT NOT NULL, call_id TEXT, line INTEGER NOT NULL,
  kind TEXT NOT NULL, tool TEXT, target BLOB, turn INTEGER NOT NULL, tokens INTEGER NOT NULL, reason TEXT NOT NULL,
  piece INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL);
CREATE INDEX pieces_of_run ON pieces(run, original);
CREATE INDEX blocks_of_run ON blocks(run);
CREATE INDEX blocks_by_id ON blocks(id);
"""

_VEIL = bytes(i ^ 0xA5 for i in range(256))


def veiled(data: bytes) -> bytes:
    """The bytes that stand in the file for some others, and back again. This hides nothing from a reader of the store;
    it keeps credentials of a transcript from standing in one more file as text, where searches and backups find them:
    zstd leaves short texts as they are."""
    return data.translate(_VEIL)


@dataclass(frozen=True, slots=True)
class Run:
    """One compaction. number: in its store; id: its recall id. size and sha256: of the original, in bytes."""

    number: int
    id: str
    at: str
    source: str
    format: str
    transcript_id: str | None
    strategy: str
    size: int
    sha256: str
    output: str
    output_sha256: str


def store_beside(output: str | Path) -> Path:
    """The recall store of a compacted transcript."""
    return Path(f"{output}{SUFFIX}")


def is_store(path: Path) -> bool:
    """Whether a file is a recall store, by its first bytes."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\x00") and head[68:72] == APPLICATION.to_bytes(4, "big")


def refuse_foreign(path: Path) -> None:
    """InputError when a file is no recall store, or one of a later version."""
    if not is_store(path):
        raise InputError("this file is not a recall store", path=str(path), hint="move it away, or name another output")
    with open(path, "rb") as file:
        version = int.from_bytes(file.read(64)[60:64], "big")
    if version > VERSION:
        raise InputError(
            f"this recall store is of version {version}; this ctxctl knows version {VERSION}",
            path=str(path),
            hint="use the ctxctl that wrote it, or a newer one",
        )


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty store."""
    connection.executescript(f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; {TABLES}")


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """SQLite's errors as errors for users."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            hint: str | None = "another process writes into it: try again when that is done"
        elif isinstance(error, sqlite3.OperationalError):
            hint = None
        else:
            hint = "the store is damaged; a backup beside the transcript may hold the original"
        raise InputError(f"the recall store can't be used: {text}", path=str(path), hint=hint) from None
