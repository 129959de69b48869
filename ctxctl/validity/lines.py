"""Physical lines: what is wrong with the bytes of one, and what it should be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from ctxctl.formats.base import Diagnostics, Json, dumps
from ctxctl.formats.jsonlines import BOM, parse_line
from ctxctl.formats.store import LineStore
from ctxctl.validity.findings import Finding, Level, Report

# An escape of a JSON text: a doubled backslash or a whole pair is well; the named group is a half without its other.
ESCAPE = re.compile(
    rb"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.S,
)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()

# codes of the reader, with the name and the level that they have here
FOUND: dict[str, tuple[str, Level]] = {
    "bom": ("byte_order_mark", "warning"),
    "nul_block": ("nul_bytes", "error"),
    "nul_bytes": ("nul_bytes", "error"),
    "invalid_utf8": ("invalid_utf8", "error"),
    "damaged_line": ("damaged_line", "error"),
    "glued_records": ("glued_records", "error"),
    "lone_surrogate": ("lone_surrogate", "error"),
}


class Line(NamedTuple):
    """One physical line and the JSON values on it. torn: it is the last one, and half written."""

    number: int
    data: bytes
    values: list[Json]
    torn: bool = False


def read_lines(store: LineStore, report: Report, *, document: bool) -> Iterator[Line]:
    """Every line of a store, with its values. document: the file may be one JSON value, and lists stand on lines."""
    last, returns, first_return = len(store), 0, 0
    whole = document and last == 1
    for number in range(1, last + 1):
        data = store.get(number)
        if data.endswith(b"\r\n") and not whole:
            returns, first_return = returns + 1, first_return or number
        try:
            values = [orjson.loads(data)]
        except orjson.JSONDecodeError:
            if not data.strip():
                report(Finding("blank_line", "info", number, "a line with nothing on it", fixable=True))
                continue
            values = _odd(data, number, report, is_last=number == last and not data.endswith(b"\n"))
            if not values:
                yield Line(number, data, values, number == last and not data.endswith(b"\n"))
                continue
        for value in values:
            if not isinstance(value, dict) and not (document and isinstance(value, list)):
                kind = "null" if value is None else type(value).__name__
                text = f"a JSON {kind} instead of an object"
                report(Finding("not_an_object", "error", number, text, fixable=True))
        if number == last and not whole and not data.endswith(b"\n"):
            text = "the last line has no line end"
            report(Finding("no_final_newline", "info", number, text, fixable=True))
        yield Line(number, data, values)
    if returns:
        text = f"{returns} {'line ends' if returns == 1 else 'lines end'} with CR LF"
        report(Finding("carriage_returns", "info", first_return, text, fixable=True))


def _odd(data: bytes, number: int, report: Report, *, is_last: bool) -> list[Json]:
    quiet = Diagnostics()
    values = parse_line(data, number, quiet)
    if is_last and not values:
        text = f"the last line is cut after {len(data)} bytes; it may still be being written"
        report(Finding("torn_tail", "warning", number, text, fixable=True))
        return []
    items = quiet.items()
    for item in items:
        code, level = FOUND[item.code]
        report(Finding(code, level, number, item.message, fixable=True))
    if not items and values:
        text = "JSON that strict readers refuse (NaN, Infinity, a number or a nesting without end)"
        report(Finding("lenient_json", "warning", number, text, fixable=True))
    return values


def clean_line(data: bytes, *, document: bool = False) -> list[bytes]:
    """What should stand in place of a physical line: one line for each record that can be read, with its end, or
    nothing. What was right keeps its bytes. document: it is a whole file, whose line ends stay."""
    text = data.replace(b"\x00", b"").removeprefix(BOM)
    end = b"" if document else b"\n"
    text = text.rstrip(b"\r\n") if not document else text
    if not text.strip():
        return []
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode()
    value = _value(text)
    if value is None:
        text = ESCAPE.sub(lambda m: REPLACEMENT if m["lone"] else m[0], text)
        value = _value(text)
    if isinstance(value, dict) or (document and isinstance(value, list)):
        return [text + end]
    wanted = (dict, list) if document else (dict,)
    return [dumps(v) + end for v in parse_line(text, 1, Diagnostics()) if isinstance(v, wanted)]


def _value(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
