"""The recall store: exact, whole or not there, and shared by several compactions."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.state.recall import RecallStore
from ctxctl.state.recall_file import is_store, store_beside
from ctxctl.state.recall_reader import Query, RecallReader

Made = Callable[..., Path]
Kept = SimpleNamespace
Factory = pytest.TempPathFactory
NOW = "2026-11-30T10:15:00.000Z"
WRITER = """
import sys
from pathlib import Path
from ctxctl.state.recall import RecallStore
path, name, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with RecallStore(path, mode_of=None) as store:
    store.begin(source="/w/x", format="f", transcript_id=None, strategy=name, now="2026-11-30T10:15:00Z")
    store.original(b"%d of " % n + name.encode() * 50 for n in range(size))
    for n in range(size):
        store.block(id=f"{n}.0", line=n, kind="assistant", tool=None, target=None, turn=n, tokens=1, reason="r",
                    text=f"word{n} of {name}")
    print("ready", flush=True)
    print(store.commit("/w/small", "0" * 64))
"""


def test_what_went_in_comes_out(kept: Kept, made: Made) -> None:
    with RecallReader(made()) as store:
        (run,) = store.runs()
        assert b"".join(store.original(run)) == b"".join(kept.original)
        assert (run.size, run.sha256) == (
            sum(map(len, kept.original)),
            hashlib.sha256(b"".join(kept.original)).hexdigest(),
        )
        assert (run.source, run.format, run.transcript_id, run.at) == ("/w/big.jsonl", "claude-code", "s1", NOW)
        for id_, (kind, tool, target, text) in kept.texts.items():
            (entry,) = store.find(Query(id=id_))
            assert (entry.kind, entry.tool, entry.target, store.text(entry)) == (kind, tool, target, text)
            assert entry.reason == f"older than {entry.line}" and entry.run == run.id


@settings(max_examples=30, deadline=None)
@given(
    pieces=st.lists(st.binary(max_size=300), max_size=20),
    texts=st.lists(st.text(st.characters(codec=None), max_size=60), max_size=10),
)
def test_any_bytes_and_any_text(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("store") / "x.recall.db"
    with RecallStore(path, mode_of=None) as store:
        store.begin(source="\udcff.jsonl", format="f", transcript_id=None, strategy="s", now=NOW)
        store.original(pieces)
        for n, text in enumerate(texts, 1):
            store.block(id=f"{n}.0", line=n, kind="k", tool=text, target=text, turn=n, tokens=0, reason=text, text=text)
        store.commit("o", "0")
    with RecallReader(path) as reader:
        assert b"".join(reader.original(reader.runs()[0])) == b"".join(pieces)
        assert [reader.text(e) for e in reversed(reader.find(Query()))] == texts
        assert [e.target for e in reversed(reader.find(Query()))] == texts


def test_recall_ids_are_short_told_apart_and_the_same_each_time(kept: Kept, tmp_path: Path, made: Made) -> None:
    def begun(path: Path, **options: str) -> str:
        with RecallStore(path, mode_of=None) as store:
            return kept.fill(store, **options)

    first = begun(tmp_path / "a.db")
    assert first == begun(tmp_path / "b.db") and first.startswith("20261130-101500-") and len(first) == 20
    assert begun(tmp_path / "a.db", strategy="progressive") != first
    path = made()
    made()
    made(now="2026-11-30T10:16:00Z")
    with RecallReader(path) as store:
        ids = [run.id for run in store.runs()]
        assert len(set(ids)) == 3 and ids[0].startswith("20261130-101600")
        assert len(store.find(Query())) == 3 * len(kept.texts)
        assert {e.run for e in store.find(Query(run=ids[1], text="axios"))} == {ids[1]}
        assert [e.run for e in store.find(Query(id="3.0"))] == ids
        with pytest.raises(NothingFoundError, match="nosuch"):
            store.find(Query(run="nosuch"))


def test_without_a_commit_nothing_is_left(kept: Kept, tmp_path: Path) -> None:
    path = tmp_path / "x.recall.db"
    with pytest.raises(RuntimeError), RecallStore(path, mode_of=None) as store:
        kept.fill(store)
        raise RuntimeError
    with RecallStore(path, mode_of=None) as store:
        kept.fill(store)
    with RecallStore(path, mode_of=None) as store, pytest.raises(ValueError, match="begin"):
        store.commit("o", "0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"my notes\n", b"SQLite format 3\x00" + b"\x00" * 200])
def test_another_file_is_never_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.recall.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a recall store"):
        RecallStore(path, mode_of=None)
    with pytest.raises(InputError, match="not a recall store"):
        RecallReader(path)
    assert path.read_bytes() == content and not is_store(path)


def test_a_store_of_a_later_version_is_refused(made: Made) -> None:
    path = made()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(InputError, match="version 99") as caught:
        RecallReader(path)
    assert "newer" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("source", "before", "expected"), [(0o600, None, 0o600), (0o644, None, 0o644), (0o600, 0o644, 0o600)]
)
def test_no_wider_mode_than_the_source(
    kept: Kept, tmp_path: Path, source: int, before: int | None, expected: int
) -> None:
    big, path = tmp_path / "big.jsonl", tmp_path / "x.recall.db"
    big.touch()
    for mode in (m for m in (before, source) if m is not None):
        big.chmod(mode)
        old = os.umask(0o022)
        try:
            with RecallStore(path, mode_of=str(big)) as store:
                drafts = [p for p in tmp_path.iterdir() if p.suffix == ".tmp"]
                assert [stat.S_IMODE(p.stat().st_mode) for p in drafts] == [0o600]
                kept.fill(store, strategy=str(mode))
                store.commit("o", "0")
        finally:
            os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == expected


def test_a_link_to_a_store_stays_one(tmp_path: Path, made: Made) -> None:
    path = made()
    real = path.rename(tmp_path / "real.db")
    path.symlink_to(real)
    made(strategy="again")
    assert path.is_symlink()
    with RecallReader(path) as store:
        assert len(store.runs()) == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be written"), RecallStore(tmp_path / "no" / "x.db", mode_of=None):
        pass


def test_damage_is_said(made: Made) -> None:
    path = made()
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\x00" * (len(data) - 100))
    with pytest.raises(InputError, match="recall store"), RecallReader(path) as store:
        store.runs()
    path.write_bytes(data)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE pieces SET data = x'00' WHERE original = 1")
    connection.close()
    with RecallReader(path) as store, pytest.raises(InputError, match="damaged"):
        list(store.original(store.runs()[0]))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM pieces WHERE original = 1")
    connection.close()
    with RecallReader(path) as store, pytest.raises(InputError, match="damaged"):
        list(store.original(store.runs()[0]))


def test_texts_do_not_stand_in_the_file_as_they_are(made: Made) -> None:
    data = made().read_bytes()
    assert b"migrate billing" not in data and b"/srv/app/src" not in data and b"torn" not in data


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("same", [True, False], ids=["one compaction twice", "several"])
def test_several_at_once_all_go_in(tmp_path: Path, same: bool) -> None:
    path = tmp_path / "x.recall.db"
    writers = [start(str(path), "a" if same else f"a{n}", "40") for n in range(5)]
    ids = [writer.communicate(timeout=60)[0].split()[1] for writer in writers]
    assert all(writer.returncode == 0 for writer in writers) and len(set(ids)) == 5
    with RecallReader(path) as store:
        assert {run.id for run in store.runs()} == set(ids)
        for run in store.runs():
            assert len(list(store.original(run))) == 1
            found = store.find(Query(run=run.id, text="word7"))
            assert [store.text(e) for e in found] == [f"word7 of {run.strategy}"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("there", [True, False], ids=["added to", "new"])
def test_killed_at_any_moment_the_store_is_whole(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "x.recall.db"
    if there:
        assert start(str(path), "first", "10").wait(60) == 0
    before = 1 if there else 0
    for number in range(6):
        writer = start(str(path), f"n{number}", "3000")
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        time.sleep(0.004 * number)
        writer.send_signal(signal.SIGKILL)
        writer.wait(60)
        writer.stdout.close()
        if not before and not path.exists():
            continue
        with RecallReader(path) as store:
            runs = store.runs()
            assert len(runs) in (before, before + 1)
            before = len(runs)
            for run in runs:
                assert sum(map(len, store.original(run))) == run.size
                assert len(store.find(Query(run=run.id))) == (10 if run.strategy == "first" else 3000)
                assert len(store.find(Query(run=run.id, text="word9"))) == 1


def test_a_large_original_does_not_lie_in_memory(tmp_path: Path) -> None:
    code = """
import resource, sys, os
from pathlib import Path
from ctxctl.state.recall import RecallStore
from ctxctl.state.recall_reader import RecallReader
line = os.urandom(4096).hex().encode() + b"\\n"
with RecallStore(Path(sys.argv[1]), mode_of=None) as store:
    store.begin(source="x", format="f", transcript_id=None, strategy="s", now="2026-11-30T10:15:00Z")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store.original(line for _ in range(12_000))
    store.commit("o", "0")
with RecallReader(Path(sys.argv[1])) as store:
    assert sum(map(len, store.original(store.runs()[0]))) == 12_000 * len(line)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.db")], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 30


def test_beside_its_output(tmp_path: Path) -> None:
    assert store_beside(tmp_path / "small.jsonl") == tmp_path / "small.jsonl.recall.db"
