"""JSON lines as agents really leave them: glued, cut, zero-filled, with lone surrogates. Nothing good is dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import orjson

from ctxctl.formats.base import Diagnostics, Json, word

BOM = b"\xef\xbb\xbf"
LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
START = re.compile(r'\{"[A-Za-z_$]{1,40}":')
RECORD_TYPES = frozenset(
    ("user", "assistant", "system", "progress", "attachment", "summary", "file-history-snapshot", "queue-operation")
)
BLANKS = re.compile(r"\s*")
LONGEST_NUMBER = 4300
"""Digits of a whole number; longer ones take quadratic time to convert, and Python refuses them."""


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


_decoder = json.JSONDecoder(parse_int=_whole)


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
    if text.startswith(BOM):
        text = text[3:].strip()
        diagnostics.add("info", "bom", "byte order mark at the start of the line", line)
    if not text:
        return []
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
    found, skipped = pieces_of(text)
    values = [value for value, _, _ in found]
    if skipped:
        what = "a cut or damaged record" if values else "not valid JSON"
        diagnostics.add("warning", "damaged_line", f"{what}: {skipped} characters could not be read", line)
    elif len(values) > 1:
        diagnostics.add("warning", "glued_records", f"{len(values)} records on one line; all were read", line)
    if values and LONE_SURROGATE.search(data) and _has_surrogate(values):
        diagnostics.add("warning", "lone_surrogate", "an unpaired surrogate; counted as U+FFFD", line)
    return values


Span = tuple[Json, int, int]
"""A value with where its text begins and ends."""


def pieces_of(text: str) -> tuple[list[Span], int]:
    """The JSON values of a line's text, and how many characters could not be read."""
    values: list[Span] = []
    position = 0
    while position < len(text):
        try:
            value, end = _decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            found, start = _salvage(text, position)
            values.extend(found)
            return values, start - position
        values.append((value, position, end))
        position = BLANKS.match(text, end).end()  # type: ignore[union-attr]
    return values, 0


def _salvage(text: str, position: int) -> tuple[list[Span], int]:
    """The whole records behind a cut one, up to the end of the line, and where the first of them starts.

    They are looked for from the end: within a record no object reaches as far as the record itself. What stands right
    behind `[`, `:` or `,` is most likely a part of the cut record: it must look like a record, not like a content block
    or a message within one. All attempts together are bounded by the length of the line.
    """
    found: list[Span] = []
    bound, budget = len(text), 4 * len(text) + 10_000
    for start in reversed([match.start() for match in START.finditer(text, position + 1)]):
        within = text[max(0, start - 50) : start].rstrip()[-1:] in ("[", ":", ",")
        try:
            value, end = _decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            budget -= error.pos  # not from `start`: making the error counts the line ends from the text's start
        except RecursionError:
            budget -= 10_000
        else:
            if BLANKS.match(text, end).end() >= bound and (not within or _is_record(value)):  # type: ignore[union-attr]
                found.append((value, start, end))
                bound = start
            budget -= end - start
        if budget < 0:
            break
    return found[::-1], bound


def _is_record(value: Json) -> bool:
    """Whether an object is a whole record of an agent's log, by its envelope."""
    return word(value, "type") in RECORD_TYPES or {"timestamp", "type", "payload"} <= value.keys()


def _has_surrogate(value: Json) -> bool:
    return any(isinstance(text, str) and not _encodes(text) for text in _walk(value))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _walk(value: Json) -> Iterator[Json]:
    """All values and keys within a value, however deep."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        else:
            yield item
