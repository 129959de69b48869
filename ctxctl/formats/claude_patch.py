"""Changes within the bytes of a JSON record: numbers, key order and escapes of everything else stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ctxctl.formats.base import Json

TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.S)
SCALAR = re.compile(rb"[^,\]}\s]+")
BLANK = re.compile(rb"[ \t\r\n]*")

Splice = tuple[int, int, bytes]
"""Start, end, and what takes the place of the bytes between."""


def value_end(data: bytes, start: int) -> int:
    """Where the JSON value ends that begins at `start`. The bytes are known to be valid JSON."""
    first = data[start]
    if first not in b'"{[':
        match = SCALAR.match(data, start)
        return match.end() if match else start
    depth = 0
    for token in TOKEN.finditer(data, start):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return token.end()
    return len(data)


def _after_blanks(data: bytes, at: int) -> int:
    return BLANK.match(data, at).end()  # type: ignore[union-attr]


def members(data: bytes, start: int = 0) -> Iterator[tuple[bytes, int, int]]:
    """Each member of the object at `start`: its key as written, and where its value begins and ends."""
    at = _after_blanks(data, _after_blanks(data, start) + 1)
    while data[at : at + 1] == b'"':
        end = value_end(data, at)
        key = data[at + 1 : end - 1]
        begin = _after_blanks(data, _after_blanks(data, end) + 1)
        end = value_end(data, begin)
        yield key, begin, end
        at = _after_blanks(data, end)
        if data[at : at + 1] != b",":
            return
        at = _after_blanks(data, at + 1)


def elements(data: bytes, start: int) -> list[tuple[int, int]]:
    """Where each element of the array at `start` begins and ends."""
    found = []
    at = _after_blanks(data, start + 1)
    while data[at : at + 1] not in (b"]", b""):
        end = value_end(data, at)
        found.append((at, end))
        at = _after_blanks(data, end)
        if data[at : at + 1] == b",":
            at = _after_blanks(data, at + 1)
    return found


def find(data: bytes, key: bytes, start: int = 0) -> tuple[int, int] | None:
    """Where the value of a key of the object at `start` begins and ends; of a key that stands twice the last, which is
    the one that parsers take."""
    found = None
    for name, begin, end in members(data, start):
        if name == key:
            found = begin, end
    return found


def splice(data: bytes, changes: Iterable[Splice]) -> bytes:
    """The bytes with spans replaced; spans don't overlap."""
    parts: list[bytes] = []
    at = 0
    for start, end, new in sorted(changes):
        parts += (data[at:start], new)
        at = end
    parts.append(data[at:])
    return b"".join(parts)


def set_fields(data: bytes, record: dict[str, Json], fields: Mapping[str, bytes]) -> bytes:
    """The bytes of a record with other values of top-level keys; a key that it lacks comes first. record: what the
    bytes hold."""
    changes: list[Splice] = []
    added = b""
    start = _after_blanks(data, 0) + 1
    for name, new in fields.items():
        if name not in record:
            added += b'"%s":%s,' % (name.encode(), new)
            continue
        key = b'"%s":' % name.encode()
        at = data.find(key)
        if at >= 0 and data.find(key, at + len(key)) < 0:
            # within a string the closing quote is escaped, so that one key of this name is the record's own
            begin = _after_blanks(data, at + len(key))
            changes.append((begin, value_end(data, begin), new))
        else:
            changes += [(begin, end, new) for found, begin, end in members(data) if found == name.encode()]
    if added:
        changes.append((start, start, added if len(record) else added[:-1]))
    return splice(data, changes)
