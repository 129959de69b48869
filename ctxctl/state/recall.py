"""The recall store: what a compaction took out of a window, and the whole original: nothing is lost for good."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ctxctl.errors import InputError
from ctxctl.state.files import bounded_mode
from ctxctl.state.recall_file import LEVEL, PIECE, WAIT, create, guarded, refuse_foreign, veiled
from ctxctl.state.recall_reader import texts_of
from ctxctl.state.recall_words import AT_ONCE, WordIndex

__all__ = ["RecallStore"]

_RUN = "id, at, source, format, transcript_id, strategy, size, sha256, output, output_sha256, text_size"
_BLOCK = "id, call_id, line, kind, tool, target, turn, tokens, reason"


class RecallStore:
    """Writes one compaction into a store, which holds the runs of several.

    `begin`, then `original` and `block` in any order, then `commit`; without that, leaving the context leaves no trace.
    All of it goes to a file beside the store first, which becomes the store, or is added to the one that is there in
    one transaction: whenever the process dies, the store is what it was or whole. Raises InputError when the store
    can't be written, or is something else.
    """

    def __init__(self, path: Path, *, mode_of: str | None) -> None:
        """path: of the store. mode_of: the transcript, whose permissions bound the store's."""
        self.path = Path(os.path.realpath(path))
        self.recall_id = ""
        self.size = 0
        self.sha256 = ""
        self._mode = bounded_mode(mode_of)
        self._run: dict[str, Any] = {}
        self._connection: sqlite3.Connection | None = None
        self._draft: Path | None = None
        self._packer: Any = None
        self._texts = bytearray()
        self._text_size = 0
        self._pieces = 0
        self._waiting: list[tuple[Any, ...]] = []
        if self.path.exists():
            refuse_foreign(self.path)

    def __enter__(self) -> RecallStore:
        import zstandard

        self._packer = zstandard.ZstdCompressor(level=LEVEL)
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".tmp")
        except OSError as error:
            raise InputError(f"can't be written: {error.strerror or error}", path=str(self.path)) from None
        os.close(handle)
        self._draft = Path(name)
        try:
            with guarded(self.path):
                self._connection = sqlite3.connect(name, isolation_level=None)
                # the draft is given up when we die; only a statement that fails must be taken back
                self._connection.executescript("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF")
                create(self._connection)
                self._connection.execute("BEGIN")
        except BaseException:  # a disk that is full, for one
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._draft is not None:
            with suppress(FileNotFoundError):
                self._draft.unlink()
            self._draft = None

    def begin(self, *, source: str, format: str, transcript_id: str | None, strategy: str, now: str) -> str:
        """Start the run of a compaction; returns its recall id: the time, and four digits that tell it from others."""
        known = self._known_ids()
        digits = re.sub(r"\D", "", now)[:14]
        stamp = f"{digits[:8]}-{digits[8:]}" if len(digits) == 14 else digits or "0"
        seed = "\x00".join((os.path.abspath(source), format, transcript_id or "", strategy, now, str(len(known))))
        base = f"{stamp}-{hashlib.sha256(seed.encode('utf-8', 'replace')).hexdigest()[:4]}"
        self.recall_id = _unused(base, known)
        self._run = {
            "id": self.recall_id,
            "at": now,
            "source": _printable(source),
            "format": format,
            "transcript_id": None if transcript_id is None else _printable(transcript_id),
            "strategy": strategy,
        }
        return self.recall_id

    def original(self, lines: Iterable[bytes]) -> None:
        """Take the bytes of the original file, in pieces of any size."""
        digest, size, buffer = hashlib.sha256(), 0, bytearray()
        for line in lines:
            buffer += line
            while len(buffer) >= PIECE:
                piece = bytes(buffer[:PIECE])
                del buffer[:PIECE]
                digest.update(piece)
                size += len(piece)
                self._piece(piece, original=True)
        if buffer:
            digest.update(buffer)
            size += len(buffer)
            self._piece(bytes(buffer), original=True)
        self.size, self.sha256 = size, digest.hexdigest()

    def block(
        self,
        *,
        id: str,
        line: int,
        kind: str,
        tool: str | None,
        target: str | None,
        turn: int,
        tokens: int,
        reason: str,
        text: str,
        call_id: str | None = None,
    ) -> None:
        """Take a block that left the window or was replaced. text: what it held; reason: why it went."""
        data = text.encode("utf-8", "surrogatepass")
        hidden = None if target is None else veiled(target.encode("utf-8", "surrogatepass"))
        named = tuple(None if x is None else _printable(x) for x in (id, call_id))
        tool = None if tool is None else _printable(tool)
        self._waiting.append(
            (*named, line, kind, tool, hidden, turn, tokens, _printable(reason), len(self._texts), len(data))
        )
        self._texts += data
        self._text_size += len(data)
        if len(self._texts) >= PIECE:
            self._flush()

    def commit(self, output: str, output_sha256: str) -> str:
        """Make the run part of the store. output: the compacted transcript. Returns the recall id, which got a further
        number if the same compaction ran twice at once."""
        if self._connection is None or self._draft is None or not self._run or not self.sha256:
            raise ValueError("a run is committed once, after `begin` and `original`")
        self._run |= {
            "size": self.size,
            "sha256": self.sha256,
            "output": _printable(os.path.abspath(output)),
            "output_sha256": output_sha256,
            "text_size": self._text_size,
        }
        self._flush()
        with guarded(self.path):
            marks = ", ".join("?" * len(self._run))
            self._connection.execute(f"INSERT INTO runs(n, {_RUN}) VALUES (1, {marks})", tuple(self._run.values()))
            self._index(self._connection, 1)
            self._connection.execute("COMMIT")
            self._connection.close()
            self._connection = None
            if not self._publish(self._draft):
                self._add(self._draft)
        return self.recall_id

    def _piece(self, data: bytes, *, original: bool) -> None:
        assert self._connection is not None, "the store is used within its context"
        self._pieces += 1
        packed = veiled(self._packer.compress(data))
        with guarded(self.path):
            self._connection.execute("INSERT INTO pieces VALUES (?, 1, ?, ?)", (self._pieces, original, packed))

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._piece(bytes(self._texts), original=False)
        assert self._connection is not None
        with guarded(self.path):
            self._connection.executemany(
                f"INSERT INTO blocks(run, {_BLOCK}, start, length, piece) VALUES (1, {'?, ' * 11}{self._pieces})",
                self._waiting,
            )
        self._texts = bytearray()
        self._waiting = []

    def _index(self, connection: sqlite3.Connection, run: int) -> None:
        """Index what can be indexed in no time; the rest is indexed by the first search."""
        if self._text_size > AT_ONCE:
            return
        from ctxctl.errors import UsageError

        with suppress(UsageError):  # without FTS5 the store serves all but searches, which say so
            WordIndex(connection).add(texts_of(connection, run))
            connection.execute("UPDATE runs SET indexed = 1 WHERE n = ?", (run,))

    def _known_ids(self) -> set[str]:
        if not self.path.exists():
            return set()
        with guarded(self.path), closing(sqlite3.connect(self.path, timeout=WAIT)) as connection:
            return {row[0] for row in connection.execute("SELECT id FROM runs")}

    def _publish(self, draft: Path) -> bool:
        """Make the draft the store; False when there is one, which is never replaced."""
        try:
            os.chmod(draft, self._mode)
            with open(draft, "rb") as file:
                os.fsync(file.fileno())
            os.link(draft, self.path)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if self.path.exists():
                return False
            try:
                os.replace(draft, self.path)
            except OSError as error:
                raise InputError(f"can't be written: {error.strerror or error}", path=str(self.path)) from None
        return True

    def _add(self, draft: Path) -> None:
        """Copy the draft's run into the store, in one transaction."""
        refuse_foreign(self.path)
        with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as store:
            store.execute("ATTACH ? AS draft", (str(draft),))
            store.execute("BEGIN IMMEDIATE")
            known = {row[0] for row in store.execute("SELECT id FROM main.runs")}
            self.recall_id = _unused(self.recall_id, known)
            (run,) = store.execute("SELECT coalesce(max(n), 0) + 1 FROM main.runs").fetchone()
            (pieces,) = store.execute("SELECT coalesce(max(n), 0) FROM main.pieces").fetchone()
            columns = _RUN.removeprefix("id, ")
            store.execute(
                f"INSERT INTO main.runs(n, id, {columns}) SELECT ?, ?, {columns} FROM draft.runs", (run, self.recall_id)
            )
            store.execute(
                "INSERT INTO main.pieces SELECT n + ?, ?, original, data FROM draft.pieces ORDER BY n", (pieces, run)
            )
            store.execute(
                f"INSERT INTO main.blocks(run, {_BLOCK}, piece, start, length) "
                f"SELECT ?, {_BLOCK}, piece + ?, start, length FROM draft.blocks ORDER BY n",
                (run, pieces),
            )
            self._index(store, run)
            store.execute("COMMIT")
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & ~self._mode:
            with suppress(OSError):  # another user's store: its owner decides
                os.chmod(self.path, mode & self._mode)


def _printable(text: str) -> str:
    """A text that SQLite can take: lone surrogates, which stand for bytes that are not UTF-8, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _unused(id_: str, known: set[str]) -> str:
    number, found = 1, id_
    while found in known:
        number += 1
        found = f"{id_}-{number}"
    return found
