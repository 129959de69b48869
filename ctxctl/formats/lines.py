"""Lines of a transcript on their way into a compacted one: their records as bytes that every reader takes.

A line that is not changed keeps its bytes but for three things: a byte order mark goes, CRLF becomes LF, and what is
not Unicode becomes U+FFFD (an unpaired surrogate makes providers refuse the request, formats.md 1). What holds no
record is left out with a note.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from ctxctl.formats.base import DEEPEST, Diagnostics, Json
from ctxctl.formats.draft import Draft
from ctxctl.formats.jsonlines import BOM, pieces_of
from ctxctl.formats.write import INDENT
from ctxctl.model.text import clean
from ctxctl.model.transcript import Diagnostic

HIGH, LOW = r"u[dD][89abAB][0-9a-fA-F]{2}", r"u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPE = re.compile(rf"\\(?:({HIGH})(\\{LOW})?|({LOW})|.)")
SAFE = 18
"""Characters of a whole number that surely fits into 64 bits."""


class Part(NamedTuple):
    """One record of a line: its bytes, without a line end, and its value. plain: it is all that its line holds."""

    data: bytes
    value: Json
    plain: bool = True


class Number:
    """A number that must be written as it was read: `0.000005` would become `5e-06`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def each_part(draft: Draft) -> Iterator[tuple[int, list[Part]]]:
    """Every line of the file with its records; what is left out is noted once in the draft."""
    notes = Diagnostics()
    for line in range(1, len(draft.store) + 1):
        found = parts(draft.store.get(line), line, draft, notes)
        if found:
            yield line, found
    draft.notes.extend(notes.items())


def parts(data: bytes, line: int, draft: Draft, notes: Diagnostics) -> list[Part]:
    """The records of a physical line as they will be written. Counts what it normalises, notes what it leaves out."""
    body = data.removesuffix(b"\n")
    if body.endswith(b"\r"):
        body = body.rstrip(b"\r")
        draft.normalised.crlf += 1
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _mended(body, line, draft, notes, data.endswith(b"\n"))
    if b"\n" in body and b"\r\n" in body:
        draft.normalised.crlf += body.count(b"\r\n")
        body = body.replace(b"\r\n", b"\n")
    if not isinstance(value, (dict, list)):
        notes.add("warning", "not_an_object", "a JSON value instead of a record; left out", line)
        return []
    if b"\n" in body and data.endswith(b"\n"):
        body += b"\n"  # a document ends as it did
    return [Part(body, value)]


def _mended(body: bytes, line: int, draft: Draft, notes: Diagnostics, ended: bool) -> list[Part]:
    lead = body.lstrip()
    if lead.startswith(BOM):
        draft.normalised.bom += 1
        body = lead.removeprefix(BOM)
    if b"\r\n" in body:
        draft.normalised.crlf += body.count(b"\r\n")
        body = body.replace(b"\r\n", b"\n")
    if b"\x00" in body:
        notes.add("warning", "nul_bytes", f"{body.count(0)} NUL bytes; left out", line)
        body = body.replace(b"\x00", b"")
    if not body.strip():
        notes.add("info", "blank_line", "a line without a record; left out", line)
        return []
    text, replaced = paired(body.decode("utf-8", "surrogateescape"))
    draft.normalised.surrogates += replaced
    found, lost = pieces_of(text if b"\n" in body else text.strip())
    if b"\n" in body and len(found) == 1 and not lost:
        return [Part(text.encode() + (b"\n" if ended else b""), found[0][0])]
    text = text if b"\n" in body else text.strip()
    kept = [(value, start, end) for value, start, end in found if isinstance(value, (dict, list))]
    if lost and not ended and not found:
        notes.add("warning", "torn_tail", f"the last line is cut after {len(body)} bytes; left out", line)
    elif lost or len(kept) < len(found):
        notes.add("warning", "damaged_line", f"{lost or 'some'} characters are no record; left out", line)
    if len(kept) > 1:
        notes.add("info", "glued_records", f"{len(kept)} records on one line; each has its own now", line)
    return [Part(text[start:end].encode(), value, False) for value, start, end in kept]


def paired(text: str) -> tuple[str, int]:
    """JSON text with U+FFFD for each surrogate that has no partner, escaped or not, and how many those were."""
    replaced = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal replaced
        high, low, alone = match.groups()
        if (high and not low) or alone:
            replaced += 1
            return "\\ufffd"
        return match.group()

    text = ESCAPE.sub(mend, text)
    whole = clean(text)
    return whole, replaced + (whole.count("\ufffd") - text.count("\ufffd") if whole is not text else 0)


def editable(part: Part) -> Json:
    """The value of a record for changing it: numbers that would be written otherwise than they stand are `Number`s."""
    if orjson_writes(part.value) == part.data:
        return part.value
    try:
        return json.loads(part.data, parse_float=_float, parse_int=_int, parse_constant=Number)
    except RecursionError:
        return part.value


def orjson_writes(value: Json) -> bytes | None:
    """A value as orjson writes it, None for what it can't."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return None


def _float(text: str) -> float | Number:
    value = float(text)
    return value if orjson.dumps(value).decode() == text else Number(text)


def _int(text: str) -> int | Number:
    return Number(text) if len(text) > SAFE or text == "-0" else int(text)


def compact(value: Json) -> bytes:
    """A changed record as one line, without its end: compact separators, UTF-8 not escaped, numbers as they stood."""
    try:
        return orjson.dumps(value, default=_fragment)
    except (TypeError, orjson.JSONEncodeError):
        return _written(value, separators=(",", ":"), ensure_ascii=False)


def _fragment(value: Json) -> Json:
    if isinstance(value, Number):
        return orjson.Fragment(value.text)
    raise TypeError(f"a {type(value).__name__} in a record")


def document(original: bytes, value: Json) -> bytes:
    """A changed JSON document of several lines, with the indentation, the escaping and the end of the original."""
    found = INDENT.search(original)
    indent: str | int = found.group(1).decode() if found else 2
    text = _written(value, indent=indent, ensure_ascii=original.isascii())
    return text + original[len(original.rstrip()) :]


def _written(value: Json, **style: Json) -> bytes:
    """JSON by the standard library, which goes deeper than orjson and indents; numbers as they stood."""
    numbers: dict[str, str] = {}
    mark = uuid.uuid5(uuid.NAMESPACE_OID, "number").hex

    def stand_in(item: Json) -> str:
        if not isinstance(item, Number):
            raise TypeError(f"a {type(item).__name__} in a record")
        key = f"{mark}{len(numbers)}"
        numbers[f'"{key}"'] = item.text
        return key

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST))
    try:
        text = json.dumps(value, default=stand_in, **style)
    finally:
        sys.setrecursionlimit(limit)
    if numbers:
        text = re.sub(f'"{mark}\\d+"', lambda match: numbers.get(match.group(), match.group()), text)
    return clean(text).encode()


def note(draft: Draft, code: str, message: str, line: int | None = None) -> None:
    """Say something of the writing that users should know."""
    draft.notes.append(Diagnostic("info", code, message, line))


def write_as_it_was(draft: Draft) -> Iterator[bytes]:
    """Every record of the file, unchanged but for what is normalised."""
    for _, found in each_part(draft):
        for part in found:
            yield ended(part.data)


def ended(data: bytes) -> bytes:
    """A line with its end; a document of several lines has its own."""
    return data if b"\n" in data else data + b"\n"
