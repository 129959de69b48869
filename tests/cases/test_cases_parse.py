"""Reading what agents leave behind: cut, glued, zero-filled, empty and oddly shaped files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ctxctl

# what stands between two good halves of a session: (bytes of the line, code it is reported with)
DAMAGED = {
    "cut in a string": (b'{"type":"attachment","uuid":"x1","attachment":{"content":"half a sent', "damaged_line"),
    "cut in a key": (b'{"type":"user","uuid":"x1","mess', "damaged_line"),
    "cut after a comma": (b'{"type":"user","uuid":"x1",', "damaged_line"),
    "only a brace": (b"{", "damaged_line"),
    "a tail without its head": (b'led"}],"usage":null}}', "damaged_line"),
    "plain words": (b"Killed: out of memory", "damaged_line"),
    "one NUL": (b"\0", "nul_block"),
    "a block of NULs": (b"\0" * 700, "nul_block"),
    "a page of NULs": (b"\0" * 70_000, "nul_block"),
    "bytes of no text": (bytes(range(128, 256)), "damaged_line"),
    "a cut list of odd objects": (b'{"type":"user","rows":[{"type":[]},{"type":{}}', "damaged_line"),
}


def codes(result: Any, *, line: int | None = None) -> list[str]:
    """Codes of the warnings, all or of one line; that the model or its window is unknown is beside the point."""
    found = [
        d for d in result["diagnostics"] if d["severity"] != "info" and d["code"] not in ("unknown_window", "drift")
    ]
    return [d["code"] for d in found if line is None or d["line"] == line]


def two_halves(claude: Any, middle: bytes | None) -> Any:
    session = claude()
    session.user("the only task")
    session.assistant("first answer")
    if middle is not None:
        session.raw(middle)
    session.user("second question")
    session.assistant("closing words")
    return session


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_costs_itself_alone(name: str, claude: Any, analyzed: Any) -> None:
    data, code = DAMAGED[name]
    whole = analyzed(two_halves(claude, None))
    result = analyzed(two_halves(claude, data))
    transcript = result["transcript"]
    assert transcript["records"] == 4
    assert transcript["messages"]["main"] == {"user": 2, "assistant": 2}
    assert transcript["complete"] is True and transcript["damaged"] is True
    assert code in codes(result, line=3) and not codes(result, line=4)
    assert result["context"]["order"] == whole["context"]["order"]
    assert result["composition"] == {**whole["composition"], "largest": result["composition"]["largest"]}
    assert result["blocks"][-1]["line"] == 5 and result["blocks"][-1]["in_context"] is True


def test_damage_is_named_by_its_line_on_stderr(claude: Any, save: Any, within: Any) -> None:
    path = save(two_halves(claude, b'{"cut'))
    done = within("analyze", "--json", path)
    assert f"{path}:3: " in done.err and "damaged_line" in done.err
    text = within("analyze", path)
    assert text.status == 0 and "damaged_line" in text.out.decode() + text.err and b"3" in text.out


def test_no_nul_reaches_an_output(claude: Any, save: Any, within: Any) -> None:
    session = two_halves(claude, b"\0" * 40)
    session.user("with \0 inside as an escape")
    path = save(session)
    for form in ("json", "text", "csv", "markdown"):
        done = within("analyze", "--output-format", form, path)
        assert done.status == 0 and b"\0" not in done.out and "\0" not in done.err


def test_nuls_before_a_good_record_do_not_take_it_along(claude: Any, analyzed: Any) -> None:
    session = two_halves(claude, None)
    session.lines[2] = b"\0" * 300 + session.lines[2]
    result = analyzed(session)
    assert result["transcript"]["records"] == 4 and codes(result) == ["nul_bytes"]
    assert codes(result, line=3) == ["nul_bytes"]


def test_nuls_at_the_end_of_the_file(claude: Any, analyzed: Any) -> None:
    result = analyzed(two_halves(claude, None).data() + b"\0" * 512)
    assert result["transcript"]["records"] == 4
    assert codes(result, line=5) in (["nul_block"], ["torn_tail"])


SURROGATES = {
    "a low half": r"price \udcb2 up",
    "a high half": r"face \ud83d cut",
    "halves in the wrong order": r"\ude00\ud83d",
    "a high half at the end": r"tail \ud99c",
}


@pytest.mark.parametrize("name", SURROGATES)
def test_a_lone_surrogate_is_named_and_kept(name: str, claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("read the file")
    session.call("toolu_s1", "Bash", {"command": "PLACE"})
    session.result("toolu_s1", "PLACE")
    data = session.data().replace(b"PLACE", SURROGATES[name].encode())
    path = save(data)
    done = within("analyze", "--json", "--blocks", path)
    assert done.status == 0
    named = [d["line"] for d in done.result["diagnostics"] if d["code"] == "lone_surrogate"]
    assert named == [2, 3]
    assert done.result["transcript"]["damaged"] is False
    assert b"".join(ctxctl.write(ctxctl.read(str(path)))) == data


def test_a_pair_written_as_escapes_is_one_character(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("PLACE")
    escaped = analyzed(session.data().replace(b"PLACE", rb"\ud83d\ude00"))
    plain = analyzed(session.data().replace(b"PLACE", "😀".encode()))
    assert not codes(escaped) and escaped["composition"] == plain["composition"]


@pytest.mark.parametrize("last", [None, b""], ids=["ended", "unended"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_marks_and_line_ends_change_nothing(
    bom: bytes, end: bytes, last: Any, claude: Any, save: Any, analyzed: Any
) -> None:
    session = two_halves(claude, None)
    plain = analyzed(session)
    data = bom + session.data(end, last)
    result = analyzed(data)
    for key in ("usage", "composition", "composition_all"):
        assert result[key] == plain[key], key
    assert result["transcript"]["records"] == 4 and not codes(result)
    assert result["transcript"]["complete"] is True and result["transcript"]["unreachable"] == 0
    transcript = ctxctl.read(str(save(data)))
    assert not any("\r" in b.text or "\ufeff" in b.text for b in transcript.blocks)
    assert b"".join(ctxctl.write(transcript)) == data


NOTHING = {
    "no byte": (b"", 6, "empty"),
    "line ends": (b"\n\n\r\n", 6, "empty"),
    "blanks": (b"  \n \t \n\n", 6, "empty"),
    "a byte order mark": (b"\xef\xbb\xbf\n", 6, "empty"),
    "an empty array": (b"[]", 6, "0 messages"),
    "an empty array with a line end": (b"[]\n", 6, "0 messages"),
    "NULs": (b"\0" * 4096, 3, "NUL"),
    "two broken lines": (b'{"type":"user","mess\n}}}{\n', 3, "2 bad lines"),
    "one cut record": (b'{"parentUuid":null,"isSidechain":false,"type":"us', 3, "cut"),
    "an empty object": (b"{}\n", 3, ""),
    "scalars": (b'17\n"word"\nnull\n', 3, ""),
    "an unknown object": (b'{"colour":"red","weight":3}\n', 3, "colour"),
    "words": (b"just some notes\nof a meeting\n", 3, ""),
    "a program": (b"#!/bin/sh\nset -e\nexec make\n", 3, ""),
    "a zip archive": (b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(50), 3, "zip"),
    "a database": (b"SQLite format 3\0" + bytes(84), 3, "SQLite"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(20), 3, "picture"),
    "a document": (b"%PDF-1.7\n%\xe2\xe3\n", 3, "PDF"),
    "an executable": (b"\x7fELF\x02\x01\x01\0" + bytes(range(256)), 3, ""),
    "a gzip header alone": (b"\x1f\x8b\x08\0", 3, ""),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_holds_no_session(name: str, save: Any, within: Any) -> None:
    data, status, word = NOTHING[name]
    path = save(data)
    for options in ((), ("--json",), ("--tokens", "reported")):
        done = within("analyze", *options, path)
        assert (done.status, done.out) == (status, b""), done.err
        assert word in done.err and str(path) in done.err
    if status == 3:
        assert "empty" not in within("analyze", path).err


def test_a_request_without_messages_has_none(save: Any, within: Any) -> None:
    done = within("analyze", "--json", save(b'{"messages":[]}\n'))
    assert done.status in (0, 3, 6)
    if done.status == 0:
        assert done.result["usage"]["total"] == 0 and done.result["transcript"]["messages"]["main"]["user"] == 0


@pytest.mark.parametrize("scalars", [b"7", b'"seven"', b"null", b"[]", b"true", b"-0.5", b"[1,[2]]"])
def test_a_line_that_is_no_object_is_named(scalars: bytes, claude: Any, analyzed: Any) -> None:
    result = analyzed(two_halves(claude, scalars))
    assert result["transcript"]["records"] == 4 and codes(result) == ["not_an_object"]
    assert codes(result, line=3) == ["not_an_object"]
    first = analyzed(scalars + b"\n" + two_halves(claude, None).data())
    assert first["transcript"]["records"] == 4 and codes(first, line=1) == ["not_an_object"]


ODD_RECORDS = [
    {"message": None},
    {},
    {"message": "a string"},
    {"message": []},
    {"message": 5},
    {"message": {"0": "{", "1": '"'}},
]


@pytest.mark.parametrize("type_", ["user", "assistant"])
@pytest.mark.parametrize("odd", ODD_RECORDS, ids=repr)
def test_a_record_without_a_usable_message(odd: Any, type_: str, claude: Any, analyzed: Any) -> None:
    session = two_halves(claude, None)
    uuid = session.envelope(type_, **odd)["uuid"]
    session.user("hangs on it")
    result = analyzed(session)
    assert result["transcript"]["records"] == 6 and codes(result) == ["odd_shape"]
    assert result["transcript"]["messages"]["main"] == {"user": 3, "assistant": 2}
    assert uuid not in result["context"]["order"] and len(result["context"]["order"]) == 5


CONTENTS = [
    ("r-one", 1),
    ([{"type": "text", "text": "r-one"}], 1),
    (["r-one"], 1),
    ({"type": "text", "text": "r-one"}, 1),
    ([{"type": "text", "text": "r-"}, {"type": "text", "text": "one"}], 1),
    ([{"type": "brand_new", "value": "r-one"}], 1),
    ("", 0),
    ([], 0),
    (None, 0),
    ([None], 0),
]


@pytest.mark.parametrize(("content", "says"), CONTENTS, ids=repr)
def test_shapes_of_a_tool_result(content: Any, says: int, claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("go")
    session.call("toolu_o1")
    session.result("toolu_o1", content)
    result = analyzed(session)
    assert result["composition"]["by_kind"]["tool_result"]["blocks"] == 1
    tokens = result["composition"]["by_kind"]["tool_result"]["tokens"]
    assert (tokens > 0) == bool(says) and tokens < 20
    assert result["composition"]["by_tool"]["Bash"]["calls"] == 1


def test_a_result_without_the_key_content(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("go")
    session.call("toolu_o1")
    session.user([{"type": "tool_result", "tool_use_id": "toolu_o1"}])
    assert analyzed(session)["composition"]["by_kind"]["tool_result"] == {"blocks": 1, "tokens": 0, "share": 0.0}


USAGES = [
    (None, (0, 0, 0)),
    ({}, (0, 0, 0)),
    ([], (0, 0, 0)),
    ("none", (0, 0, 0)),
    ({"input_tokens": None, "output_tokens": "7", "cache_read_input_tokens": 10.0}, (0, 10, 7)),
    ({"input_tokens": 4, "output_tokens": [3]}, (4, 0, 0)),
    ({"input_tokens": 4, "output_tokens": True}, (4, 0, 0)),
    ({"input_tokens": "4 ", "output_tokens": 2.5}, (0, 0, 0)),
]


@pytest.mark.parametrize(("usage", "expected"), USAGES, ids=repr)
def test_shapes_of_usage(usage: Any, expected: Any, claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("go")
    session.assistant("beta", usage=usage)
    totals = analyzed(session)["usage"]
    assert (totals["input"], totals["cache_read"], totals["output"]) == expected
    assert totals["total"] == sum(expected)


def test_unknown_records_pass_through(claude: Any, save: Any, analyzed: Any) -> None:
    session = two_halves(claude, None)
    session.put({"type": "brand-new-kind", "uuid": "n1", "payload": {"x": [1.0, 1e3]}})
    session.put({"type": "another", "no": "uuid"})
    result = analyzed(session)
    assert result["transcript"]["records"] == 6 and not codes(result)
    assert result["transcript"]["messages"]["main"] == {"user": 2, "assistant": 2}
    transcript = ctxctl.read(str(save(session)))
    assert b"".join(ctxctl.write(transcript)) == session.data()


def test_the_library_and_the_command_agree(claude: Any, save: Any, within: Any) -> None:
    path = save(two_halves(claude, b"{"))
    analysis = ctxctl.analyze(str(path), ctxctl.load_models(), ctxctl.AnalysisOptions(blocks=True))
    result = within("analyze", "--json", "--blocks", path).result
    assert analysis.transcript.records == result["transcript"]["records"]
    assert analysis.context.reported == result["context"]["reported"]
    assert [d.code for d in analysis.diagnostics] == [d["code"] for d in result["diagnostics"]]
    assert {k: v.tokens for k, v in analysis.composition.by_kind.items()} == {
        k: v["tokens"] for k, v in result["composition"]["by_kind"].items()
    }
    assert json.loads(json.dumps(list(analysis.context.order))) == result["context"]["order"]
