"""The audit trail: JSON lines that are only ever added to, each with the hash of the one before it (requirement G5).

A line is its record in canonical form (RFC 8785): members sorted by name, no blanks, UTF-8. Names are ASCII, so that
every way of sorting gives the same order; numbers are integers below 2**53 or have at most four decimals, so that every
writer prints them alike. `hash` is the SHA-256, in hex, of that form without the member `hash` itself; `prev` is the
`hash` of the record before, 64 zeros in the first.
"""

from __future__ import annotations

import codecs
import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import orjson

from ctxctl.errors import InputError
from ctxctl.model.text import clean
from ctxctl.registry import closest
from ctxctl.state.files import WAIT, append_whole, appending, opened_plain, sanitized, time_stamp
from ctxctl.state.options import StateOptions

SCHEMA = "ctxctl.audit/1"
TYPES = ("eviction", "compaction", "budget_refusal", "save", "resume", "steering")
FIRST = "0" * 64
"""`prev` of the first record."""
LARGEST = 1 << 20
"""Bytes of a record at most."""
DECIMALS = 4
_EXACT = 2**53
_TAIL = 1 << 12
"""Bytes of the end that are read first for the last record."""
_HASH = re.compile(r"[0-9a-f]{64}")
_HASHES = re.compile(r"(?:.*_)?(?:sha256|hash)")
"""Members whose value may be a hash, which is no secret."""
_BEGINNING = b'{"data":{'


@dataclass(frozen=True, slots=True)
class Event:
    """What is to be recorded. type: one of TYPES. data: plain values. turn: the model call that it belongs to. time:
    ISO 8601; None: when it is written. Raises ValueError for another type."""

    type: str
    data: Mapping[str, Any]
    turn: int | None = None
    transcript: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            near = closest(self.type, list(TYPES))
            also = f"did you mean {near!r}?" if near else f"known: {', '.join(TYPES)}"
            raise ValueError(f"{self.type!r} is no type of an audit record; {also}")


def append(
    path: Path, events: Sequence[Event], *, now: datetime | str, mode_of: str | None = None, wait: float = WAIT
) -> None:
    """Append one record per event, all in one piece. now: the time of those that have none, ISO 8601 as text. wait:
    seconds for another writer.

    Safe with others that append at the same time. Only the end of the file is read; what a crash left of a line stays
    where it is, and the chain goes on behind it. Credentials are taken out of texts. A new file is no wider than
    `mode_of`; nothing is made or touched for no events. Raises InputError when it can't be written in time or holds
    something else, ValueError for data that has no canonical form or is larger than LARGEST.
    """
    stamp = time_stamp(now)
    _append(path, [_draft(event, stamp) for event in events], mode_of, wait)


def _draft(event: Event, stamp: str) -> dict[str, Any]:
    """A record but for its place in the chain."""
    return {
        "schema": SCHEMA,
        "seq": 0,
        "time": event.time or stamp,
        "type": event.type,
        "turn": event.turn,
        "transcript": _plain(event.transcript, ""),
        "data": _plain(event.data, ""),
    }


def _append(path: Path, drafts: Sequence[dict[str, Any]], mode_of: str | None, wait: float) -> None:
    if not drafts:
        return
    with appending(path, mode_of=mode_of, wait=wait) as file:
        seq, prev = _head(path, file)
        lines: list[bytes] = []
        for draft in drafts:
            seq += 1
            entry = {**draft, "seq": seq, "prev": prev}
            prev = entry["hash"] = hashed(entry)
            lines.append(canonical(entry) + b"\n")
            if len(lines[-1]) > LARGEST:
                raise ValueError(f"an audit record of {len(lines[-1]):,} bytes; at most {LARGEST:,}")
        append_whole(path, file, b"".join(lines))


def record(
    folder: Path,
    options: StateOptions,
    type: str,
    data: Mapping[str, Any],
    *,
    now: datetime | str,
    turn: int | None = None,
    transcript: str | None = None,
    mode_of: str | None = None,
    wait: float = WAIT,
) -> Path:
    """Append one record to the trail of a state folder, as `append` does; returns the trail's path."""
    path = folder / options.audit_file
    append(path, [Event(type, data, turn, transcript)], now=now, mode_of=mode_of, wait=wait)
    return path


