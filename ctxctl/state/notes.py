"""The notes file: Markdown that only grows, and that the next window starts from (requirement C3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ctxctl.errors import InputError
from ctxctl.model.edits import Note
from ctxctl.model.text import clean
from ctxctl.state.files import WAIT, append_whole, appending, opened_plain, sanitized, time_stamp

_HEAD = re.compile(r"## \[(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[^\]]{0,20})\] *(\S.*?) *")
_MARKUP = re.compile(r"(?m)^(?=\\*(?:---[ \t]*$|## \[))")
_ESCAPED = re.compile(r"(?m)^\\(?=\\*(?:---[ \t]*$|## \[))")
_NOW = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A note as it stands in the file. at: its time as written. type: in lower case where it is one of ours, else as it
    is. line: 1-based, of its heading."""

    at: str
    type: str
    text: str
    line: int


TYPES = ("decision", "done", "lesson", "issue", "plan")
"""What ctxctl writes; other types are read."""


def read_notes(path: Path) -> tuple[Entry, ...]:
    """The notes of a file, oldest first; none where there is no file. What stands before the first note is passed over.
    Raises InputError for a file that can't be read."""
    try:
        with opened_plain(path) as file:
            return _parse(file.read())
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None


def append_notes(
    path: Path, entries: Sequence[Note], now: datetime | str, *, mode_of: str | None = None, wait: float = WAIT
) -> int:
    """Append those notes that are not in the file yet, sanitised; returns how many. now: a time, ISO 8601 as text.

    Safe with others that append at the same time. A new file is no wider than `mode_of`. Nothing is made or touched for
    no notes. wait: seconds for another writer. Raises InputError for a file that can't be written in that time,
    ValueError for a time or a type that is none.
    """
    found = _NOW.match(time_stamp(now))
    if found is None:
        raise ValueError(f"{now!r} is no ISO 8601 time")
    wanted = [(_type(note.type), _text(note.text)) for note in entries]
    wanted = [(type_, text) for type_, text in wanted if text]
    if not wanted:
        return 0
    with appending(path, mode_of=mode_of, wait=wait) as file:
        data = file.read()
        known = {(entry.type, entry.text) for entry in _parse(data)}
        new = [note for note in dict.fromkeys(wanted) if note not in known]
        if new:
            lines = [
                f"## [{found[1]} {found[2]}] {t.upper() if t in TYPES else t}\n\n{_escape(x)}\n\n---\n" for t, x in new
            ]
            gap = "\n" if data.strip() else ""
            append_whole(path, file, (gap + "\n".join(lines)).encode())
        return len(new)


def _parse(data: bytes) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    head: tuple[str, str, int] | None = None
    body: list[str] = []
    lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
    for number, line in enumerate([*lines, None], 1):
        match = None if line is None else _HEAD.fullmatch(line)
        if line is not None and match is None:
            body.append(line)
            continue
        if head is not None:
            entries.append(Entry(head[0], head[1], _body(body), head[2]))
        body = []
        if match is not None:
            head = match[1], match[2].lower() if match[2].lower() in TYPES else match[2], number
    return tuple(entries)


def _body(lines: list[str]) -> str:
    """An entry's text: without the rule that ends it. A rule within the text is part of it."""
    text = "\n".join(lines).strip()
    if text == "---" or text.endswith("\n---"):
        text = text[:-3].strip()
    return _ESCAPED.sub("", text)


def _escape(text: str) -> str:
    """A text in which no line is taken for a heading or a rule of the file."""
    return _MARKUP.sub(r"\\", text)


def _type(text: str) -> str:
    type_ = " ".join(text.split())
    if not type_ or not type_.isprintable():
        raise ValueError(f"{text!r} is no type of a note")
    return type_.lower() if type_.lower() in TYPES else type_


def _text(text: str) -> str:
    return sanitized(clean(text)).replace("\r\n", "\n").replace("\r", "\n").strip()
