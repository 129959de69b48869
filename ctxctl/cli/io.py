"""Streams: one payload on stdout, everything else on stderr, files written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.errors import CtxctlError, InputError, UsageError

if TYPE_CHECKING:
    from ctxctl.reports.document import Report

NARROWEST, WIDE = 20, 400
QUIET_FOR = 0.8
"""Seconds of work before progress is shown."""


class ReaderGoneError(Exception):
    """Whoever read our stdout has closed it."""


class Streams:
    """What the shared options say about output. colour: auto, always or never; verbosity: -1 quiet, 0, 1 verbose."""

    def __init__(self, *, colour: str = "auto", verbosity: int = 0) -> None:
        self.colour = colour
        self.verbosity = verbosity

    def payload(self, data: bytes | Iterable[bytes]) -> None:
        """Write to stdout, in one piece or several. Raises ReaderGoneError when nobody reads any more, and InputError
        when it can't be written."""
        if sys.stdout is None:
            raise InputError("standard output is closed", hint="-o FILE writes to a file")
        try:
            sys.stdout.flush()
            buffer = getattr(sys.stdout, "buffer", None)
            for piece in (data,) if isinstance(data, bytes) else data:
                if buffer is None:
                    sys.stdout.write(piece.decode("utf-8", "replace"))
                else:
                    buffer.write(piece)
            if buffer is not None:
                buffer.flush()
            sys.stdout.flush()
        except BrokenPipeError:
            close_stdout()
            raise ReaderGoneError from None
        except OSError as error:
            close_stdout()
            raise InputError(f"standard output can't be written: {error.strerror or error}") from None

    def note(self, text: str, *, level: int = 0) -> None:
        """A line on stderr, unless quiet. level 1: only with -v."""
        if self.verbosity >= level and self.verbosity >= 0:
            say(text)

    def use_colour(self, stream: Any) -> bool:
        """Whether to colour a stream: the option, then NO_COLOR and FORCE_COLOR, then whether it is a terminal."""
        if self.colour != "auto":
            return self.colour == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"

    def text(self, reports: Sequence[Report], *, to_file: bool = False) -> bytes:
        """Reports as text for stdout: as wide as the terminal, in its encoding. Without a terminal: no colour, no
        wrapping. to_file: for a file instead, so without a terminal and in UTF-8; colour only when it is demanded."""
        import io

        from rich.console import Console

        from ctxctl.reports.text import render

        out = None if to_file else sys.stdout
        terminal = out is not None and out.isatty()
        colour = self.colour == "always" if out is None else self.use_colour(out)
        encoding = getattr(out, "encoding", None) or "utf-8"
        memory = io.StringIO()
        console = Console(
            file=memory,
            force_terminal=colour,
            no_color=not colour,
            color_system=("auto" if terminal else "256") if colour else None,
            width=self._width(terminal),
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
        )
        render(reports, console, unicode=can_show("█┤▼…", encoding), verbose=self.verbosity > 0)
        lines = memory.getvalue().split("\n")
        return "\n".join(lines if colour else [line.rstrip() for line in lines]).encode(encoding, "replace")

    @staticmethod
    def _width(terminal: bool) -> int:
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns) > 0:
            return max(NARROWEST, int(columns))
        if not terminal:
            return WIDE
        import shutil

        return max(NARROWEST, shutil.get_terminal_size().columns)


def say(text: str) -> None:
    """A line on stderr, whatever its encoding can show; a closed stderr is not an error."""
    if sys.stderr is None:
        return
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    with suppress(OSError, ValueError):
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()


def close_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it ends."""
    with suppress(OSError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())


def can_show(text: str, encoding: str) -> bool:
    """Whether an encoding has these characters."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_file(path: Path, data: bytes | Iterable[bytes], *, force: bool, modes_of: Iterable[str] = ()) -> None:
    """Write a whole file or none: a temporary file in the same folder, then a rename.

    data: in one piece, or in pieces; an error that comes with them leaves what was there. force: whether an existing
    file may be replaced (a symbolic link keeps pointing to where it did). modes_of: files whose permissions bound those
    of a new one.
    """
    import tempfile

    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file, such as report.json")
    if target.exists() and not force:
        raise UsageError(f"{path} exists", hint="--force replaces it")
    mode = new_mode(target, modes_of)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if not isinstance(error, OSError):
            raise
        raise InputError(f"can't be written: {error.strerror or error}", path=str(path)) from None


def new_mode(target: Path, sources: Iterable[str]) -> int:
    """The permissions of what is written at a path: those of the file there, else none wider than its sources' own."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mode = 0o666 & ~_umask()
    for source in sources:
        if os.path.isfile(source):
            mode &= stat.S_IMODE(os.stat(source).st_mode) | 0o600
    return mode


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Progress:
    """A line on stderr during long work; nothing without a terminal, nothing for short work. what: counted things;
    by default bytes are read."""

    def __init__(self, streams: Streams, label: str, what: str | None = None) -> None:
        self._what = what
        self._shown = False
        self._label = label
        self._on = streams.verbosity >= 0 and sys.stderr is not None and bool(sys.stderr.isatty())
        self._start = time.monotonic()

    def __enter__(self) -> Callable[[int, int | None], None] | None:
        return self._update if self._on else None

    def _update(self, done: int, total: int | None) -> None:
        if time.monotonic() - self._start < QUIET_FOR:
            return
        self._shown = True
        share = f"{done / total:4.0%} " if total else ""
        with suppress(OSError):
            amount = f"{done / 1e6:,.0f} MB" if self._what is None else f"{done:,} {self._what}"
            sys.stderr.write(f"\r\x1b[K{share}{amount}  {self._label[-60:]}")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


def error_text(error: CtxctlError) -> str:
    """What a user sees of an error: where, what, and the next thing to type."""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"error: {error}{hint}"
