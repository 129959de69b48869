"""Reading a recall store: by id, line, path, tool or text, newest first, and the original byte for byte."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.state.recall_file import WAIT, Run, guarded, refuse_foreign, veiled
from ctxctl.state.recall_words import WordIndex, expression

_KEPT = 4
"""Pieces that are kept unpacked: neighbours lie in the same one."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which blocks are wanted: all that is given holds. id: of a block or a call. lines: first and last line. path: a
    file as a call names it, its end, a pattern, or a word of a command. text: words, see `expression`. run: a recall
    id."""

    id: str | None = None
    lines: tuple[int, int] | None = None
    path: str | None = None
    tool: str | None = None
    text: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A block that a compaction took out of the window. run: recall id. line: in the original. reason: why it went."""

    run: str
    id: str
    call_id: str | None
    line: int
    kind: str
    tool: str | None
    target: str | None
    turn: int
    tokens: int
    reason: str
    piece: int
    start: int
    length: int


class RecallReader:
    """A store that is there. Raises InputError for one that can't be read, or is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise InputError("no such file", path=str(path))
        refuse_foreign(path)
        self._texts = _Pieces(path)
        # a store that may be written is opened so, because only then SQLite can take back what a crash left half done
        self._writable = os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)
        mode = "rw" if self._writable else "ro"
        with guarded(path):
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=WAIT, isolation_level=None
            )

    def __enter__(self) -> RecallReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give up the file."""
        self._connection.close()

    def runs(self) -> tuple[Run, ...]:
        """The compactions that went into the store, newest first."""
        with guarded(self.path):
            rows = self._connection.execute(
                "SELECT n, id, at, source, format, transcript_id, strategy, size, sha256, output, output_sha256 "
                "FROM runs ORDER BY n DESC"
            )
            return tuple(Run(*row) for row in rows)

    def run(self, id_: str) -> Run:
        """A compaction by its recall id. NothingFoundError when the store has none of that id."""
        runs = self.runs()
        for run in runs:
            if run.id == id_:
                return run
        known = ", ".join(run.id for run in runs[:5])
        raise NothingFoundError(f"no compaction {id_!r} in this store", path=str(self.path), hint=f"it holds {known}")

    def find(self, query: Query) -> tuple[Entry, ...]:
        """The blocks that fit, newest first: those of the newest compaction, from its last line up."""
        where, values = ["1"], list[object]()
        if query.run is not None:
            where.append("blocks.run = ?")
            values.append(self.run(query.run).number)
        if query.id is not None:
            where.append("(blocks.id = ? OR blocks.call_id = ?)")
            values += [_sql(query.id)] * 2
        if query.lines is not None:
            where.append("blocks.line BETWEEN ? AND ?")
            values += [min(n, 1 << 62) for n in query.lines]
        if query.tool is not None:
            where.append("lower(blocks.tool) = lower(?)")
            values.append(_sql(query.tool))
        with guarded(self.path):
            wanted = None if query.text is None else self._search(query.text)
            rows = self._connection.execute(
                "SELECT blocks.n, runs.id, blocks.id, call_id, line, kind, tool, target, turn, tokens, reason, piece, "
                f"start, length FROM blocks JOIN runs ON runs.n = blocks.run WHERE {' AND '.join(where)} "
                "ORDER BY blocks.run DESC, line DESC, blocks.n DESC",
                values,
            )
            found = []
            for number, *fields in rows:
                if wanted is not None and number not in wanted:
                    continue
                hidden = fields[6]
                fields[6] = None if hidden is None else veiled(hidden).decode("utf-8", "surrogatepass")
                if query.path is None or names_path(fields[6], query.path):
                    found.append(Entry(*fields))
            return tuple(found)

    def text(self, entry: Entry) -> str:
        """What a block held, exactly."""
        with guarded(self.path):
            data = self._texts.get(self._connection, entry.piece)
        return data[entry.start : entry.start + entry.length].decode("utf-8", "surrogatepass")

    def original(self, run: Run) -> Iterator[bytes]:
        """The original of a compaction in pieces. Raises InputError after the last one when they are not what went in,
        so that whoever writes them must not keep what was written."""
        digest, size = hashlib.sha256(), 0
        pieces = _Pieces(self.path)
        with guarded(self.path):
            numbers = [
                row[0]
                for row in self._connection.execute(
                    "SELECT n FROM pieces WHERE run = ? AND original = 1 ORDER BY n", (run.number,)
                )
            ]
        for number in numbers:
            with guarded(self.path):
                piece = pieces.get(self._connection, number)
            digest.update(piece)
            size += len(piece)
            yield piece
        if size != run.size or digest.hexdigest() != run.sha256:
            raise InputError("the original in this recall store is damaged", path=str(self.path))

    def _search(self, text: str) -> set[int]:
        match = expression(text)
        schema = "main" if self._writable else "temp"
        index = WordIndex(self._connection, schema)
        waiting = "SELECT n FROM runs WHERE indexed = 0"
        if self._connection.execute(waiting).fetchone() is not None:
            self._connection.execute("BEGIN IMMEDIATE" if self._writable else "BEGIN")
            try:
                for (run,) in self._connection.execute(waiting).fetchall():
                    index.add(texts_of(self._connection, run))
                    if self._writable:
                        self._connection.execute("UPDATE runs SET indexed = 1 WHERE n = ?", (run,))
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
        found = WordIndex(self._connection).find(match)
        return found if self._writable else found | index.find(match)


def texts_of(connection: sqlite3.Connection, run: int) -> Iterator[tuple[int, str]]:
    """Row number and text of each block of a run."""
    pieces = _Pieces(Path())
    rows = connection.execute("SELECT n, piece, start, length FROM blocks WHERE run = ? ORDER BY n", (run,))
    for number, piece, start, length in rows.fetchall():
        data = pieces.get(connection, piece)[start : start + length]
        yield number, data.decode("utf-8", "surrogatepass")


def names_path(target: str | None, path: str) -> bool:
    """Whether what a call acts on is this file, one whose path ends so or fits the pattern, or a command with it."""
    if not target or not path:
        return False
    path = path.removeprefix("./")
    words = [target, *(word.strip("\"'`;,()<>") for word in target.split())]
    if any(mark in path for mark in "*?["):
        return any(fnmatch.fnmatchcase(word, path) or fnmatch.fnmatchcase(word, f"*/{path}") for word in words)
    if target.startswith("…") and path.endswith(target[1:]):
        return True  # a long path was cut at its beginning
    return any(word.removeprefix("./") == path or word.endswith(f"/{path}") for word in words)


def _sql(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


class _Pieces:
    """Unpacked pieces of a store; the newest few are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[int, bytes] = {}

    def get(self, connection: sqlite3.Connection, number: int) -> bytes:
        import zstandard

        if number not in self._kept:
            row = connection.execute("SELECT data FROM pieces WHERE n = ?", (number,)).fetchone()
            try:
                data = zstandard.ZstdDecompressor().decompress(veiled(row[0] if row else b""))
            except zstandard.ZstdError:
                raise sqlite3.DatabaseError("a piece of it is damaged") from None
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[number] = data
        return self._kept[number]
