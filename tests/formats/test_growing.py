"""A file that is read while it grows: each line once, and at any time what reading the whole would tell."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

import ctxctl
from ctxctl.errors import InputError
from ctxctl.formats import FORMATS, scan
from ctxctl.formats.growing import Growing
from ctxctl.model.block import Block

SAMPLES = Path(ctxctl.__file__).resolve().parents[1] / "sample_transcripts"
APPENDED = {
    "claude-code": "axios-to-fetch.jsonl",
    "codex": "codex-rollout.jsonl",
    "openai-chat-message": None,
}
FIELDS = ("id", "model", "models", "live", "cleared", "order", "usage", "compactions", "branches", "abandoned")
MORE = ("overflows", "conversations", "threads", "records", "exchanges", "messages", "window", "errors", "main")


def lines_of(name: str) -> list[bytes]:
    sample = APPENDED[name]
    if sample is not None:
        return (SAMPLES / sample).read_bytes().splitlines(keepends=True)
    roles = ("system", "user", "assistant", "user", "assistant")
    records = [{"role": role, "content": f"message {n} of {role}"} for n, role in enumerate(roles * 4)]
    return [json.dumps(record).encode() + b"\n" for record in records]


@pytest.mark.parametrize("usage_only", [False, True])
@pytest.mark.parametrize("name", sorted(APPENDED))
def test_what_has_come_so_far(name: str, usage_only: bool, tmp_path: Path) -> None:
    lines = lines_of(name)
    path = tmp_path / "s.jsonl"
    found: list[Block] = []
    growing = Growing(str(path), found.append, FORMATS.get(name), usage_only=usage_only)
    cuts = sorted({1, 2, 3, 5, *range(7, len(lines), 13), len(lines)})
    for cut in cuts:
        path.write_bytes(b"".join(lines[:cut]))
        assert growing.read_on()
        every: list[Block] = []
        whole = scan(str(path), every.append, format_name=name, companions=False, usage_only=usage_only)
        for _ in range(2):  # to look changes nothing
            seen = growing.so_far()
            assert {f: getattr(seen, f) for f in (*FIELDS, *MORE)} == {f: getattr(whole, f) for f in (*FIELDS, *MORE)}
        if not usage_only:
            assert found == every  # each block was handed out once
        assert (growing.lines, growing.offset) == (cut, path.stat().st_size)


def test_a_torn_line_waits(tmp_path: Path) -> None:
    lines = lines_of("codex")
    path = tmp_path / "s.jsonl"
    growing = Growing(str(path), lambda block: None, FORMATS.get("codex"))
    half = len(lines[5]) // 2
    path.write_bytes(b"".join(lines[:5]) + lines[5][:half])
    assert growing.read_on() and growing.lines == 5
    before = growing.so_far().records
    with path.open("ab") as file:
        file.write(lines[5][half:-1])
    assert growing.read_on() and growing.lines == 5  # its end has not come
    with path.open("ab") as file:
        file.write(b"\n")
    assert growing.read_on() and growing.lines == 6
    assert growing.so_far().records == before + 1


def test_another_file_is_noticed(tmp_path: Path) -> None:
    lines = lines_of("claude-code")
    path, other = tmp_path / "s.jsonl", tmp_path / "t.jsonl"

    def fresh() -> Growing:
        path.write_bytes(b"".join(lines[:30]))
        growing = Growing(str(path), lambda block: None, FORMATS.get("claude-code"))
        assert growing.read_on() and growing.read_on()
        return growing

    growing = fresh()
    path.write_bytes(b"".join(lines[:10]))
    assert not growing.read_on()  # shorter
    growing = fresh()
    with path.open("r+b") as file:
        file.seek(growing.offset - 100)
        file.write(b" " * 50)
    assert not growing.read_on()  # changed near its end
    growing = fresh()
    with path.open("r+b") as file:
        file.write(b'{"x')
    assert not growing.read_on()  # changed at its beginning
    growing = fresh()
    other.write_bytes(b"".join(lines))
    os.replace(other, path)
    assert not growing.read_on()  # another one, longer, with the same beginning
    growing = fresh()
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        growing.read_on()
    path.write_bytes(gzip.compress(b"".join(lines)))
    with pytest.raises(InputError, match="plain"):
        growing.read_on()
