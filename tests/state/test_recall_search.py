"""Finding blocks in a recall store."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import UsageError
from ctxctl.state import recall, recall_reader
from ctxctl.state.recall import RecallStore
from ctxctl.state.recall_reader import Query, RecallReader, names_path
from ctxctl.state.recall_words import expression

Made = Callable[..., Path]
CASE = Path(__file__).parents[3] / "shared" / "cases" / "079-secrets-in-summary"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(), ["5.0", "4.1", "3.0", "2.0", "1.0"]),
        (Query(id="4.1"), ["4.1"]),
        (Query(id="toolu_4"), ["4.1"]),
        (Query(id="4.10"), []),
        (Query(lines=(2, 4)), ["4.1", "3.0", "2.0"]),
        (Query(lines=(9, 10**30)), []),
        (Query(tool="read"), ["3.0", "2.0"]),
        (Query(path="/srv/app/src/app.ts"), ["3.0", "2.0"]),
        (Query(path="src/app.ts"), ["3.0", "2.0"]),
        (Query(path="./src/app.ts"), ["3.0", "2.0"]),
        (Query(path="app.ts"), ["3.0", "2.0"]),
        (Query(path="pp.ts"), []),
        (Query(path="*.test.ts"), ["4.1"]),
        (Query(path="src/*.ts"), ["3.0", "2.0"]),
        (Query(path="test/app.test.ts"), ["4.1"]),
        (Query(text="axios"), ["3.0", "1.0"]),
        (Query(text="AXIOS billing"), ["1.0"]),
        (Query(text='"rate limit"'), ["4.1"]),
        (Query(text='"limit rate"'), []),
        (Query(text="limit rate"), ["4.1"]),
        (Query(text="exceed*"), ["4.1"]),
        (Query(text="exceed"), []),
        (Query(text="登录"), ["5.0"]),
        (Query(text="录登"), []),
        (Query(text="/srv/app/src/app.ts"), ["2.0"]),
        (Query(text="axios", tool="Read"), ["3.0"]),
        (Query(text="axios", lines=(1, 2)), ["1.0"]),
    ],
    ids=str,
)
def test_queries(made: Made, query: Query, expected: list[str]) -> None:
    with RecallReader(made()) as store:
        assert [entry.id for entry in store.find(query)] == expected


@pytest.mark.parametrize(
    "text", ["AND", "NOT axios", "axios OR", "NEAR(", 'a"b', "col:axios", "^axios", "a*b", "-axios"]
)
def test_nothing_but_words_quotes_and_stars_is_an_operator(made: Made, text: str) -> None:
    with RecallReader(made()) as store:
        store.find(Query(text=text))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_no_query_raises_anything_but_a_usage_error(query: str) -> None:
    try:
        match = expression(query)
    except UsageError:
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='')")
        connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "( ) ^ -"])
def test_a_query_without_a_word(query: str) -> None:
    with pytest.raises(UsageError, match="no word"):
        expression(query)


def test_large_texts_are_indexed_by_the_first_search(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "AT_ONCE", 10)
    path = made()
    plain = path.stat().st_size
    with RecallReader(path) as store:
        assert [e.id for e in store.find(Query(text="axios"))] == ["3.0", "1.0"]
    assert path.stat().st_size > plain
    before = path.read_bytes()
    with RecallReader(path) as store:
        assert [e.id for e in store.find(Query(text="axios billing"))] == ["1.0"]
    assert path.read_bytes() == before
    monkeypatch.undo()
    made(strategy="again")
    with RecallReader(path) as store:
        assert [e.id for e in store.find(Query(text="axios"))] == ["3.0", "1.0"] * 2


def test_a_store_that_may_not_be_written_is_searched_all_the_same(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setattr(recall, "AT_ONCE", 10)
    path = made(strategy="not indexed")
    before = path.read_bytes()
    monkeypatch.setattr(recall_reader.os, "access", lambda path, mode: mode != os.W_OK)
    with RecallReader(path) as store:
        for _ in range(2):
            assert [e.id for e in store.find(Query(text="axios"))] == ["3.0", "1.0"] * 2
    assert path.read_bytes() == before


def test_without_full_text_search_the_rest_works(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.state import recall_words

    monkeypatch.setattr(recall_words, "MODULE", "fts55")
    path = made()
    with RecallReader(path) as store:
        assert len(store.find(Query(tool="Bash"))) == 2
        with pytest.raises(UsageError, match="FTS5") as caught:
            store.find(Query(text="axios"))
        assert "--path" in str(caught.value.hint)
    monkeypatch.undo()
    with RecallReader(path) as store:
        assert len(store.find(Query(text="axios"))) == 2


@pytest.mark.parametrize(
    ("target", "path", "fits"),
    [
        (None, "a", False),
        ("a b/c.ts", "a b/c.ts", True),
        ("cat 'src/x.py' | head", "src/x.py", True),
        ("cat src/x.py;", "x.py", True),
        ("src/x.pyc", "x.py", False),
        ("src/x.py", "*.py", True),
        ("src/x.py", "", False),
        ("…long/src/x.py", "/very/long/src/x.py", True),
        ("…long/src/x.py", "src/x.py", True),
        ("…long/src/x.py", "/other/src/x.py", False),
    ],
)
def test_paths(target: str | None, path: str, fits: bool) -> None:
    assert names_path(target, path) is fits


def test_credentials_do_not_stand_in_the_store(tmp_path: Path) -> None:
    pytest.importorskip("ctxctl.guard.sanitize")
    if not CASE.is_dir():
        pytest.skip("the cases are not here")
    path = tmp_path / "x.recall.db"
    lines = (CASE / "input.jsonl").read_bytes().splitlines(keepends=True)
    with RecallStore(path, mode_of=None) as store:
        store.begin(source="x", format="f", transcript_id=None, strategy="s", now="2026-11-30T10:15:00Z")
        store.original(lines)
        for number, line in enumerate(lines, 1):
            for index, text in enumerate(_strings(json.loads(line))):
                store.block(
                    id=f"{number}.{index}",
                    line=number,
                    kind="tool_result",
                    tool="Bash",
                    target=text,
                    turn=1,
                    tokens=1,
                    reason="r",
                    text=text,
                )
        store.commit("o", "0")
    with RecallReader(path) as store:
        store.find(Query(text="key"))
        kept = "\n".join(store.text(entry) for entry in store.find(Query()))
    data = path.read_bytes()
    secrets = (CASE / "secrets.txt").read_text().split()
    assert len(secrets) == 5
    for secret in secrets:
        assert secret in kept
        parts = [secret, secret.lower(), *(part for part in ("hunter2hunter2", "synthetic.bearer") if part in secret)]
        assert not any(part.encode() in data for part in parts), secret


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
