"""Full-text search of a recall store: an FTS5 index over the sanitised texts (https://www.sqlite.org/fts5.html)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ctxctl.errors import UsageError
from ctxctl.state.files import sanitized

AT_ONCE = 1 << 19
"""Bytes of text up to which a compaction's index is made with it. Sanitising more takes longer than compacting it, so
that it waits for the first search."""

# SQLite's unicode61 takes a run of these for one word: each is made a word of its own, in index and query alike.
_WORDLESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
MODULE = "fts5"
_TERM = re.compile(r'"([^"]*)"|(\S+)')


def spread(text: str) -> str:
    """A text with blanks around the characters of scripts that are written without any."""
    return text if text.isascii() else _WORDLESS.sub(r" \g<0> ", text)


def expression(query: str) -> str:
    """An FTS5 expression for what a user typed: blocks that hold all words, "quoted" ones in a row, and words that
    start so with `*` at the end. Nothing else is an operator. UsageError for a query without a word."""
    terms = []
    for phrase, word in _TERM.findall(query):
        term, tail = phrase or word, ""
        if word.endswith("*"):
            term, tail = word.rstrip("*"), "*"
        term = spread("".join(c if c.isprintable() else " " for c in term)).replace('"', " ").strip()
        if any(c.isalnum() for c in term):
            terms.append(f'"{term}"{tail}')
    if not terms:
        raise UsageError(f"--text: {query!r} holds no word to look for", hint="signs are passed over: give a word")
    return " ".join(terms)


class WordIndex:
    """The index of a store. Where the store can't be written, or `schema` is `temp`, it lives as long as the connection
    does."""

    def __init__(self, connection: sqlite3.Connection, schema: str = "main") -> None:
        self._connection = connection
        self._schema = schema

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Index blocks by their row numbers. Raises UsageError where SQLite comes without FTS5."""
        with _module():
            self._connection.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._schema}.words USING {MODULE}(text, content='')"
            )
            self._connection.executemany(f"INSERT INTO {self._schema}.words(rowid, text) VALUES (?, ?)", _plain(texts))

    def find(self, match: str) -> set[int]:
        """Row numbers of the blocks that an `expression` fits. Raises UsageError where SQLite comes without FTS5."""
        schema = self._schema
        tables = "sqlite_temp_master" if schema == "temp" else "main.sqlite_master"
        if self._connection.execute(f"SELECT 1 FROM {tables} WHERE name = 'words'").fetchone() is None:
            return set()
        with _module():
            rows = self._connection.execute(f"SELECT rowid FROM {schema}.words WHERE words MATCH ?", (match,))
            return {row[0] for row in rows}


@contextmanager
def _module() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        raise UsageError(
            "this Python's SQLite has no full-text search (FTS5)",
            hint="--id, --line, --path and --tool work without it",
        ) from None


def _plain(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for number, text in texts:
        # a lone surrogate has no form in UTF-8, and a zero byte would end the text for SQLite
        safe = sanitized(text).encode("utf-8", "replace").decode().replace("\x00", " ")
        yield number, spread(safe)
