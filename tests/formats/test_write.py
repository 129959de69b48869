"""Writing back: the bytes of what was not changed stay, whatever they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ctxctl
from ctxctl.formats import write
from ctxctl.formats.streams import GZIP, NOT_TEXT, ZSTD
from ctxctl.model.transcript import Transcript

USER = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "hi"},
}
NOTE = {"type": "mode", "mode": "normal", "sessionId": "s", "cost": 0.000005, "big": 1e21, "zeta": 1, "alpha": 2}
ANSWER = {
    "type": "assistant",
    "uuid": "a1",
    "parentUuid": "u1",
    "sessionId": "s",
    "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Grüße, 世界 \u2028"}]},
}


def compact(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def saved(path: Path, data: bytes) -> Transcript:
    path.write_bytes(data)
    return ctxctl.read(str(path))


def out(t: Transcript, changes: dict[int, Any] | None = None) -> bytes:
    return b"".join(write(t, changes))


def test_identity_keeps_spelling(tmp_path: Path) -> None:
    data = json.dumps(NOTE, indent=None).encode() + b"\n" + compact(USER) + b"  \n\n" + b'{"a" : 1.0 , "a":2}\n'
    assert out(saved(tmp_path / "x.jsonl", data)) == data


def test_a_changed_line_changes_alone(tmp_path: Path) -> None:
    lines = [json.dumps(NOTE).encode(), compact(USER), b"broken {", compact(ANSWER)]
    t = saved(tmp_path / "x.jsonl", b"\n".join(lines) + b"\n")
    changed = {**ANSWER, "message": {**ANSWER["message"], "content": [{"type": "text", "text": "短 \u2028"}]}}  # type: ignore[dict-item]
    found = out(t, {4: changed})
    assert found.split(b"\n")[:3] == lines[:3]
    assert found.split(b"\n")[3] == compact(changed)
    assert found.endswith(b"\n") and found.count(b"\n") == 4


def test_a_dropped_line_is_gone_with_its_end(tmp_path: Path) -> None:
    t = saved(tmp_path / "x.jsonl", compact(NOTE) + b"\n" + compact(USER) + b"\n" + compact(ANSWER) + b"\n")
    assert out(t, {2: None}) == compact(NOTE) + b"\n" + compact(ANSWER) + b"\n"


def test_line_ends_stay(tmp_path: Path) -> None:
    t = saved(tmp_path / "x.jsonl", compact(NOTE) + b"\r\n" + compact(USER) + b"\r\n" + compact(ANSWER))
    assert out(t) == compact(NOTE) + b"\r\n" + compact(USER) + b"\r\n" + compact(ANSWER)
    changed = {**USER, "uuid": "u0"}
    assert out(t, {1: changed}) == compact(changed) + b"\r\n" + compact(USER) + b"\r\n" + compact(ANSWER)
    assert out(t, {3: changed}).endswith(b"\r\n" + compact(changed))


def test_a_byte_order_mark_stays_where_nothing_changed(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + compact(USER) + b"\r\n" + compact(ANSWER)
    t = saved(tmp_path / "x.jsonl", data)
    assert out(t) == data
    assert t.blocks[0].text == "hi"
    assert "bom" in [d.code for d in t.diagnostics]


def test_a_lone_surrogate_in_a_changed_line_becomes_sendable(tmp_path: Path) -> None:
    t = saved(tmp_path / "x.jsonl", compact(USER) + b"\n")
    changed = {**USER, "message": {"role": "user", "content": "cut \ud83d here"}}
    found = out(t, {1: changed})
    assert json.loads(found.decode("utf-8"))["message"]["content"] == "cut \ufffd here"


@pytest.mark.parametrize("indent", [2, 4, "\t"])
@pytest.mark.parametrize("escaped", [True, False])
def test_a_document_keeps_its_indentation(tmp_path: Path, indent: int | str, escaped: bool) -> None:
    chat = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Grüße"}], "zeta": [], "alpha": {}}
    data = json.dumps(chat, indent=indent, ensure_ascii=escaped).encode() + b"\n"
    t = saved(tmp_path / "x.json", data)
    assert out(t) == data
    chat["messages"] = [*chat["messages"], {"role": "assistant", "content": "Hallo, schöne Welt"}]
    assert out(t, {1: chat}) == json.dumps(chat, indent=indent, ensure_ascii=escaped).encode() + b"\n"


def test_a_document_on_one_line_stays_on_one(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    t = saved(tmp_path / "x.json", compact(chat))
    assert out(t, {1: {**chat, "id": "é"}}) == compact({**chat, "id": "é"})


def test_scanned_without_its_lines_there_is_nothing_to_write(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(compact(USER) + b"\n")
    assert out(ctxctl.scan(str(path), lambda block: None)) == b""


@pytest.mark.parametrize("cut", [b"{", b"[", b'{"type":"us', b'{"a":1,', b"}"])
def test_a_first_line_that_is_cut_does_not_make_a_document_of_the_file(tmp_path: Path, cut: bytes) -> None:
    data = cut + b"\n" + 4 * (compact(USER) + b"\n")
    t = saved(tmp_path / "x.jsonl", data)
    assert t.format == "claude-code" and t.records == 4
    assert ("damaged_line", 1) in [(d.code, d.line) for d in t.diagnostics]
    assert out(t) == data


def test_blocks_of_glued_records_have_ids_of_their_own(tmp_path: Path) -> None:
    t = saved(tmp_path / "x.jsonl", compact(USER) + compact(ANSWER) + b"\n")
    assert [b.kind for b in t.blocks] == ["user_message", "assistant"]
    assert len({b.id for b in t.blocks}) == 2


def test_companions_are_not_written_into_the_session(tmp_path: Path) -> None:
    helper = tmp_path / "x" / "subagents" / "agent-h.jsonl"
    helper.parent.mkdir(parents=True)
    helper.write_bytes(compact({**USER, "uuid": "h1", "isSidechain": True, "agentId": "h"}) + b"\n")
    t = saved(tmp_path / "x.jsonl", compact(USER) + b"\n")
    assert len(t.blocks) == 2
    assert out(t) == compact(USER) + b"\n"


SOUND = st.sampled_from([compact(USER), compact(ANSWER), compact(NOTE), json.dumps(ANSWER).encode()])
ODD = st.one_of(
    st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")),
    st.sampled_from(
        [b"", b"  ", b"\x00" * 5, b"42", b"null", b'{"cut":"', b"[]", b"{}", b"\xff\xfe", b'{"a":"\\ud83d"}']
    ),
)
GLUED = st.builds(lambda a, b: a + b, SOUND | ODD, SOUND)
LINE = st.builds(lambda body, end: body + end, SOUND | ODD | GLUED, st.sampled_from([b"\n", b"\r\n"]))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, max_size=8), st.integers(0, 4), ODD | SOUND)
def test_any_file_with_a_claude_record_is_written_as_it_was(
    tmp_path: Path, lines: list[bytes], at: int, tail: bytes
) -> None:
    data = b"".join([*lines[:at], compact(USER) + b"\n", *lines[at:], tail])
    assume(not data.startswith((*NOT_TEXT, GZIP, ZSTD)))  # these say what a file is, whatever follows
    t = ctxctl.read(str(_file(tmp_path, data)), format_name="claude-code")
    assert out(t) == data


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, max_size=8), ODD | SOUND)
def test_and_so_is_one_that_starts_with_it(tmp_path: Path, lines: list[bytes], tail: bytes) -> None:
    data = b"".join([compact(USER) + b"\n", *lines, tail])
    t = ctxctl.read(str(_file(tmp_path, data)))
    assert t.format == "claude-code"
    assert out(t) == data


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "x.jsonl"
    path.write_bytes(data)
    return path


def test_a_changed_first_line_keeps_its_byte_order_mark(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    t = saved(tmp_path / "x.jsonl", mark + compact(USER) + b"\r\n" + compact(ANSWER) + b"\r\n")
    assert out(t, {1: {**USER, "x": 1}}) == mark + compact({**USER, "x": 1}) + b"\r\n" + compact(ANSWER) + b"\r\n"


def test_a_line_of_several_records_can_be_dropped_but_not_changed(tmp_path: Path) -> None:
    t = saved(tmp_path / "x.jsonl", compact(USER) + compact(NOTE) + b"\n" + compact(ANSWER) + b"\n")
    with pytest.raises(ValueError, match="line 1 holds several records"):
        out(t, {1: USER})
    assert out(t, {1: None}) == compact(ANSWER) + b"\n"
