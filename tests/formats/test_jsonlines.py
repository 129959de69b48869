"""Physical lines as agents leave them: what is good is read, what is not is named, nothing raises."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.formats.base import MOST_PER_CODE, Diagnostics
from ctxctl.formats.jsonlines import parse_line


def parsed(data: bytes) -> tuple[list[Any], list[str]]:
    diagnostics = Diagnostics()
    values = parse_line(data, 7, diagnostics)
    assert all(item.line == 7 for item in diagnostics.items())
    return values, [item.code for item in diagnostics.items()]


@pytest.mark.parametrize(
    ("data", "values", "codes"),
    [
        (b'{"a":1}\n', [{"a": 1}], []),
        (b'{"a":1}\r\n', [{"a": 1}], []),
        (b'  {"a":1}  ', [{"a": 1}], []),
        (b"", [], []),
        (b"\n", [], []),
        (b" \t \r\n", [], []),
        (b"42\n", [42], []),
        (b"null\n", [None], []),
        (b"[]\n", [[]], []),
        ('{"a":"x\u2028y\u0085z"}\n'.encode(), [{"a": "x\u2028y\u0085z"}], []),
        (b'\xef\xbb\xbf{"a":1}\r\n', [{"a": 1}], ["bom"]),
        (b'\x00\x00\x00{"a":1}\n', [{"a": 1}], ["nul_bytes"]),
        (b"\x00\x00\x00\n", [], ["nul_block"]),
        (b'{"a":1}{"b":2}\n', [{"a": 1}, {"b": 2}], ["glued_records"]),
        (b'{"a":1} {"b":2}\t{"c":3}\n', [{"a": 1}, {"b": 2}, {"c": 3}], ["glued_records"]),
        (b'{"type":"user","x":"cut he{"type":"user","y":1}\n', [{"type": "user", "y": 1}], ["damaged_line"]),
        (b'{"a":1}{"b":"cut\n', [{"a": 1}], ["damaged_line"]),
        (b'{"a":1}noise{"b":2}\n', [{"a": 1}, {"b": 2}], ["damaged_line"]),
        (b'{"a":1,}\n', [], ["damaged_line"]),
        (b"not json\n", [], ["damaged_line"]),
        (b'{"a":"\\ud83d\\ude00"}', [{"a": "\U0001f600"}], []),
        (b'{"a":"\\ud83d"}\n', [{"a": "\ud83d"}], ["lone_surrogate"]),
    ],
)
def test_parse_line(data: bytes, values: list[Any], codes: list[str]) -> None:
    assert parsed(data) == (values, codes)


def test_an_object_within_a_string_of_a_cut_record_is_not_a_record() -> None:
    values, codes = parsed(b'{"text":"say {\\"type\\":\\"user\\"} and the rest is c\n')
    assert (values, codes) == ([], ["damaged_line"])


def test_bytes_that_are_not_utf8_come_back() -> None:
    (value,), codes = parsed(b'{"a":"\xff\xfe"}\n')
    assert codes == ["invalid_utf8"]
    assert value["a"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


def test_nan_and_infinity_are_read() -> None:
    (value,), _ = parsed(b'{"a":NaN,"b":-Infinity,"c":1e999}\n')
    assert math.isnan(value["a"]) and value["b"] == -math.inf
    assert parsed(b'{"a":1e999}')[0] == [{"a": math.inf}]


def test_whole_numbers_of_any_length_do_not_raise() -> None:
    values, codes = parsed(b'{"a":123456789012345678901234567890}\n')
    assert codes == [] and values[0]["a"] == pytest.approx(1.2345678901234568e29)
    parsed(b'{"a":' + b"1" * 5000 + b"}\n")


@pytest.mark.parametrize("depth", [200, 600, 1005, 5000])
@pytest.mark.parametrize("leaf", [b'"x"', b'"\\ud83d"', b"NaN"])
def test_deep_nesting_does_not_raise(depth: int, leaf: bytes) -> None:
    parsed(b'{"a":' * depth + leaf + b"}" * depth + b"\n")
    parsed(b"[" * depth + b"\n")


@pytest.mark.slow
def test_a_long_cut_record_is_given_up_in_linear_time() -> None:
    line = b'{"type":"user","x":[' + b'{"a":1},' * 300_000 + b"\n"
    start = time.monotonic()
    assert parsed(line) == ([], ["damaged_line"])
    assert time.monotonic() - start < 2.5


def test_the_list_of_diagnostics_stays_short() -> None:
    diagnostics = Diagnostics()
    for line in range(1, 201):
        parse_line(b"bad\n", line, diagnostics)
    items = diagnostics.items()
    assert diagnostics.count("damaged_line") == 200
    assert [item.line for item in items] == [*range(1, MOST_PER_CODE + 1), None]
    assert "150 more" in items[-1].message and items[-1].severity == "info"


RECORDS = st.dictionaries(
    st.text("abcxyz", min_size=1, max_size=3),
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    min_size=1,
    max_size=3,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=4), st.booleans())
def test_glued_records_are_all_read(records: list[dict[str, Any]], escaped: bool) -> None:
    line = "".join(json.dumps(r, ensure_ascii=escaped) for r in records).encode()
    values, codes = parsed(line + b"\n")
    assert values == records
    assert codes == (["glued_records"] if len(records) > 1 else [])


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.integers(1, 200))
def test_a_cut_record_does_not_take_the_next_one_along(record: dict[str, Any], at: int) -> None:
    first = json.dumps({"type": "user", **record}).encode()
    cut = first[: min(at, len(first) - 1)]
    values, codes = parsed(cut + b'{"type":"assistant","n":1}\n')
    assert values[-1:] == [{"type": "assistant", "n": 1}]
    assert codes == ["damaged_line"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_named(data: bytes) -> None:
    values, codes = parsed(data.replace(b"\n", b""))
    assert values or codes or not data.strip(b" \t\r\n\x0b\x0c")
