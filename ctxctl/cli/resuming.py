"""Where a resume starts from: the state of a folder, a state file, or a transcript."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from ctxctl.errors import InputError
from ctxctl.model.state import AgentState
from ctxctl.state.options import StateOptions
from ctxctl.state.record import is_state

LARGEST = 64 << 20
"""Bytes of a file that may be a state: what is larger is a transcript."""
BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Source:
    """path: as it was given. folder: where the state lies, or would. saved: whether it comes from a state file."""

    state: AgentState
    path: str
    folder: Path
    saved: bool

    @property
    def files(self) -> tuple[str, ...]:
        """The file whose permissions bound those of what is written."""
        return () if self.path == "-" else (self.path,)

    def is_at(self, path: Path) -> bool:
        """Whether a path is the input itself."""
        return self.path != "-" and os.path.samefile(self.path, path)


def source_of(
    path: str | None,
    state_dir: Path | None,
    options: StateOptions,
    now: datetime,
    *,
    format_name: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Source:
    """The state that is meant. A transcript is read as a checkpoint would, and nothing is written.

    Raises NothingFoundError when there is no state, InputError for what can't be read.
    """
    from ctxctl.state import record

    if path is None:
        folder = state_dir or Path()
        return Source(record.load(folder / options.state_file), str(folder / options.state_file), folder, True)
    place = Path(path)
    if path != "-" and place.is_dir():
        return Source(record.load(place / options.state_file), str(place / options.state_file), place, True)
    folder = state_dir or (place.parent if path != "-" else Path())
    if format_name is None:
        if path == "-":
            value = _state_on_stdin()
            if value is not None:
                return Source(record.from_json(value, path=path), path, state_dir or Path(), False)
        elif _may_be_state(place):
            return Source(record.load(place), path, folder, True)
    from ctxctl.state.saving import from_transcript

    folder = state_dir or Path()
    state = from_transcript(path, folder, options, now, format_name=format_name, progress=progress)
    return Source(state, path, folder, False)


def _may_be_state(path: Path) -> bool:
    """Whether a file is to be read as a state: it is one, or it is not there and has the name of one."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
            if not _begins(head) or os.fstat(file.fileno()).st_size > LARGEST:
                return False
            return is_state(_json(head + file.read()))
    except FileNotFoundError:
        return path.suffix == ".json"
    except OSError:
        return False


def _state_on_stdin() -> dict[str, Any] | None:
    """The state on stdin, by the same rules as in a file; None where that is something else, which can then be read
    from stdin as if nothing of it had been taken. Raises InputError when reading fails."""
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        return None
    data = b""
    try:
        while len(data) <= LARGEST and (line := buffer.readline(LARGEST + 1 - len(data))):
            data += line
            if line.removeprefix(_BOM).strip():
                break
        first = _json(data)
        # a session has a whole record in its first line: then the rest of it is left where it is
        if _begins(data) and (first is None or is_state(first)):
            data += buffer.read(LARGEST + 1 - len(data))
            value = _json(data) if len(data) <= LARGEST else None
            if value is not None and is_state(value):
                return dict(value)
    except OSError as error:
        raise InputError(f"reading failed: {error.strerror or error}", path="-") from None
    rest = io.BufferedReader(_Behind(data, buffer), BUFFER)
    sys.stdin = io.TextIOWrapper(rest, encoding="utf-8", errors="replace")
    return None


class _Behind(io.RawIOBase):
    """Bytes that were taken from a stream, and then the rest of it."""

    def __init__(self, taken: bytes, rest: BinaryIO) -> None:
        self._taken, self._rest = memoryview(taken), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._taken:
            # what is there: a writer that is slow is not waited for
            return self._rest.readinto1(buffer)  # type: ignore[attr-defined,no-any-return]
        size = min(len(buffer), len(self._taken))
        buffer[:size] = self._taken[:size]
        self._taken = self._taken[size:]
        return size


def _begins(data: bytes) -> bool:
    """Whether JSON of an object begins here."""
    return data.removeprefix(_BOM).lstrip().startswith(b"{")


def _json(data: bytes) -> Any:
    """The value of a JSON document, None when it is none."""
    import orjson

    try:
        return orjson.loads(data.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        return None