def check_writable(path: Path) -> None:
    """Raises InputError where `append` could be told beforehand to fail; nothing is made or changed."""
    at = path
    while not os.path.lexists(at) and at != at.parent:
        at = at.parent
    reason = None
    if at != path and not at.is_dir():
        reason = f"{at} is not a folder"
    elif at == path and path.exists() and not path.is_file():
        reason = "it is no plain file"
    elif not os.access(at, os.W_OK if at == path else os.W_OK | os.X_OK):
        reason = "Permission denied"
    if reason is not None:
        raise InputError(f"can't be written: {reason}", path=str(path))
    if at == path and path.exists():
        with suppress(FileNotFoundError), opened_plain(path) as file:  # one that is gone by now is made anew
            _head(path, file)


class AuditTrail:
    """The trail of one live session: events wait in memory until `flush` writes them in one piece.

    clock: the time of an event; by default the present, in UTC. transcript: id of the session. wait: seconds for
    another writer. An event that can't be written waits for the next flush; used as a context manager, leaving it
    flushes.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Callable[[], datetime] | None = None,
        transcript: str | None = None,
        mode_of: str | None = None,
        wait: float = WAIT,
    ) -> None:
        self.path = Path(path)
        self.transcript = transcript
        self._clock = clock or (lambda: datetime.now(UTC))
        self._mode_of, self._wait = mode_of, wait
        self._waiting: list[dict[str, Any]] = []

    @property
    def waiting(self) -> int:
        """Events that are not in the file yet."""
        return len(self._waiting)

    def add(self, type: str, data: Mapping[str, Any], *, turn: int | None = None) -> None:
        """An event, as it happens. Raises ValueError for a type that there is not and for data that has no form."""
        # made ready once: a trail that can't be written is tried again with each event, and has ever more of them
        self._waiting.append(_draft(Event(type, data, turn, self.transcript), time_stamp(self._clock())))

    def flush(self) -> None:
        """Write what waits. Raises InputError when that fails; then everything waits on."""
        if self._waiting:
            _append(self.path, self._waiting, self._mode_of, self._wait)
            self._waiting.clear()

    def __enter__(self) -> AuditTrail:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


def canonical(value: Any) -> bytes:
    """The canonical form of a value that has one."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def hashed(entry: Mapping[str, Any]) -> str:
    """The hash of a record, whatever it says itself."""
    return hashlib.sha256(canonical({key: item for key, item in entry.items() if key != "hash"})).hexdigest()


def is_torn(line: bytes) -> bool:
    """Whether a line is the beginning of a record whose writer was cut off, and nothing else. A power cut may leave
    zero bytes where the file system had not written yet."""
    piece = line.rstrip(b"\0")
    if not piece.startswith(_BEGINNING):
        return bool(line) and _BEGINNING.startswith(piece)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(piece)  # it may end within a character
        orjson.loads(text)
    except UnicodeDecodeError:
        return False
    except orjson.JSONDecodeError as error:
        return error.pos >= len(text)
    return False


def _head(path: Path, file: BinaryIO) -> tuple[int, str]:
    """Number and hash of the last record as it stands there; whether it is sound is for `verify` to say. Raises
    InputError for a file that is no trail or can't be read."""
    try:
        size = file.seek(0, os.SEEK_END)
        start, step = size, _TAIL
        while start > 0:
            start = max(0, size - step)
            file.seek(start)
            lines = file.read(size - start).split(b"\n")
            for line in reversed(lines if start == 0 else lines[1:]):
                if found := _link(line):
                    return found
            step *= 4
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None
    if size and not all(is_torn(line) for line in lines if line):
        raise InputError("this file is no audit trail", path=str(path), hint="move it away, or name another file")
    return 0, FIRST


def _link(line: bytes) -> tuple[int, str] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    seq, hash_ = value.get("seq"), value.get("hash")
    if type(seq) is not int or not 0 < seq < _EXACT:  # a record after it could not be numbered
        return None
    if isinstance(hash_, str) and "prev" in value and _HASH.fullmatch(hash_):
        return seq, hash_
    return None


def _plain(value: Any, name: str) -> Any:
    """A value that has a canonical form, without credentials. name: of the member that it is."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if _HASHES.fullmatch(name) and _HASH.fullmatch(value) else sanitized(clean(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value, DECIMALS)
        value = int(value) if value.is_integer() else value
    if isinstance(value, int | float):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not key.isascii():
                raise ValueError(f"{key!r} is no name of a member: plain ASCII only")
        return {key: _plain(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(item, name) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if isinstance(value, PurePath):
        return _plain(str(value), name)
    if isinstance(value, datetime):
        return time_stamp(value)
    raise ValueError(f"{name or 'data'}: {value!r} has no form in JSON")
