"""`ctxctl statusline`, without the command line's own machinery: it runs each time an agent draws its status line.

Fed by an agent (JSON on stdin) it always prints a line and ends with 0, since anything else blanks the line or disturbs
the agent. Given a PATH, errors are errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctxctl.cli.status_text import DEFAULT, GivenError, Shown, check, line_of, short_name

if TYPE_CHECKING:
    from ctxctl.model.limits import ModelTable
    from ctxctl.pressure.ending import Ending
    from ctxctl.settings.load import Loaded

MOST_STDIN = 1_000_000


@dataclass(slots=True)
class Given:
    """The options of the command line. window: as typed, such as 200k; wrong: what is not understood."""

    path: str | None = None
    template: str = DEFAULT
    colour: str = "auto"
    ascii: bool = False
    width: int | None = None
    window: str | None = None
    config: str | None = None
    wrong: str | None = None


def statusline(arguments: Sequence[str]) -> int | None:
    """Print the line; returns the exit status, None where the whole command line has to look at the arguments."""
    fed = sys.stdin is not None and not sys.stdin.isatty()
    given = given_of(arguments)
    if given.wrong is not None:
        return _write(f"ctxctl: {given.wrong}\n") if fed and given.path is None else None
    if given.path is not None:
        return None if not os.path.isfile(given.path) else _of_path(given)
    if not fed:
        return None
    try:
        text = _line(given, shown_by_agent(_stdin(), given), ansi=given.colour != "never" and not _no_colour())
    except Exception as error:
        text = f"ctxctl: {str(error) or type(error).__name__}"
    return _write(" ".join(text.split("\n")) + "\n")


def _of_path(given: Given) -> int | None:
    from ctxctl.errors import CtxctlError

    try:
        shown = shown_of_path(given)
    except (CtxctlError, ValueError):  # the command line's own boundary reports it
        return None
    colour = given.colour == "always" or (given.colour == "auto" and sys.stdout is not None and sys.stdout.isatty())
    return _write(_line(given, shown, ansi=colour and (given.colour == "always" or not _no_colour())) + "\n")


def _line(given: Given, shown: Shown, *, ansi: bool) -> str:
    return line_of(shown, given.template, width=given.width, ascii_only=given.ascii, ansi=ansi)


def given_of(arguments: Sequence[str]) -> Given:
    """The command line, as far as it is known."""
    given = Given()
    words = list(arguments)
    while words:
        word = words.pop(0)
        try:
            if word == "--ascii":
                given.ascii = True
            elif not word.startswith("-") and given.path is None:
                given.path = word
            elif word != "-":
                _option(given, word, words)
        except GivenError as error:
            given.wrong = given.wrong or str(error)
    return given


def _option(given: Given, word: str, words: list[str]) -> None:
    """Take over an option with a value."""
    name, equals, value = word.partition("=")
    if name not in ("--format", "--color", "--width", "--window", "--config"):
        raise GivenError(f"unknown option {word!r}")
    if not equals:
        if not words:
            raise GivenError(f"{name} needs a value")
        value = words.pop(0)
    if name == "--format":
        check(value)
        given.template = value
    elif name == "--color" and value in ("auto", "always", "never"):
        given.colour = value
    elif name == "--width" and value.isdecimal() and int(value) > 0:
        given.width = int(value)
    elif name == "--window":
        given.window = value
    elif name == "--config":
        given.config = value
    else:
        raise GivenError(f"{name} can't be {value!r}")


# -- what is shown -----------------------------------------------------------------------------------------------------


def shown_of_path(given: Given) -> Shown:
    """What the end of a session tells. Raises CtxctlError."""
    assert given.path is not None
    return _shown(_ending(given.path, given, None, None, Shown()))


def shown_by_agent(data: bytes, given: Given) -> Shown:
    """What Claude Code's status JSON states, and what it leaves open as the session's file tells it."""
    import orjson

    if not data.strip():
        raise ValueError("no JSON on stdin; a PATH reads a session")
    try:
        told = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise ValueError("stdin holds no JSON") from None
    if not isinstance(told, dict):
        raise ValueError("stdin holds no JSON object")
    model, context, cost = _object(told, "model"), _object(told, "context_window"), _object(told, "cost")
    folder = _text(_object(told, "workspace"), "project_dir") or _text(told, "cwd")
    path, size = _text(told, "transcript_path"), int(_number(context, "context_window_size") or 0) or None
    shown = Shown(cost=_number(cost, "total_cost_usd"))
    ending = None
    if path is not None and os.path.isfile(os.path.expanduser(path)):
        try:
            ending = _ending(os.path.expanduser(path), given, size, folder, shown)
        except Exception as error:
            shown.notes.append(str(error))
    if ending is not None:
        shown = _shown(ending, shown)
    elif size:
        shown.window = size
    shown.model = _text(model, "display_name") or short_name(_text(model, "id")) or shown.model
    _take_over(shown, context)
    if shown.window and shown.tokens is not None:
        shown.utilization = shown.tokens / shown.window
    if shown.utilization is not None:
        _, thresholds, _ = _options(_settings(given, folder))
        shown.level = thresholds.level(shown.utilization)
        if shown.velocity is not None and shown.tokens is not None:
            from ctxctl.pressure.monitor import until_overflow

            shown.turns = until_overflow(shown.tokens, shown.window, shown.velocity)
    return shown


def _take_over(shown: Shown, context: dict[str, Any]) -> None:
    """Tokens of the window as the agent states them: those of its newest request, the answer not among them."""
    usage = _object(context, "current_usage")
    parts = [_number(usage, key) for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    stated = int(sum(part for part in parts if part is not None))
    if stated > 0:
        shown.tokens = stated
    share = _number(context, "used_percentage")
    if shown.tokens is None and share is not None and shown.window:
        shown.utilization = share / 100


def _shown(ending: Ending, shown: Shown | None = None) -> Shown:
    shown = shown or Shown()
    shown.model = short_name(ending.model)
    shown.tokens, shown.window = ending.tokens, ending.window.tokens
    shown.utilization, shown.level = ending.utilization, ending.level
    shown.velocity, shown.turns = ending.velocity, ending.turns
    return shown


def _ending(path: str, given: Given, window: int | None, folder: str | None, shown: Shown) -> Ending:
    from ctxctl.pressure.ending import ending_of

    loaded = _settings(given, folder)
    own, thresholds, pressure = _options(loaded)
    if given.window is not None:
        from ctxctl.settings.sizes import size

        own = size(given.window)
    return ending_of(path, _rows(loaded), window=own or window, thresholds=thresholds, pressure=pressure)


_LOADED: dict[tuple[str | None, str | None], Loaded | None] = {}


def _settings(given: Given, folder: str | None) -> Loaded | None:
    """The settings in force, None for the defaults: loading them takes as long as all the rest."""
    key = (given.config, folder)
    if key not in _LOADED:
        from pathlib import Path

        from ctxctl.settings.paths import project_file, user_file

        start = Path(folder) if folder else None
        wanted = given.config or any(name.startswith("CTXCTL_") for name in os.environ)
        if wanted or project_file(start) is not None or user_file().is_file():
            from ctxctl.errors import ConfigError
            from ctxctl.settings.load import load

            try:
                _LOADED[key] = load(given.config, folder=start)
            except ConfigError:
                if given.path is not None:
                    raise
                _LOADED[key] = None
        else:
            _LOADED[key] = None
    return _LOADED[key]


def _options(loaded: Loaded | None) -> tuple[int | None, Any, Any]:
    """Window, thresholds and pressure options."""
    if loaded is None:
        from ctxctl.pressure.options import PressureOptions, PressureThresholds

        return None, PressureThresholds(), PressureOptions()
    s = loaded.settings
    return s.max_context_tokens, s.pressure_thresholds, s.pressure


def _rows(loaded: Loaded | None) -> Callable[[Iterable[str | None]], ModelTable]:
    from ctxctl.settings.model_rows import load_rows

    own = loaded.settings.models if loaded is not None else {}
    if not own:
        return load_rows
    from ctxctl.settings.models import merge

    return lambda models: merge(load_rows([*models, *own]), own)


# -- JSON and streams --------------------------------------------------------------------------------------------------


def _no_colour() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def _object(holder: dict[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _text(holder: dict[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) and value else None


def _number(holder: dict[str, Any], key: str) -> float | None:
    value = holder.get(key)
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return value if good else None


def _stdin() -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < MOST_STDIN and (piece := os.read(0, 1 << 16)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _write(text: str) -> int:
    data = text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "replace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        return 141
    except OSError:
        return 3
    return 0
