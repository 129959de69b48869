"""`ctxctl hook run`, without the command line's own machinery: it must answer at once and may never break its agent."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.adapters.hooks.base import HookAgent, HookEvent
    from ctxctl.settings.schema import Settings

GRACE = 0.3
"""Seconds from the deadline until the process ends whatever it is doing."""

MOST_STDIN = 16_000_000
"""Bytes of the hook's JSON that are read: it may hold the agent's last message, and is no transcript."""


class DeadlineError(BaseException):
    """The time that the agent allows is nearly over. No `except Exception` holds it up."""


@dataclass(slots=True)
class Given:
    """The options of the command line. wrong: those that it does not know."""

    agent: str | None = None
    state_dir: Path | None = None
    config: str | None = None
    clean: bool = False
    deadline: float | None = None
    wrong: tuple[str, ...] = ()


def hook_run(arguments: Sequence[str]) -> int:
    """Answer one event of an agent. The status is 0 and stdout empty or an answer, whatever happens; what went wrong
    stands in the log."""
    began = time.monotonic()
    if sys.stdin is not None and sys.stdin.isatty():
        from ctxctl.cli.io import say

        say("`ctxctl hook run` reads the JSON of an agent's hook on stdin; `ctxctl hook install` sets it up")
        return 0
    told = _Told()
    try:
        with _Watchdog(told) as watchdog:
            told.out = _answer(arguments, told, watchdog)
    except DeadlineError:
        told.out = b""
        told.wrong("the time is nearly over: gave up")
    except BaseException as error:
        told.out = b""
        told.wrong(_what(error))
    told.deliver(time.monotonic() - began)
    return 0


class _Told:
    """What stdout and the log get."""

    def __init__(self) -> None:
        self.out = b""
        self.who = "hook"
        self.notes: list[str] = []

    def wrong(self, text: str) -> None:
        self.notes.append(f"error: {text}")

    def note(self, text: str) -> None:
        self.notes.append(text)

    def deliver(self, seconds: float) -> None:
        if self.out and sys.stdout is None:  # its number may be another file's by now
            self.wrong("stdout is closed")
        elif self.out:
            try:
                _write(self.out)
            except OSError as error:
                self.wrong(f"stdout can't be written: {error.strerror or error}")
        self.log(seconds)

    def log(self, seconds: float) -> None:
        try:
            from ctxctl.adapters.hooks.log import log_path, write

            text = "; ".join(note for note in self.notes if note) or "nothing to do"
            write(log_path(os.environ), f"{self.who} {seconds:.2f} s: {text}", datetime.now().astimezone())
        except Exception:  # a log that fails is not worth an agent's trouble
            return


class _Watchdog:
    """Ends the work before the agent does. First by an exception, which lets files be left tidy; where that finds no
    way in, by ending the process."""

    def __init__(self, told: _Told) -> None:
        self._told = told
        self._began = time.monotonic()
        self._thread: threading.Timer | None = None

    def __enter__(self) -> _Watchdog:
        self.set(8.0)
        return self

    def set(self, seconds: float) -> None:
        """Give up so many seconds after the start."""
        left = max(0.05, seconds - (time.monotonic() - self._began))
        if self._thread is not None:
            self._thread.cancel()
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._over)
            signal.setitimer(signal.ITIMER_REAL, left)
        self._thread = threading.Timer(left + GRACE, self._end)
        self._thread.daemon = True
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._thread is not None:
            self._thread.cancel()

    def _over(self, number: int, frame: FrameType | None) -> None:
        raise DeadlineError

    def _end(self) -> None:
        self._told.wrong("the time is over: ended")
        self._told.log(time.monotonic() - self._began)
        os._exit(0)


def _answer(arguments: Sequence[str], told: _Told, watchdog: _Watchdog) -> bytes:
    from ctxctl.adapters.hooks.base import parse
    from ctxctl.adapters.hooks.project import state_folder, where
    from ctxctl.adapters.hooks.run import respond
    from ctxctl.adapters.hooks.saving import Setup

    given = _given(arguments)
    if given.deadline is not None:
        watchdog.set(given.deadline)
    told.who = given.agent or "hook"
    for word in given.wrong:
        told.wrong(f"unknown option {word!r}, left out")
    agent = _agent(given.agent, told)
    event = parse(_stdin())
    told.who = f"{given.agent or 'hook'} {_label(event)}"
    spec = agent.events.get(event.name)
    if given.deadline is None and spec is not None:
        watchdog.set(spec.deadline)
    here = where(event, agent, os.environ)
    settings = _settings(given, None if here is None else here.start, told)
    options = settings.cross_window
    folder = state_folder(event, agent, given.state_dir, options.state_file, os.environ)
    told.who += f" in {folder}"
    setup = Setup(folder, options, settings.compaction.notes_file, settings.contract.ledger_file, given.clean)
    answer = respond(event, agent, setup, datetime.now().astimezone())
    told.note(answer.note)
    return answer.out


def _label(event: HookEvent) -> str:
    more = event.source or event.trigger
    return f"{event.name} ({more})" if more else event.name


def _given(arguments: Sequence[str]) -> Given:
    """The command line, as far as it is known: a wrong word must not stop an agent."""
    given = Given()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--state-dir", "--config", "--deadline"):
            if not equals:
                value = words.pop(0) if words else ""
            if name == "--state-dir" and value:
                given.state_dir = Path(value).expanduser()
            elif name == "--config" and value:
                given.config = value
            elif name == "--deadline" and value.replace(".", "", 1).isdecimal():
                given.deadline = float(value)
            else:
                given.wrong = (*given.wrong, word)
        elif word == "--require-clean":
            given.clean = True
        elif word.startswith("-") or given.agent is not None:
            given.wrong = (*given.wrong, word)
        else:
            given.agent = word
    return given


def _agent(name: str | None, told: _Told) -> HookAgent:
    from ctxctl.adapters.hooks.base import ANY, registry
    from ctxctl.errors import UsageError

    if name is None:
        return ANY
    try:
        return registry.get(name)
    except UsageError as error:
        told.wrong(f"{error}, taken as any")
        return ANY


def _settings(given: Given, folder: Path | None, told: _Told) -> Settings:
    """The settings in force in the agent's working folder, or in its project where it went out of that; the defaults
    where they are refused."""
    from ctxctl.errors import CtxctlError
    from ctxctl.settings.load import load_settings
    from ctxctl.settings.schema import Settings

    try:
        return load_settings(given.config, folder=folder)
    except (CtxctlError, OSError) as error:
        told.wrong(f"settings: {error}; the defaults are used")
        return Settings()


def _stdin() -> bytes:
    if sys.stdin is None:
        return b""
    pieces: list[bytes] = []
    size = 0
    while size < MOST_STDIN and (piece := os.read(0, 1 << 16)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _what(error: BaseException) -> str:
    from ctxctl.errors import CtxctlError

    if isinstance(error, CtxctlError):
        return str(error)
    import traceback

    return "a bug in ctxctl, please report it\n" + "".join(traceback.format_exception(error))
