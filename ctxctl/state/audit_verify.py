"""Whether an audit trail is as it was written: nothing changed, removed, put in or moved (requirement G5)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.state.audit import FIRST, LARGEST, is_torn
from ctxctl.state.files import WAIT, lock_until, opened_plain

NAMED = 20
"""Broken records that are named; the others are counted."""
_ANCHOR = re.compile(r"0*([1-9]\d{0,17}):([0-9a-fA-F]{64})")
DEEP = 200
"""Brackets in a line from which on they may be nested deeper than can be written."""
_SORTED = orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class Broken:
    """A place where the chain does not hold. line: 1-based, None where the record should stand and does not. seq: of
    the record, None for what is no record."""

    line: int | None
    seq: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found. records: whole ones. head: number and hash of the last record, None without one. broken: the
    first places where the chain does not hold, in the order of the file; faults: all of them. torn: lines that a crash
    left half written, with the chain whole around them."""

    records: int
    head: tuple[int, str] | None
    broken: tuple[Broken, ...] = ()
    faults: int = 0
    torn: tuple[int, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether every record is as it was written, and none is missing in front of the last."""
        return not self.faults

    @property
    def anchor(self) -> str | None:
        """The head as `SEQ:HASH`, to be kept where the trail's writers can't reach it."""
        return f"{self.head[0]}:{self.head[1]}" if self.head is not None else None


def anchor_of(text: str) -> tuple[int, str]:
    """Number and hash of an anchor, `SEQ:HASH`. Raises ValueError for anything else."""
    if (match := _ANCHOR.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is no anchor: SEQ:HASH, as `ctxctl audit verify --anchor` prints it")
    return int(match[1]), match[2].lower()


def verify(path: Path, expected: Mapping[int, str] | None = None, *, wait: float = WAIT) -> Verified:
    """Look at every record once, with one line in memory at a time. expected: hashes of records that must be in it, by
    number: the chain alone can't tell that its end was cut off, nor that all of it was written anew. wait: seconds for
    whoever is writing it.

    Raises NothingFoundError for no file or an empty one, InputError for one that can't be read, or not in that time.
    """
    with _opened(path, wait) as (file, size):
        if not size:
            raise NothingFoundError("the audit trail is empty", path=str(path))
        return _Check(dict(expected or {})).run(file, size)


def read(path: Path, *, wait: float = WAIT) -> Iterator[dict[str, Any]]:
    """The records of a trail as they stand there, whether they are sound or not; lines that are none are passed over.

    Raises as `verify` does.
    """
    with _opened(path, wait) as (file, size):
        if not size:
            raise NothingFoundError("the audit trail is empty", path=str(path))
        for line in _lines(file, size):
            record = None if line is None else _record(line)
            if record is not None:
                yield record


class _Check:
    """One pass over a trail."""

    def __init__(self, expected: dict[int, str]) -> None:
        self._expected = expected
        self._broken: list[Broken] = []
        self._faults = 0
        self._torn: list[int] = []
        self._cut: list[int] = []  # torn lines behind the last record
        self._records = 0
        self._seq, self._prev = 0, FIRST
        self._doubted = False

    def run(self, file: BinaryIO, size: int) -> Verified:
        ended = True
        for number, line in enumerate(_lines(file, size), 1):
            if line is None:
                self._fault(number, None, f"is no record: longer than {LARGEST:,} bytes")
                continue
            ended = line.endswith(b"\n")
            line = line[:-1] if ended else line
            record = _record(line)
            if record is not None:
                self._one(number, line, record)
            elif is_torn(line):
                self._cut.append(number)
            else:
                self._fault(number, None, "is no record")
        if ended:  # whoever is cut off does not end the line
            for number in self._cut:
                self._fault(number, self._seq + 1, "was cut short")
        else:
            self._torn += self._cut
        for seq, hash_ in sorted(self._expected.items()):
            why = f"the record {seq} with the expected hash {hash_} is not in the trail"
            self._fault(None, seq, f"{why}, which ends with record {self._seq}: its end was cut off")
        head = (self._seq, self._prev) if self._records else None
        return Verified(self._records, head, tuple(self._broken), self._faults, tuple(self._torn))

    def _one(self, number: int, line: bytes, record: dict[str, Any]) -> None:
        self._records += 1
        claimed, seq, prev = record.pop("hash"), record["seq"], record["prev"]
        found = sha256(orjson.dumps(record, option=_SORTED)).hexdigest()
        sound = found == claimed
        if not sound:
            self._fault(number, seq, f"was changed: its content has the hash {found}, not the {claimed} that it names")
        else:
            record["hash"] = claimed
            if orjson.dumps(record, option=_SORTED) != line:
                self._fault(number, seq, "was rewritten: it is not in canonical form, or names a member twice")
        wanted = self._seq + 1
        if seq == wanted:
            if prev != self._prev:
                self._fault(number, seq, self._unlinked(seq))
            self._torn += self._cut
        elif seq > wanted:
            if self._cut:
                self._fault(self._cut[0], wanted, "was cut short")
            else:
                gone = f"{wanted} is" if seq == wanted + 1 else f"{wanted} to {seq - 1} are"
                self._fault(number, wanted, f"is not where it belongs: {gone} missing, record {seq} stands there")
        else:
            self._cut = []
            self._fault(number, seq, f"stands behind record {self._seq}: it was put in or moved")
            return
        self._cut = []
        self._seq, self._prev = seq, claimed
        if (hash_ := self._expected.pop(seq, None)) is not None and hash_ != claimed:
            self._fault(number, seq, f"has the hash {claimed}, not the expected {hash_}: the trail was written anew")

    def _unlinked(self, seq: int) -> str:
        if seq == 1:
            return "is not the first of this chain: its `prev` is not 64 zeros"
        return f"does not follow from record {seq - 1}, which has another hash than its `prev`: one was exchanged"

    def _fault(self, line: int | None, seq: int | None, why: str) -> None:
        self._faults += 1
        if len(self._broken) < NAMED:
            self._broken.append(Broken(line, seq, why))


def _record(line: bytes) -> dict[str, Any] | None:
    """A line as a record: an object that can be a link of a chain."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or type(value.get("seq")) is not int:
        return None
    if not isinstance(value.get("hash"), str) or not isinstance(value.get("prev"), str):
        return None
    return None if line.count(b"{") + line.count(b"[") > DEEP and _is_too_deep(value) else value


def _is_too_deep(value: Any) -> bool:
    """Whether a value that could be read can't be written: no writer of ours left it. Tried within what it is shown
    in."""
    try:
        orjson.dumps([[[value]]])
    except TypeError:
        return True
    return False


def _lines(file: BinaryIO, size: int) -> Iterator[bytes | None]:
    """Lines of the first `size` bytes, with their end; None for one that is too long to be a record."""
    while size > 0:
        line = file.readline(min(size, LARGEST + 1))
        if not line:
            return
        size -= len(line)
        if line.endswith(b"\n") or len(line) <= LARGEST:
            yield line
        else:
            while size > 0 and (more := file.readline(min(size, LARGEST))):
                size -= len(more)
                if more.endswith(b"\n"):
                    break
            yield None


@contextmanager
def _opened(path: Path, wait: float) -> Iterator[tuple[BinaryIO, int]]:
    """A trail, and the size that it has while nobody is in the middle of writing."""
    try:
        file = opened_plain(path)
    except FileNotFoundError:
        hint = "`ctxctl checkpoint`, `resume` and `compact` begin one in --state-dir, by default the working folder"
        raise NothingFoundError("there is no audit trail", path=str(path), hint=hint) from None
    with file:
        try:
            lock_until(path, file, time.monotonic() + wait, wait, shared=True)
            size = os.fstat(file.fileno()).st_size
            _let_go(file)
            yield file, size
        except OSError as error:
            raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None


def _let_go(file: BinaryIO) -> None:
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
