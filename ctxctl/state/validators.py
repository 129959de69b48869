"""Running a validator: a command of the user's, with a time limit, whatever it does."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ctxctl.model.text import clean

TAIL = 2000
"""Bytes of the end of its output that are looked at."""
LINES = 10
GRACE = 2.0
"""Seconds that a command which ran out of time has to end by itself."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command. detail: how it failed, then the last lines of what it wrote to stdout and stderr."""

    ok: bool
    detail: str
    seconds: float


def run(
    command: str | tuple[str, ...], *, cwd: Path, timeout: float, environment: Mapping[str, str] | None = None
) -> Ran:
    """Run a command to its end, or to its time limit, when it is ended with all that it started. A text runs in the
    shell. It gets no input. Nothing is raised: a command that can't be run has failed."""
    start = time.monotonic()
    shell = isinstance(command, str)
    if not cwd.is_dir():
        return Ran(False, f"the working folder {cwd} is not there", 0.0)
    # a file takes the output of whatever the command leaves running too; a pipe would wait for that
    with tempfile.TemporaryFile() as sink:
        try:
            process = subprocess.Popen(
                command if shell else list(command),
                shell=shell,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError:
            return Ran(False, f"no such command: {_program(command)}", time.monotonic() - start)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return Ran(False, f"{_program(command)} can't be run: {reason}", time.monotonic() - start)
        try:
            status: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            status = None
        except BaseException:
            _end(process)
            raise
        said = _tail(sink)
    parts = [part for part in (_failure(status, timeout), said) if part]
    return Ran(status == 0, "\n".join(parts), time.monotonic() - start)


def _failure(status: int | None, timeout: float) -> str:
    if status is None:
        return f"not done after {timeout:g} s, so that it was ended"
    if status < 0:
        try:
            return f"ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"ended by signal {-status}"
    return f"exit status {status}" if status else ""


def _program(command: str | tuple[str, ...]) -> str:
    return command if isinstance(command, str) else command[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started: kindly, then not."""
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def _tail(sink: BinaryIO) -> str:
    size = sink.seek(0, os.SEEK_END)
    sink.seek(max(0, size - TAIL))
    text = clean(sink.read().decode("utf-8", "replace"))
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
    return "\n".join(line.rstrip() for line in text.strip().split("\n")[-LINES:])
