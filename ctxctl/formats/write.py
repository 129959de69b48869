"""Writing a transcript back: untouched lines keep their bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ctxctl.formats.base import FORMATS, Diagnostics, Json
from ctxctl.formats.jsonlines import BOM, parse_line
from ctxctl.model.text import clean
from ctxctl.model.transcript import Transcript

INDENT = re.compile(rb"\n([ \t]+)\S")


def write(transcript: Transcript, changes: Mapping[int, Json | None] | None = None) -> Iterator[bytes]:
    """The bytes of a transcript that was read with its raw lines, in its own format.

    changes: new record by line (of a JSON document: line 1), None drops the line. A changed line is serialised as the
    agent itself writes it and keeps its line end, and a byte order mark; every other line is emitted as it was read.
    Without changes the output is byte-identical to the input (after decompression).

    Raises ValueError for a new record on a line that holds several: which one it replaces can't be told.
    """
    changes = changes or {}
    encode = FORMATS.get(transcript.format).encode
    for raw in transcript.raw:
        if raw.line not in changes:
            yield raw.data
            continue
        record = changes[raw.line]
        if record is None:
            continue
        mark = BOM if raw.data.startswith(BOM) else b""
        body = raw.data[len(mark) :].rstrip(b"\r\n")
        if len(parse_line(body, raw.line, Diagnostics())) > 1:
            raise ValueError(f"line {raw.line} holds several records: it can be dropped, not changed")
        end = raw.data[len(mark) + len(body) :]
        yield mark + (_document(body, record) if b"\n" in body else encode(record)) + end


def _document(original: bytes, record: Json) -> bytes:
    """A JSON document of several lines, with the indentation and the escaping that the original has."""
    found = INDENT.search(original)
    indent: str | int = found.group(1).decode() if found else 2
    text = json.dumps(record, indent=indent, ensure_ascii=original.isascii())
    return clean(text).encode()
