"""Where a resume starts from: the state of a folder, a state file, or a transcript."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxctl.errors import InputError
from ctxctl.model.state import AgentState
from ctxctl.state.options import StateOptions

LARGEST = 64 << 20
"""Bytes of a file that may be a state: what is larger is a transcript."""


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
                return Source(record.from_json(value), path, state_dir or Path(), False)
        elif _may_be_state(place):
            return Source(record.load(place), path, folder, True)
    from ctxctl.state.saving import from_transcript

    folder = state_dir or Path()
    state = from_transcript(path, folder, options, now, format_name=format_name, progress=progress)
    return Source(state, path, folder, False)


def _may_be_state(path: Path) -> bool:
    """Whether a file is to be read as a state: it is one, or it is not there and has the name of one."""
    import orjson

    from ctxctl.state.record import is_state

    try:
        with path.open("rb") as file:
            head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
            if not head.startswith(b"{") or os.fstat(file.fileno()).st_size > LARGEST:
                return False
            file.seek(0)
            return is_state(orjson.loads(file.read().removeprefix(b"\xef\xbb\xbf")))
    except FileNotFoundError:
        return path.suffix == ".json"
    except (OSError, orjson.JSONDecodeError):
        return False


def _state_on_stdin() -> dict[str, Any] | None:
    """The state on stdin, None where that is something else; then nothing of it was taken."""
    import orjson

    from ctxctl.state.record import is_state

    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None or not hasattr(buffer, "peek"):
        return None
    head = buffer.peek(1)
    if not head.lstrip().startswith(b"{") or b"\n{" in head.strip() or b'"ctxctl.state/' not in head:
        return None
    try:
        value = orjson.loads(buffer.read())
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON: {error.msg}", path="-", line=error.lineno) from None
    if not is_state(value):
        raise InputError("no state of a task", path="-")
    return dict(value)
