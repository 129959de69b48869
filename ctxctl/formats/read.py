"""Reading a transcript in one pass, whatever its format."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import orjson

from ctxctl.errors import InputError, NotATranscriptError, NothingFoundError
from ctxctl.formats.base import FORMATS, Diagnostics, Emit, Format, Json
from ctxctl.formats.detect import HINT, detect, is_aider
from ctxctl.formats.jsonlines import BOM, parse_line
from ctxctl.formats.streams import Progress, Stream, open_stream
from ctxctl.model.block import Block
from ctxctl.model.transcript import RawLine, Transcript

LOOK_AT = 50
"""Parseable records that detection looks at: the first ones may all be of types that say nothing."""

STEP = 1 << 21
LARGEST_DOCUMENT = 1 << 26


class TakesLines(Protocol):
    """What wants each physical line as it is read, such as `ctxctl.formats.store.LineStore`."""

    def add(self, data: bytes) -> None:
        """The next line, with its end."""


def read(path: str, *, format_name: str | None = None, companions: bool = True) -> Transcript:
    """The transcript at a path (or `-`) with its blocks and raw lines, ready to be written back.

    format_name: instead of detecting. companions: whether sub-agent files of the session are read too.
    Raises InputError (unreadable, unknown format, no usable record) and NothingFoundError (empty).
    """
    blocks: list[Block] = []
    raw: list[RawLine] = []
    transcript = scan(path, blocks.append, format_name=format_name, companions=companions, keep=raw)
    return replace(transcript, blocks=tuple(blocks), raw=tuple(raw))


def scan(
    path: str,
    emit: Emit,
    *,
    format_name: str | None = None,
    companions: bool = True,
    usage_only: bool = False,
    keep: list[RawLine] | None = None,
    progress: Progress | None = None,
    on_model: Callable[[str], None] | None = None,
    store: TakesLines | None = None,
    on_cut: Callable[[], None] | None = None,
    on_reader: Callable[[Format], None] | None = None,
) -> Transcript:
    """Read the transcript at a path, handing each block to `emit`; the result holds everything else.

    usage_only: parse only lines that can carry usage or a compaction, emit nothing. keep: takes the raw lines; store:
    takes them so that they can be asked for again. on_model: called with each model name when it is first seen.
    on_cut: at each full compaction of the recording. on_reader: called with the reader before its first record.
    """
    chosen = FORMATS.get(format_name) if format_name else None
    with open_stream(path) as stream:
        diagnostics = Diagnostics()
        head, rest, document = _head(stream, diagnostics, chosen)
        records = [value for line, _, values in head for value in values]
        if all(value == [] for value in records):
            raise _aider(path, head) or _nothing_usable(path, diagnostics, records)
        if chosen is None:
            try:
                chosen = detect(records, path)
            except NotATranscriptError:
                if (history := _aider(path, head)) is not None:
                    raise history from None
                raise
        reader = chosen(path, emit, usage_only=usage_only)
        reader.diagnostics = diagnostics
        reader.on_model = on_model
        reader.on_cut = on_cut
        if on_reader is not None:
            on_reader(reader)
        for line, data, values in head:
            if keep is not None:
                keep.append(RawLine(line, data))
            if store is not None:
                store.add(data)
            for value in values:
                _feed(reader, value, line)
        if not document:
            feed_lines(reader, stream, rest, len(head), usage_only, keep, store, progress)
        if stream.truncated:
            reader.complete = False
            diagnostics.add("warning", "torn_compression", f"the compressed stream ends early: {stream.truncated}")
    if reader.records == 0:
        raise _nothing_usable(path, diagnostics, records)
    if companions and path != "-":
        for companion in chosen.companions(Path(path)):
            _companion(reader, companion, usage_only)
    transcript = reader.finish()
    empty = not (transcript.threads and (transcript.usage or transcript.order or transcript.live))
    if format_name and empty and not chosen.sniff(records, path):
        raise InputError(
            f"nothing in it reads as {chosen.name}", path=path, hint="leave out --from, or try another format"
        )
    return transcript


Head = list[tuple[int, bytes, list[Json]]]


def _head(stream: Stream, diagnostics: Diagnostics, chosen: type[Format] | None) -> tuple[Head, Iterator[bytes], bool]:
    """The first lines, parsed, until 50 records are known; and whether they are the whole file as one document."""
    lines = stream.lines()
    first: list[bytes] = []
    for data in lines:
        first.append(data)
        if data.strip(b" \t\r\n\x00" + BOM):
            break
    else:
        if stream.truncated:
            raise InputError(f"the compressed stream is damaged: {stream.truncated}", path=stream.name)
        if any(b"\x00" in data for data in first):
            raise InputError("no usable record: the file holds only NUL bytes", path=stream.name)
        raise NothingFoundError("the file is empty", path=stream.name)
    start = first[-1].removeprefix(BOM).lstrip()
    if start[:1] in (b"[", b"{") and not _is_json(start):
        # one document over several lines, or JSON lines whose first one is damaged: only the whole can tell
        following, size = [], 0
        for data in lines:
            following.append(data)
            size += len(data)
            if size > LARGEST_DOCUMENT and start[:1] == b"{" and any(map(_is_object, following[:LOOK_AT])):
                break
        else:
            data = b"".join([*first, *following])
            pretty = len(following) > 2 and not any(map(_is_object, following[:LOOK_AT]))
            value = _document(data, stream.name, diagnostics, pretty=pretty)
            if value is not None:
                return [(1, data, [value])], iter(()), True
        lines = itertools.chain(following, lines)
    head: Head = []
    known = 0
    for number, data in enumerate(itertools.chain(first, lines), 1):
        if not data.endswith(b"\n") and not _is_json(data):
            if known:  # the torn tail is judged where all tails are, with the rest of the file
                return head, itertools.chain([data], lines), False
            diagnostics.add("warning", "torn_tail", f"the last line is cut after {len(data)} bytes", number)
            break
        values = parse_line(data, number, diagnostics)
        head.append((number, data, values))
        known += len(values)
        if known >= LOOK_AT:
            break
    return head, lines, False


def _aider(path: str, head: Head) -> NotATranscriptError | None:
    if not is_aider([data for _, data, _ in head]):
        return None
    return NotATranscriptError(
        "this looks like an aider chat history, which ctxctl does not read", path=path, hint=HINT
    )


def _document(data: bytes, name: str, diagnostics: Diagnostics, *, pretty: bool) -> Json | None:
    """The value of a file that is one JSON document over several lines, None when it rather is JSON lines. pretty: no
    line of it is a record."""
    try:
        return orjson.loads(data.removeprefix(BOM))
    except orjson.JSONDecodeError as error:
        values = parse_line(data, 1, quiet := Diagnostics())
        if len(values) == 1 and not quiet.count("damaged_line"):
            diagnostics.extend(quiet.items())
            return values[0]
        if pretty and data.removeprefix(BOM).lstrip()[:2] in (b"{\n", b"[\n", b"{\r", b"[\r"):
            raise InputError(
                f"a damaged JSON document: {error.msg} (column {error.colno})",
                path=name,
                line=error.lineno,
                hint="the file may be cut; JSON lines would survive this, one document does not",
            ) from None
        return None


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data.removeprefix(BOM))
    except orjson.JSONDecodeError:
        return False
    return True


def _is_object(data: bytes) -> bool:
    try:
        return bool(isinstance(value := orjson.loads(data), dict) and value)
    except orjson.JSONDecodeError:
        return False


def _feed(reader: Format, value: Json, line: int) -> None:
    if isinstance(value, dict) or (reader.document and isinstance(value, list)):
        reader.records += 1
        reader.feed(value, line)
    else:
        kind = type(value).__name__ if value is not None else "null"
        reader.diagnostics.add("warning", "not_an_object", f"a JSON {kind} instead of an object", line)


def feed_lines(
    reader: Format,
    stream: Stream,
    lines: Iterator[bytes],
    number: int,
    usage_only: bool = False,
    keep: list[RawLine] | None = None,
    store: TakesLines | None = None,
    progress: Progress | None = None,
) -> None:
    """Feed a reader with lines of a file, of which so many came before. A torn last one is left out."""
    loads, feed, wanted = orjson.loads, reader.feed, reader.wanted
    data, seen = b"", 0
    for data in lines:
        number += 1
        if keep is not None:
            keep.append(RawLine(number, data))
        if store is not None:
            store.add(data)
        if progress is not None and (seen := seen + len(data)) > STEP:
            progress(stream.position(), stream.size)
            seen = 0
        if usage_only and not wanted(data):
            continue
        try:
            value = loads(data)
        except orjson.JSONDecodeError:
            if not data.endswith(b"\n") and not data.isspace() and _torn(reader, data, number):
                return
            for value in parse_line(data, number, reader.diagnostics):
                _feed(reader, value, number)
            continue
        if type(value) is dict:
            reader.records += 1
            feed(value, number)
        else:
            _feed(reader, value, number)


def _torn(reader: Format, data: bytes, line: int) -> bool:
    """Whether the last line is half-written: it has no end and holds no whole record."""
    if parse_line(data, line, Diagnostics()):
        return False
    reader.complete = False
    reader.diagnostics.add(
        "warning", "torn_tail", f"the last line is cut after {len(data)} bytes; it is left out", line
    )
    return True


def _companion(reader: Format, path: Path, usage_only: bool) -> None:
    try:
        with open_stream(str(path)) as stream:
            reader.begin_companion(path)
            reader.diagnostics.path = str(path)
            complete = reader.complete
            feed_lines(reader, stream, stream.lines(), 0, usage_only, None, None, None)
            reader.complete = complete  # a helper's torn tail says nothing of the session's own
    except InputError as error:
        reader.diagnostics.add("warning", "companion_unreadable", str(error))
    finally:
        reader.diagnostics.path = None


def _nothing_usable(path: str, diagnostics: Diagnostics, records: list[Json]) -> InputError | NothingFoundError:
    if any(value == [] for value in records):
        return NothingFoundError("a JSON array with 0 messages", path=path)
    bad = [item for item in diagnostics.items() if item.line is not None]
    detail = f": {bad[0].message}" if bad else ""
    count = f" ({len(bad)} bad lines)" if len(bad) > 1 else ""
    return InputError(
        f"no usable record{count}{detail}",
        path=path,
        line=bad[0].line if bad else None,
        hint=HINT,
    )
