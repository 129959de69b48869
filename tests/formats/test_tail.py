"""Reading on at a point of a file gives the blocks that reading the whole gives from there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import ctxctl
from ctxctl.errors import InputError
from ctxctl.formats import FORMATS, scan
from ctxctl.formats.base import Format
from ctxctl.formats.tail import Offsets, format_of, id_of, mark_at, next_line, plain_size, scan_on
from ctxctl.model.block import Block

SAMPLES = Path(ctxctl.__file__).resolve().parents[1] / "sample_transcripts"
APPENDED = {
    "claude-code": "axios-to-fetch.jsonl",
    "codex": "codex-rollout.jsonl",
}


def test_which_agents_append_lines() -> None:
    assert {name for name, entry in FORMATS if entry.appends} == {"claude-code", "codex", "openai-chat-message"}
    document = FORMATS.get("openai-chat")("x", lambda block: None)
    with pytest.raises(ValueError, match="beginning"):
        document.point()


@pytest.mark.parametrize("name", sorted(APPENDED))
def test_from_the_point_of_each_beginning(name: str, tmp_path: Path) -> None:
    source = SAMPLES / APPENDED[name]
    lines = source.read_bytes().splitlines(keepends=True)
    every: list[Block] = []
    whole = scan(str(source), every.append, companions=False)
    path = tmp_path / "s.jsonl"
    checked = 0
    for cut in range(2, len(lines), 7):
        path.write_bytes(b"".join(lines[:cut]))
        readers: list[Format] = []
        offsets = Offsets()
        scan(str(path), lambda block: None, companions=False, store=offsets, on_reader=readers.append)
        point = readers[0].point()
        path.write_bytes(source.read_bytes())
        start = offsets.start(point.line + 1)
        assert start == sum(map(len, lines[: point.line]))
        found: list[Block] = []
        later = Offsets(start, point.line)
        transcript, _ = scan_on(str(path), found.append, FORMATS.get(name), start, point, later, id_=whole.id)
        assert (later.whole, later.lines) == (source.stat().st_size, len(lines))
        assert [without(block) for block in found] == [without(block) for block in every[point.blocks :]]
        assert (transcript.exchanges, transcript.usage[-1].turn) == (whole.exchanges, whole.usage[-1].turn)
        assert not [item for item in transcript.diagnostics if item.code == "dangling_parent"]
        checked += point.line > 0
    assert checked > 10


def without(block: Block) -> tuple[object, ...]:
    """Everything of a block but the number of its message, which is counted from where reading began."""
    return (block.id, block.kind, block.role, block.text, block.turn, block.exchange, block.tool_name, block.target)


def test_offsets_know_whole_lines() -> None:
    offsets = Offsets(100, 7)
    for data in (b"abc\n", b"\n", b"torn"):
        offsets.add(data)
    assert [offsets.start(line) for line in (8, 9, 10, 11)] == [100, 104, 105, 109]
    assert (offsets.whole, offsets.lines, offsets.end, offsets.count) == (105, 9, 109, 10)


def test_next_line_and_mark(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntwo\nthree")
    assert [next_line(str(path), at) for at in (0, 1, 4, 5, 8, 9, 13)] == [0, 4, 4, 8, 8, 13, 13]
    assert mark_at(str(path), 4) != mark_at(str(path), 8) != ""
    assert mark_at(str(path), 99) == mark_at(str(tmp_path / "none"), 0) == ""


def test_what_is_plain(tmp_path: Path) -> None:
    plain, packed = tmp_path / "s.jsonl", tmp_path / "s.jsonl.gz"
    data = (SAMPLES / "codex-rollout.jsonl").read_bytes()
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    assert (plain_size(str(plain)), plain_size(str(packed)), plain_size("-")) == (len(data), None, None)
    assert plain_size(str(tmp_path)) is None
    with pytest.raises(InputError, match="plain"):
        scan_on(str(packed), lambda block: None, FORMATS.get("codex"), 0, point_of(plain), Offsets())


def point_of(path: Path) -> object:
    readers: list[Format] = []
    scan(str(path), lambda block: None, on_reader=readers.append)
    return readers[0].point()


@pytest.mark.parametrize("name", sorted(APPENDED))
def test_head_of_a_file(name: str, tmp_path: Path) -> None:
    path = str(SAMPLES / APPENDED[name])
    whole = scan(path, lambda block: None, companions=False)
    assert id_of(path, name) == whole.id is not None
    assert format_of(path) is FORMATS.get(name)
    document = tmp_path / "d.json"
    document.write_text(json.dumps({"messages": []}, indent=1))
    assert format_of(str(document)) is None
