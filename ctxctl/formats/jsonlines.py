"""JSON lines as agents really leave them: glued, cut, zero-filled, with lone surrogates. Nothing good is dropped."""

from __future__ import annotations

import json
import re

import orjson

from ctxctl.formats.base import Diagnostics, Json

BOM = b"\xef\xbb\xbf"
LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# A record starts with an object and a key; only starts whose value reaches the end of the line are accepted.
START = re.compile(r'\{"[A-Za-z_$]{1,40}":')

_decoder = json.JSONDecoder()


def parse_line(data: bytes, line: int, diagnostics: Diagnostics) -> list[Json]:
    """The JSON values of one physical line, usually one. What can't be parsed is reported with its line number.

    A blank line gives none. Repairs: byte order mark, NUL bytes, bytes that are not UTF-8, lone surrogates,
    NaN, two records glued together, a cut record followed by a whole one.
    """
    try:
        return [orjson.loads(data)]
    except orjson.JSONDecodeError:
        pass
    text = data.strip()
    if not text:
        return []
    if text.startswith(BOM):
        text = text[3:]
        diagnostics.add("info", "bom", "byte order mark at the start of the line", line)
    if b"\x00" in text:
        bare = text.replace(b"\x00", b"").strip()
        if not bare:
            diagnostics.add("warning", "nul_block", f"{len(text)} NUL bytes instead of a record", line)
            return []
        diagnostics.add("warning", "nul_bytes", f"{text.count(0)} NUL bytes in front of or within a record", line)
        text = bare
    try:
        return [orjson.loads(text)]
    except orjson.JSONDecodeError:
        return _slow(text, line, diagnostics)


def _slow(data: bytes, line: int, diagnostics: Diagnostics) -> list[Json]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        diagnostics.add("warning", "invalid_utf8", f"byte {error.start} is not UTF-8", line)
        text = data.decode("utf-8", "surrogateescape")
    values, position, skipped = [], 0, 0
    while position < len(text):
        try:
            value, end = _decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            found = _salvage(text, position)
            if found is None:
                skipped += len(text) - position
                break
            value, start, end = found
            skipped += start - position
        values.append(value)
        position = end
        while position < len(text) and text[position].isspace():
            position += 1
    if skipped:
        what = "a cut or damaged record" if values else "not valid JSON"
        diagnostics.add("warning", "damaged_line", f"{what}: {skipped} characters could not be read", line)
    elif len(values) > 1:
        diagnostics.add("warning", "glued_records", f"{len(values)} records on one line; all were read", line)
    if values and LONE_SURROGATE.search(data) and _has_surrogate(values):
        diagnostics.add("warning", "lone_surrogate", "an unpaired surrogate; counted as U+FFFD", line)
    return values


def _salvage(text: str, position: int) -> tuple[Json, int, int] | None:
    """The first whole object behind a cut one that runs to the end of the line: (value, start, end)."""
    for match in START.finditer(text, position + 1):
        start = match.start()
        try:
            value, end = _decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            continue
        if not text[end:].strip():
            return value, start, end
    return None


def _has_surrogate(value: Json) -> bool:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
        return False
    if isinstance(value, dict):
        return any(_has_surrogate(k) or _has_surrogate(v) for k, v in value.items())
    return isinstance(value, list) and any(_has_surrogate(v) for v in value)
