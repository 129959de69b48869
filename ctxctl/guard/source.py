"""What the guard is pointed at: a transcript, of which it knows what came from tools, or any other text."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ctxctl.errors import CtxctlError, InputError, NothingFoundError
from ctxctl.formats.base import Diagnostics, Json
from ctxctl.formats.jsonlines import parse_line
from ctxctl.formats.read import read
from ctxctl.formats.write import write
from ctxctl.guard.records import Change, rewrite_results
from ctxctl.guard.sanitize import sanitize
from ctxctl.guard.secrets import find_secrets
from ctxctl.model.transcript import Transcript

LOOKED_AT = frozenset(("tool_result", "user_message", "memory_injection"))
"""Kinds of blocks that others than the model and its maker wrote."""

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to look at. line, block, kind, tool: where it stands in a transcript; None in other text."""

    text: str
    line: int | None = None
    block: str | None = None
    kind: str | None = None
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """An input. transcript: with its blocks and raw lines, None for plain text, which is in `data`."""

    path: str
    data: bytes
    transcript: Transcript | None = None

    @property
    def format(self) -> str:
        """Name of the transcript's format, or `text`."""
        return TEXT if self.transcript is None else self.transcript.format

    @property
    def passages(self) -> Iterator[Passage]:
        """What is looked at: all of a text; of a transcript the results of tools, and what users and clients wrote."""
        if self.transcript is None:
            yield Passage(self.data.decode("utf-8", "replace"))
            return
        for block in self.transcript.blocks:
            if block.kind in LOOKED_AT and block.text:
                yield Passage(block.text, block.source.line, block.id, block.kind, block.tool_name)

    @property
    def looked_at(self) -> str:
        """In words, what `passages` are."""
        if self.transcript is None:
            return f"{len(self.data):,} bytes of text"
        kinds = Counter(passage.kind for passage in self.passages)
        rest = sum(kinds.values()) - kinds["tool_result"]
        return f"{kinds['tool_result']:,} tool results and {rest:,} texts of users, {self.format}"


def load(path: str, format_name: str | None = None) -> Source:
    """What is at a path, or on stdin for `-`. It is a transcript when it reads as one and most of its lines are
    records; else it is plain text. format_name: decides instead; `text` for plain text. Raises InputError when it can't
    be read, and NothingFoundError when there is nothing in it."""
    data = _bytes(path)
    if not data:
        raise NothingFoundError("the file is empty", path=path)
    if format_name == TEXT:
        return Source(path, data)
    try:
        transcript = _transcript(path, data, format_name)
    except CtxctlError:
        if format_name is not None:
            raise
        return Source(path, data)
    lines = sum(1 for raw in transcript.raw if raw.data.strip())
    if format_name is None and transcript.records * 2 < lines:
        return Source(path, data)
    return Source(path, data, transcript)


def _bytes(path: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", path="-", hint="pipe a text in, or give a file")
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise InputError("no such file", path=path, hint="check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"can't be read: {getattr(error, 'strerror', None) or error}", path=path) from None


def _transcript(path: str, data: bytes, format_name: str | None) -> Transcript:
    """Read from the path where it is a plain file, else from a copy: stdin is read only once."""
    if path != "-" and os.path.isfile(path):
        return read(path, format_name=format_name, companions=False)
    with tempfile.NamedTemporaryFile(prefix="ctxctl-", suffix=".jsonl") as copy:
        copy.write(data)
        copy.flush()
        return read(copy.name, format_name=format_name, companions=False)


def cleaned(source: Source) -> tuple[Iterator[bytes], dict[str, int], int]:
    """The bytes without what sanitizing takes out, what was taken out by sort (second copies that a client keeps count
    too), and how many credentials stand in parts of a transcript that are never rewritten. Raises InputError for a line
    with several records of which one would change."""
    counts = {"secrets": 0, "data_uris": 0, "hex": 0, "injections": 0, "surrogates": 0}

    def change(text: str, surrogates: bool = True) -> str:
        done = sanitize(text, surrogates=surrogates)
        for name in counts:
            counts[name] += getattr(done, name)
        return done.text

    if source.transcript is None:
        # bytes that are no UTF-8 come out as they went in
        text = source.data.decode("utf-8", "surrogateescape")
        new = change(text, surrogates=False)
        return iter((source.data if new is text else new.encode("utf-8", "surrogateescape"),)), counts, 0
    changes = dict(_changes(source.path, source.transcript, change))
    left = sum(len(find_secrets(b.text)) for b in source.transcript.blocks if b.kind != "tool_result")
    return write(source.transcript, changes), counts, left


def _changes(path: str, transcript: Transcript, change: Change) -> Iterator[tuple[int, Json]]:
    """New records by line, of those in which a tool's text changes."""
    prompts = transcript.format == "mini-swe-agent"
    for raw in transcript.raw:
        values = parse_line(raw.data, raw.line, Diagnostics())
        for value in values:
            new = rewrite_results(value, change, prompts_are_results=prompts)
            if new is value:
                continue
            if len(values) > 1:
                raise InputError(
                    "several records stand on one line, and one of them has to be changed",
                    path=path,
                    line=raw.line,
                    hint="put each record on a line of its own, or treat the file as plain text with --from text",
                )
            yield raw.line, new
