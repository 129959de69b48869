"""Verifying an audit trail: whatever was done to it is found, at the first place where it was."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import NothingFoundError
from ctxctl.state.audit import LARGEST, Event, append
from ctxctl.state.audit_verify import NAMED, anchor_of, read, verify

NOW = "2026-11-30T10:15:00+00:00"
COUNT = 8


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A sound trail of COUNT records."""
    path = tmp_path_factory.mktemp("sound") / "a.jsonl"
    append(path, [Event("eviction", {"count": n, "policy": "hybrid"}, n, "s1") for n in range(COUNT)], now=NOW)
    found = path.read_bytes().splitlines(keepends=True)
    assert len(found) == COUNT and verify(path).intact
    return found


def dumped(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def forged(line: bytes, **changes: Any) -> bytes:
    """A record with other content, and a hash that fits it."""
    record = {**json.loads(line), **changes}
    del record["hash"]
    record["hash"] = hashlib.sha256(dumped(record)[:-1]).hexdigest()
    return dumped(record)


def changed(line: bytes, **changes: Any) -> bytes:
    return dumped({**json.loads(line), **changes})


Lines = list[bytes]
# what is done; line and number of the first record that is named; a word of why
DONE: dict[str, tuple[Callable[[Lines], Lines], int, int | None, str]] = {
    "content": (lambda x: [*x[:3], x[3].replace(b'"count":3', b'"count":9'), *x[4:]], 4, 4, "was changed"),
    "content of the first": (lambda x: [x[0].replace(b"hybrid", b"fifo"), *x[1:]], 1, 1, "was changed"),
    "content of the last": (lambda x: [*x[:7], x[7].replace(b"hybrid", b"fifo")], 8, 8, "was changed"),
    "time": (lambda x: [*x[:3], x[3].replace(b"10:15", b"10:14"), *x[4:]], 4, 4, "was changed"),
    "hash": (lambda x: [*x[:3], changed(x[3], hash="0" * 64), *x[4:]], 4, 4, "was changed"),
    "content and hash": (lambda x: [*x[:3], forged(x[3], turn=99), *x[4:]], 5, 5, "does not follow"),
    "prev": (lambda x: [*x[:3], forged(x[3], prev="1" * 64), *x[4:]], 4, 4, "does not follow"),
    "removed": (lambda x: [*x[:3], *x[4:]], 4, 4, "missing"),
    "several removed": (lambda x: [*x[:3], *x[6:]], 4, 4, "4 to 6 are missing"),
    "removed and renumbered": (lambda x: [*x[:3], forged(x[4], seq=4), *x[5:]], 4, 4, "does not follow"),
    "first removed": (lambda x: x[1:], 1, 1, "missing"),
    "first three removed": (lambda x: x[3:], 1, 1, "1 to 3 are missing"),
    "first replaced": (lambda x: [forged(x[0], prev="1" * 64), *x[1:]], 1, 1, "not the first"),
    "all but the last": (lambda x: x[-1:], 1, 1, "missing"),
    "reordered": (lambda x: [*x[:3], x[4], x[3], *x[5:]], 4, 4, "missing"),
    "reversed": (lambda x: x[::-1], 1, 1, "missing"),
    "inserted copy": (lambda x: [*x[:4], x[1], *x[4:]], 5, 2, "put in or moved"),
    "inserted twin": (lambda x: [*x[:4], x[3], *x[4:]], 5, 4, "put in or moved"),
    "inserted forgery": (
        lambda x: [*x[:4], forged(x[4], turn=1), *x[4:]],
        6,
        5,
        "put in or moved",
    ),
    "two trails": (lambda x: [*x, *x], COUNT + 1, 1, "put in or moved"),
    "no JSON": (lambda x: [*x[:3], b"hello\n", *x[3:]], 4, None, "no record"),
    "other JSON": (lambda x: [*x[:3], b'{"a":1}\n', *x[3:]], 4, None, "no record"),
    "list": (lambda x: [*x[:3], b"[1]\n", *x[3:]], 4, None, "no record"),
    "blank line": (lambda x: [*x[:3], b"\n", *x[3:]], 4, None, "no record"),
    "blank at the end": (lambda x: [*x, b"\n"], COUNT + 1, None, "no record"),
    "number as text": (lambda x: [*x[:3], changed(x[3], seq="4"), *x[4:]], 4, None, "no record"),
    "huge line": (lambda x: [*x[:3], b"x" * (3 * LARGEST) + b"\n", *x[3:]], 4, None, "no record"),
    "blanks": (lambda x: [*x[:3], x[3].replace(b'"count":3', b'"count": 3'), *x[4:]], 4, 4, "canonical"),
    "carriage returns": (lambda x: [line.replace(b"\n", b"\r\n") for line in x], 1, 1, "canonical"),
    "another order": (lambda x: [*x[:3], json.dumps(json.loads(x[3])).encode() + b"\n", *x[4:]], 4, 4, "canonical"),
    "escapes": (lambda x: [*x[:3], x[3].replace(b'"hybrid"', b'"\\u0068ybrid"'), *x[4:]], 4, 4, "canonical"),
    "a member twice": (lambda x: [*x[:3], b'{"data":{"count":0},' + x[3][1:], *x[4:]], 4, 4, "twice"),
    "a member twice within": (
        lambda x: [*x[:3], x[3].replace(b'"count":3', b'"count":9,"count":3'), *x[4:]],
        4,
        4,
        "twice",
    ),
    "cut short within": (lambda x: [*x[:3], x[3][:50] + b"\n", *x[4:]], 4, 4, "cut short"),
    "cut short at the end": (lambda x: [*x[:7], x[7][:50] + b"\n"], 8, 8, "cut short"),
    "a byte order mark": (lambda x: [b"\xef\xbb\xbf" + x[0], *x[1:]], 1, None, "no record"),
}


@pytest.mark.parametrize("name", DONE)
def test_what_was_done_is_found(lines: Lines, tmp_path: Path, name: str) -> None:
    act, line, seq, why = DONE[name]
    path = tmp_path / "a.jsonl"
    data = b"".join(act(list(lines)))
    path.write_bytes(data)
    assert data != b"".join(lines)
    found = verify(path)
    assert not found.intact and found.faults >= 1
    assert (found.broken[0].line, found.broken[0].seq) == (line, seq), found.broken
    assert why in found.broken[0].why


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_any_changed_byte_is_found(lines: Lines, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    whole = b"".join(lines)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[at]))
    path = tmp_path_factory.getbasetemp() / "byte.jsonl"
    path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    found = verify(path)
    assert not found.intact
    first = found.broken[0].line
    assert first is not None and first in (whole[:at].count(b"\n") + 1, whole[:at].count(b"\n") + 2)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_removed_stretch_but_the_end_is_found(
    lines: Lines, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    whole = b"".join(lines)
    start = data.draw(st.integers(0, len(whole) - 2))
    end = data.draw(st.integers(start + 1, len(whole) - 1))
    path = tmp_path_factory.getbasetemp() / "stretch.jsonl"
    path.write_bytes(whole[:start] + whole[end:])
    assert not verify(path).intact


def test_a_cut_end_takes_an_anchor(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    head = verify(path).anchor
    assert head is not None
    seq, hash_ = anchor_of(head)
    assert seq == COUNT and json.loads(lines[-1])["hash"] == hash_
    assert verify(path, {seq: hash_}).intact
    early = {3: json.loads(lines[2])["hash"]}
    assert verify(path, {**early, seq: hash_}).intact

    path.write_bytes(b"".join(lines[:-2]))
    assert verify(path).intact and verify(path, early).intact
    found = verify(path, {**early, seq: hash_})
    assert (found.broken[0].line, found.broken[0].seq, found.faults) == (None, COUNT, 1)
    assert "cut off" in found.broken[0].why

    prev, anew = "0" * 64, []
    for line in lines:  # all of it written anew, without a fault in itself
        anew.append(forged(line, prev=prev, transcript="s2"))
        prev = json.loads(anew[-1])["hash"]
    path.write_bytes(b"".join(anew))
    assert verify(path).intact
    found = verify(path, {**early, seq: hash_})
    assert [(b.line, b.seq) for b in found.broken] == [(3, 3), (COUNT, COUNT)]


@pytest.mark.parametrize(
    "text", ["", "5", "5:abc", "0:" + "a" * 64, "-1:" + "a" * 64, "x:" + "a" * 64, "5:" + "g" * 64]
)
def test_what_is_no_anchor(text: str) -> None:
    with pytest.raises(ValueError, match="is no anchor"):
        anchor_of(text)


def test_an_anchor_as_it_was_kept() -> None:
    assert anchor_of(" 12:" + "AB" * 32 + "\n") == (12, "ab" * 32)


def test_all_faults_are_counted_and_the_first_named(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines) + b"junk\n" * 100)
    found = verify(path)
    assert found.faults == 100 and len(found.broken) == NAMED and found.records == COUNT


def test_a_torn_end_is_told_and_the_chain_holds(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    found = verify(path)
    assert found.intact and found.torn == (COUNT,) and found.records == COUNT - 1
    append(path, [Event("save", {})], now=NOW)
    found = verify(path)
    assert found.intact and found.torn == (COUNT,) and found.records == COUNT
    assert [r["type"] for r in read(path)] == ["eviction"] * (COUNT - 1) + ["save"]


def test_what_follows_a_changed_record_goes_on_from_it(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"hybrid", b"fifo")]))
    append(path, [Event("save", {})], now=NOW)
    found = verify(path)
    assert [(b.line, b.seq) for b in found.broken] == [(COUNT, COUNT)] and found.records == COUNT + 1


def test_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError):
        verify(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(NothingFoundError):
        verify(tmp_path / "empty.jsonl")


def test_it_is_fast(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append(path, [Event("eviction", {"count": n}, n) for n in range(20_000)], now=NOW)
    start = time.perf_counter()
    assert verify(path).records == 20_000
    assert time.perf_counter() - start < 2
