"""The loop of `ctxctl watch`: ask, show what changed, wait."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from ctxctl.cli.io import ReaderGoneError, Streams, can_show
from ctxctl.cli.newest import newest_of
from ctxctl.cli.watch_view import ago, picture, view_data, view_line
from ctxctl.errors import ExitCode, InputError, NothingFoundError
from ctxctl.health.follow import Follower

if TYPE_CHECKING:
    from rich.live import Live

    from ctxctl.health.session import Examining
    from ctxctl.health.view import View
    from ctxctl.model.limits import ModelTable

FOLDER_EVERY = 5
"""Looks at the session between two looks for a newer one in its folder."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says. exit_on: alert levels, alert codes and pressure levels that end it with status 1;
    idle: seconds without a change that end it."""

    path: str
    interval: float
    once: bool
    idle: float | None
    exit_on: frozenset[str]
    as_json: bool


class Watching:
    """One run of the command."""

    def __init__(self, asked: Asked, table: ModelTable, options: Examining, streams: Streams) -> None:
        self.asked, self.table, self.options, self.streams = asked, table, options, streams
        self.folder = asked.path if os.path.isdir(asked.path) else None
        self.follower: Follower | None = None
        self.view: View | None = None
        self._refused: frozenset[str] = frozenset()
        self._looks = 0

    def go(self) -> int:
        """Until it is interrupted, or what was asked for comes. Raises InputError for what can't be followed."""
        if self.folder is None:
            self.follower = Follower(self.asked.path, self.table, self.options)
        terminal = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        picture = terminal and not self.asked.as_json and not self.asked.once
        output: _Output = _Picture(self.options, self.streams) if picture else _Lines(self.streams, self.asked.as_json)
        try:
            with output:
                return self._loop(output)
        except KeyboardInterrupt:  # how a watch normally ends
            return ExitCode.OK
        finally:
            if picture and self.view is not None:
                self.streams.payload(f"{view_line(self.view)}\n".encode(_encoding(), "replace"))

    def _loop(self, output: _Output) -> int:
        began = time.time()
        while True:
            view = self._poll()
            if view is not None:
                self.view = view
                output.show(view)
                if self._is_over(view):
                    return ExitCode.FINDING
            else:
                output.tick()
            if self.asked.once:
                if self.view is None:
                    raise NothingFoundError("no session in there", path=self.asked.path)
                return ExitCode.OK
            changed = self.view.changed if self.view is not None and self.view.changed is not None else began
            if self.asked.idle is not None and time.time() - changed >= self.asked.idle:
                return self._last(output)
            output.wait(self.asked.interval)

    def _last(self, output: _Output) -> int:
        """What was written while the follower rested is shown too."""
        view = self.follower.poll(at_once=True) if self.follower is not None else None
        if view is not None:
            self.view = view
            output.show(view)
        return ExitCode.FINDING if view is not None and self._is_over(view) else ExitCode.OK

    def _poll(self) -> View | None:
        if self.folder is not None and self._looks % FOLDER_EVERY == 0:
            self._choose()
        self._looks += 1
        if self.follower is None:
            return None
        try:
            return self.follower.poll()
        except InputError:
            if self.folder is None:
                raise
            # a folder may hold anything: the next newest file is tried
            self._refused |= {self.follower.path}
            self.follower, self._looks = None, 0
            return self._poll() if len(self._refused) < 100 else None

    def _choose(self) -> None:
        """Follow the newest session of the folder."""
        assert self.folder is not None
        newest = newest_of(self.folder, self._refused)
        if newest is not None and (self.follower is None or self.follower.path != newest):
            self.follower = Follower(newest, self.table, self.options)

    def _is_over(self, view: View) -> bool:
        from ctxctl.model.finding import FINDING_LEVELS
        from ctxctl.pressure.options import LEVELS

        wanted = self.asked.exit_on
        least = [FINDING_LEVELS.index(level) for level in FINDING_LEVELS if level in wanted]
        if least and any(FINDING_LEVELS.index(alert.level) >= min(least) for alert in view.alerts):
            return True
        if any(alert.code in wanted for alert in view.alerts):
            return True
        pressure = [LEVELS.index(level) for level in LEVELS if level in wanted]
        return bool(pressure) and view.level is not None and LEVELS.index(view.level) >= min(pressure)


