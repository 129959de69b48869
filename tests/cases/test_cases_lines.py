"""Physical lines that are not one record each, characters that end no line, sizes that end no reader."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from ctxctl.errors import InputError

BUILD = (b"[", b'{"a":')
CLOSE = (b"]", b"}")


def warnings(result: Any) -> list[tuple[int, str]]:
    ignored = ("unknown_window", "drift", "dangling_parent")
    return [
        (d["line"], d["code"]) for d in result["diagnostics"] if d["severity"] != "info" and d["code"] not in ignored
    ]


def three(claude: Any) -> list[bytes]:
    session = claude()
    session.user("one")
    session.assistant("two")
    session.user("three")
    return session.lines


def test_glued_records_are_all_read(claude: Any, analyzed: Any) -> None:
    one, two, three_ = three(claude)
    apart = analyzed(one + b"\n" + two + b"\n" + three_ + b"\n")
    for data in (one + two + three_, one + b" " + two + b"\t" + three_, one + two + b"\0\0" + three_):
        result = analyzed(data + b"\n")
        assert result["transcript"]["records"] == 3 and result["usage"] == apart["usage"]
        assert {line for line, _ in warnings(result)} == {1}
        assert "glued_records" in {code for _, code in warnings(result)}
        assert result["composition"]["by_kind"] == apart["composition"]["by_kind"]
        ids = [row["block"] for row in result["blocks"]]
        assert len(set(ids)) == len(ids) == 3, "blocks of glued records need ids of their own"


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_a_cut_record_before_a_whole_one(share: float, claude: Any, analyzed: Any) -> None:
    one, two, three_ = three(claude)
    cut = two[: int(len(two) * share)]
    result = analyzed(one + b"\n" + cut + three_ + b"\n")
    assert result["transcript"]["records"] == 2
    assert result["transcript"]["messages"]["main"] == {"user": 2, "assistant": 0}
    assert (2, "damaged_line") in warnings(result)
    assert result["blocks"][-1]["kind"] == "user_message"


def test_a_cut_record_in_front_of_a_tool_result(claude: Any, analyzed: Any) -> None:
    """The whole record holds objects of its own: it has to be found from its start, not from one of them."""
    session = claude()
    session.user("go")
    session.call("toolu_1", "Write", {"content": '{"type": "user", "message": {"content": "quoted"}}'})
    head, call = session.lines
    result = analyzed(head + b"\n" + head[:90] + call + b"\n")
    assert result["transcript"]["messages"]["main"] == {"user": 1, "assistant": 1}
    assert result["composition"]["by_kind"]["tool_call"]["blocks"] == 1 and result["usage"]["output"] == 5


@pytest.mark.parametrize("size", [100, 20_000, 1_000_000])
def test_a_deep_and_long_cut_record_before_a_whole_one(size: int, claude: Any, save: Any) -> None:
    """What a helper reports lies five objects deep; however long it was before the cut, the next record is whole."""
    session = claude()
    session.user("one")
    said = [{"type": "text", "text": "CUT"}]
    inner = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": said}]}}
    session.envelope("progress", data={"type": "agent_progress", "message": inner})
    session.user("three")
    one, deep, three_ = session.lines
    cut = deep[: deep.index(b"CUT")] + b"lorem " * (size // 6)
    transcript = ctxctl.read(str(save(one + b"\n" + cut + three_ + b"\n")))
    assert [block.text for block in transcript.blocks] == ["one", "three"]
    assert ("damaged_line", 2) in [(d.code, d.line) for d in transcript.diagnostics]


def test_a_whole_record_before_a_cut_one(claude: Any, analyzed: Any) -> None:
    one, two, three_ = three(claude)
    result = analyzed(one + two[: len(two) // 2] + b"\n" + three_ + b"\n")
    assert result["transcript"]["records"] == 2 and (1, "damaged_line") in warnings(result)
    assert result["transcript"]["complete"] is True


SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\xa0", "\ufeff", "\u200b"]


@pytest.mark.parametrize("mark", SEPARATORS, ids=lambda m: f"U+{ord(m):04X}")
def test_only_a_line_feed_ends_a_line(mark: str, claude: Any, save: Any, analyzed: Any) -> None:
    session = claude()
    session.user("PLACE one PLACE")
    session.assistant("two PLACE")
    data = session.data().replace(b"PLACE", mark.encode() if mark >= " " else json.dumps(mark)[1:-1].encode())
    result = analyzed(data)
    assert result["transcript"]["records"] == 2 and warnings(result) == []
    blocks = ctxctl.read(str(save(data))).blocks
    assert [b.text.count(mark) for b in blocks] == [2, 1]


@pytest.mark.parametrize("control", [b"\x0b", b"\x0c", b"\x1c", b"\x1e", b"\x01", b"\t"])
def test_a_raw_control_character_in_a_string(control: bytes, claude: Any, analyzed: Any) -> None:
    """JSON forbids it; the line is damaged or read, the ones around it are whole."""
    session = claude()
    session.user("first")
    session.user("PLACE")
    session.user("last")
    result = analyzed(session.data().replace(b"PLACE", b"a" + control + b"b"))
    assert result["transcript"]["records"] == 3 or warnings(result) == [(2, "damaged_line")]
    assert [row["line"] for row in result["blocks"]][-1] == 3


INVALID = {
    "latin-1": b"caf\xe9 au lait",
    "a cut sequence": b"face \xf0\x9f\x98 cut",
    "overlong": b"slash \xc0\xaf",
    "an encoded surrogate": b"half \xed\xa0\xbd",
    "above the last character": b"\xf5\x80\x80\x80",
}


@pytest.mark.parametrize("name", INVALID)
def test_bytes_that_are_not_utf8(name: str, claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("first")
    session.user("PLACE")
    session.assistant("last")
    data = session.data().replace(b"PLACE", INVALID[name])
    path = save(data)
    done = within("analyze", "--json", "--blocks", path)
    assert done.status == 0 and done.result["transcript"]["records"] == 3
    assert warnings(done.result) == [(2, "invalid_utf8")]
    assert done.result["blocks"][1]["tokens"] > 0
    assert b"".join(ctxctl.write(ctxctl.read(str(path)))) == data


def test_two_megabytes_on_one_line(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("short")
    session.call("toolu_1")
    session.result("toolu_1", "all work and no play " * 100_000)
    session.assistant("seen")
    result = analyzed(session)
    assert result["transcript"]["records"] == 4 and warnings(result) == []
    assert 400_000 < result["composition"]["by_kind"]["tool_result"]["tokens"] < 900_000
    assert result["composition"]["largest"][0]["source"]["line"] == 3


def test_a_long_damaged_line_takes_no_longer_than_it_is_long(claude: Any, save: Any) -> None:
    one, _, three_ = three(claude)
    rows = b",".join(b'{"id":%d,"name":"abcdefghijklmnopqrstuvwxyz"}' % i for i in range(120_000))
    cut = b'{"type":"user","toolUseResult":{"rows":[' + rows + b',{"id":1,"na'
    path = save(one + b"\n" + cut + b"\n" + three_ + b"\n")
    start = time.monotonic()
    transcript = ctxctl.read(str(path))
    assert time.monotonic() - start < 2, "6 MB; twice the line must not take four times as long"
    assert transcript.records == 2


@pytest.mark.parametrize("shape", [0, 1], ids=["lists", "objects"])
@pytest.mark.parametrize("depth", [200, 300, 900, 990, 1005, 1020, 1500, 10_000])
def test_deep_nesting(depth: int, shape: int, claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("go")
    session.call("toolu_1", "Deep", {"tree": "PLACE"})
    session.user("after")
    deep = BUILD[shape] * depth + b"1" + CLOSE[shape] * depth
    data = session.data().replace(b'"PLACE"', deep)
    path = save(data)
    done = within("analyze", "--json", path)
    assert done.status == 0, done.err[-400:]
    records = done.result["transcript"]["records"]
    assert records == 3 or (records == 2 and [line for line, _ in warnings(done.result)] == [2])
    assert done.result["transcript"]["messages"]["main"]["user"] == 2
    if depth <= 900:
        assert records == 3 and done.result["composition"]["by_kind"]["tool_call"]["tokens"] > depth
    assert b"".join(ctxctl.write(ctxctl.read(str(path)))) == data


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "1e-999", "-0", "1.0"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:10])
def test_numbers_that_json_does_not_have(number: str, claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("go")
    session.call("toolu_1", "Plot", {"y": "PLACE"})
    session.assistant("fine", usage={"input_tokens": "PLACE", "output_tokens": 3})
    session.user("after")
    data = session.data().replace(b'"PLACE"', number.encode())
    done = within("analyze", "--json", "--blocks", save(data))
    assert done.status == 0
    transcript = done.result["transcript"]
    assert transcript["records"] == 4 and done.result["usage"]["output"] == 8
    assert done.result["usage"]["input"] == {"1.0": 11}.get(number, 10)
    assert [line for line, _ in warnings(done.result)] == ([3] if number not in ("1.0", "-0", "1e-999") else [])


def test_of_a_key_that_stands_twice_the_last_counts(claude: Any, save: Any, analyzed: Any) -> None:
    session = claude()
    session.user("go")
    session.assistant("fine", usage={"input_tokens": 4, "output_tokens": 3})
    data = session.data().replace(b'"output_tokens":3', b'"output_tokens":3,"output_tokens":9')
    assert analyzed(data)["usage"]["output"] == 9
    assert b"".join(ctxctl.write(ctxctl.read(str(save(data))))) == data


def test_a_torn_tail_is_told_from_damage(claude: Any, analyzed: Any) -> None:
    one, two, three_ = three(claude)
    head = one + b"\n" + two + b"\n"
    torn = analyzed(head + three_[:60])
    assert torn["transcript"]["complete"] is False and warnings(torn) == [(3, "torn_tail")]
    damaged = analyzed(head + three_[:60] + b"\n")
    assert damaged["transcript"]["complete"] is True and warnings(damaged) == [(3, "damaged_line")]
    for whole in (head + three_, head + three_ + b"\n", head + three_ + b"\r\n", head + three_ + b"\n\n"):
        result = analyzed(whole)
        assert result["transcript"]["complete"] is True and warnings(result) == []
        assert result["transcript"]["records"] == 3
    assert torn["transcript"]["records"] == damaged["transcript"]["records"] == 2
    assert torn["usage"] == damaged["usage"]


def test_any_prefix_of_a_session_reads(claude: Any, tmp_path: Path) -> None:
    """A session that is being written may be looked at after each byte."""
    session = claude()
    session.user("schreib es größer 😀")
    session.call("toolu_1", "Bash", {"command": "printf '\\n'"})
    session.result("toolu_1", "läuft")
    data = session.data()
    ends = [i for i in range(len(data)) if data[i : i + 1] == b"\n"]
    path = tmp_path / "t.jsonl"
    wrong = []
    for length in [*range(1, ends[0] + 40, 7), *range(ends[0] + 40, len(data) + 1, 3)]:
        path.write_bytes(data[:length])
        whole = sum(1 for end in ends if length >= end)
        if whole == 0:
            with pytest.raises(InputError):
                ctxctl.read(str(path))
            continue
        transcript = ctxctl.read(str(path))
        at_an_end = any(length in (end, end + 1) for end in ends)
        if (transcript.records, transcript.complete) != (whole, at_an_end):
            wrong.append((data[:length][-12:], transcript.records, transcript.complete))
        assert b"".join(ctxctl.write(transcript)) == data[:length]
    assert wrong == []


INNER = {
    "claude-code": b'{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}',
    "codex": b'{"timestamp":"2026-03-01T09:00:00.000Z","type":"event_msg","payload":{"type":"user_message"}',
    "openai-chat": b'{"messages":[{"role":"user","content":"hi"}',
    "openai-chat-message": b'{"role":"user","content":[{"type":"text","text":"hi"}',
}


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["torn", "damaged"])
@pytest.mark.parametrize("format_", INNER)
def test_the_last_object_within_a_cut_record_is_no_record(format_: str, end: bytes, analyzed: Any) -> None:
    """A record cut right behind an object that it holds must not be taken for that object."""
    whole = INNER[format_] + {"openai-chat": b"]}", "codex": b"}", "openai-chat-message": b"]}"}.get(format_, b"]}}")
    result = analyzed(whole + b"\n" + INNER[format_] + end, "--from", format_)
    assert result["transcript"]["records"] == 1
    assert warnings(result) == [(2, "damaged_line" if end else "torn_tail")]
    assert result["transcript"]["complete"] is bool(end)


def test_the_torn_tail_of_a_chat_and_of_a_rollout(codex: Any, analyzed: Any) -> None:
    chat = b'{"role":"user","content":"hi"}\n{"role":"assistant","content":"he'
    assert analyzed(chat)["transcript"]["complete"] is False
    rollout = codex()
    rollout.message("user", "hi")
    rollout.message("assistant", "hello")
    result = analyzed(rollout.data()[:-30])
    assert result["transcript"]["complete"] is False and result["transcript"]["records"] == 2
