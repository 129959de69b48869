"""Transcripts come as files, pipes, gzip and zstd; what can't be one is said at once."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

import ctxctl
from ctxctl.errors import InputError, NothingFoundError
from ctxctl.formats.streams import open_stream


def session(turns: int = 3) -> bytes:
    records: list[dict[str, Any]] = []
    for n in range(turns):
        prompt = {"role": "user", "content": f"question {n}"}
        answer = {
            "id": f"msg_{n}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": f"answer {n}"}],
            "usage": {"input_tokens": 10 * n + 10, "output_tokens": 5},
        }
        records += [
            {"type": "user", "uuid": f"u{n}", "parentUuid": None, "sessionId": "s", "message": prompt},
            {"type": "assistant", "uuid": f"a{n}", "parentUuid": f"u{n}", "sessionId": "s", "message": answer},
        ]
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def frames(data: bytes) -> bytes:
    middle = data.index(b"\n") + 1
    return zstandard.compress(data[:middle]) + zstandard.compress(data[middle:])


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lambda d: gzip.compress(d[:99]) + gzip.compress(d[99:]), zstandard.compress, frames],
    ids=["plain", "gzip", "two gzip members", "zstd", "two zstd frames"],
)
def test_packed(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "whatever.name"
    path.write_bytes(pack(session()))
    t = ctxctl.read(str(path))
    assert [b.text for b in t.blocks][:2] == ["question 0", "answer 0"]
    assert len(t.blocks) == 6 and t.complete and t.diagnostics == ()
    assert b"".join(ctxctl.write(t)) == session()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_packed_file_that_ends_early_is_read_as_far_as_it_goes(tmp_path: Path, pack: Any) -> None:
    random = Random(1)
    noise = [{"type": "mode", "sessionId": "s", "x": random.randbytes(3000).hex()} for _ in range(200)]
    data = session() + b"".join(json.dumps(r).encode() + b"\n" for r in noise)
    path = tmp_path / "cut"
    path.write_bytes(pack(data)[:-300_000])
    t = ctxctl.read(str(path))
    assert not t.complete
    assert "torn_compression" in [d.code for d in t.diagnostics]
    assert len(t.blocks) == 6


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_packed_file_that_holds_nothing_whole(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "cut"
    path.write_bytes(pack(session())[:14])
    with pytest.raises((InputError, NothingFoundError)):
        ctxctl.read(str(path))


def test_damaged_gzip(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(session(200)))
    data[len(data) // 2] ^= 0xFF
    data[len(data) // 2 + 1] ^= 0xFF
    path = tmp_path / "x.gz"
    path.write_bytes(bytes(data))
    try:
        t = ctxctl.read(str(path))
    except InputError:
        return
    assert not t.complete


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04rest", "zip"),
        (b"SQLite format 3\x00rest", "SQLite"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, head: bytes, what: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(head)
    with pytest.raises(InputError, match=what) as caught:
        ctxctl.read(str(path))
    assert caught.value.path == str(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        ctxctl.read(str(tmp_path / "none.jsonl"))
    assert caught.value.hint is not None
    with pytest.raises(InputError, match="folder"):
        ctxctl.read(str(tmp_path))
    with pytest.raises(InputError):
        ctxctl.read("a\x00b")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(session())
    path.chmod(0)
    with pytest.raises(InputError, match="can't be read"):
        ctxctl.read(str(path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_stdin(monkeypatch: pytest.MonkeyPatch, pack: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(session()))))
    t = ctxctl.read("-")
    assert t.path == "-" and len(t.blocks) == 6


def test_stdin_without_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(NothingFoundError):
        ctxctl.read("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(session()))
    writer.start()
    t = ctxctl.read(str(path))
    writer.join()
    assert len(t.blocks) == 6


def test_lines_are_split_at_line_feeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    data = b"a\r\nb\x0bc\x0cd\xe2\x80\xa8e\xc2\x85f\rg\n\nlast"
    path.write_bytes(data)
    with open_stream(str(path)) as stream:
        lines = list(stream.lines())
        assert stream.size == len(data) and stream.position() == len(data)
    assert lines == [b"a\r\n", b"b\x0bc\x0cd\xe2\x80\xa8e\xc2\x85f\rg\n", b"\n", b"last"]


def test_a_line_of_several_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    text = "word " * 1_000_000
    record = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": text}}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert ctxctl.read(str(path)).blocks[0].text == text


def test_progress_is_told_in_bytes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    line = json.dumps({"type": "mode", "sessionId": "s", "x": "y" * 100_000}).encode() + b"\n"
    path.write_bytes(session() + line * 120)
    seen: list[tuple[int, int | None]] = []
    ctxctl.scan(str(path), lambda block: None, progress=lambda done, total: seen.append((done, total)))
    assert seen and seen == sorted(seen)
    assert {total for _, total in seen} == {path.stat().st_size}
    assert all(0 < done <= path.stat().st_size for done, _ in seen)


def test_reading_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(session())
    before = path.stat()
    ctxctl.read(str(path))
    assert path.stat().st_mtime_ns == before.st_mtime_ns and path.read_bytes() == session()
    assert [p.name for p in tmp_path.iterdir()] == ["x.jsonl"]