class _Output(Protocol):
    """Where views go."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...
    def show(self, view: View) -> None:
        """A new view."""

    def tick(self) -> None:
        """Nothing changed."""

    def wait(self, seconds: float) -> None:
        """Until the next look."""


class _Lines:
    """A line per change."""

    def __init__(self, streams: Streams, as_json: bool) -> None:
        self.streams, self.as_json = streams, as_json
        self._last: str | None = None
        self._shown = ""
        self._gone = _closed(sys.stdout)

    def __enter__(self) -> None:
        return

    def __exit__(self, *error: object) -> None:
        return

    def show(self, view: View) -> None:
        if self.as_json:
            from ctxctl.reports.json import dumps

            self.streams.payload(dumps(view_data(view)))
            return
        if view.path != self._last:
            self._last = view.path
            self.streams.payload(f"{view.path}\n".encode(_encoding(), "replace"))
        line = view_line(view)
        what = line.partition(" ")[2]  # behind the time
        if what != self._shown:
            self._shown = what
            self.streams.payload(f"{line}\n".encode(_encoding(), "replace"))

    def tick(self) -> None:
        """Whoever reads may have left while there was nothing to write."""
        if self._gone():
            raise ReaderGoneError

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class _Picture:
    """The terminal, redrawn when something changed or its size did."""

    def __init__(self, options: Examining, streams: Streams) -> None:
        from rich.console import Console

        colour = streams.use_colour(sys.stdout)
        self.thresholds = options.analysis.thresholds
        self.console = Console(no_color=not colour, highlight=False, emoji=False, markup=False, legacy_windows=False)
        self.unicode = can_show("█▕·…▁▲", _encoding())
        self.view: View | None = None
        self._drawn: tuple[Any, ...] = ()
        self._live: Live | None = None
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> None:
        from rich.live import Live
        from rich.text import Text

        self._live = Live(Text("reading"), console=self.console, screen=True, auto_refresh=False)
        self._live.__enter__()
        signal.signal(signal.SIGTERM, _terminated)
        if hasattr(signal, "SIGWINCH"):
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            signal.signal(signal.SIGWINCH, self._resized)

    def __exit__(self, *error: object) -> None:
        if hasattr(signal, "SIGWINCH"):
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        if self._live is not None:
            self._live.__exit__(None, None, None)
        for number in self._pipe or ():
            os.close(number)

    def _resized(self, number: int, frame: FrameType | None) -> None:
        if self._pipe is not None:
            with suppress(OSError):
                os.write(self._pipe[1], b"x")

    def show(self, view: View) -> None:
        self.view = view
        self.tick()

    def tick(self) -> None:
        """Draw where that changes anything."""
        view, live = self.view, self._live
        if view is None or live is None:
            return
        size = self.console.size
        drawn = (view, size, ago(time.time() - (view.changed or 0)))
        if drawn != self._drawn:
            self._drawn = drawn
            image = picture(view, self.thresholds, size.width, size.height, unicode=self.unicode)
            live.update(image, refresh=True)

    def wait(self, seconds: float) -> None:
        import select

        if self._pipe is None:
            time.sleep(seconds)
            return
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._pipe[0]], [], [], left)
            if ready:
                os.read(self._pipe[0], 1024)
                self.tick()


def _closed(stream: Any) -> Callable[[], bool]:
    """Tells whether the other end of a pipe was closed."""
    import select
    import stat

    try:
        number = stream.fileno()
        if not hasattr(select, "poll") or not stat.S_ISFIFO(os.fstat(number).st_mode):
            return lambda: False
    except (AttributeError, OSError, ValueError):
        return lambda: False
    poll = select.poll()
    poll.register(number, 0)  # errors are always told
    return lambda: any(what & select.POLLERR for _, what in poll.poll(0))


def _terminated(number: int, frame: FrameType | None) -> None:
    """The terminal is left as it was found."""
    raise SystemExit(128 + number)


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"
