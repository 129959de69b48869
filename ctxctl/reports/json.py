"""JSON for programs: one object, or one line per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from ctxctl import __version__
from ctxctl.model.text import clean

OPTIONS = orjson.OPT_NON_STR_KEYS
ROWS = 1000


def envelope(command: str, settings: Any, result: Any) -> dict[str, Any]:
    """The object that every command prints."""
    return {"schema": f"ctxctl.{command}/1", "ctxctl": __version__, "settings": settings, "result": result}


def dumps(value: Any, *, indent: bool = False) -> bytes:
    """Strict UTF-8 JSON with a line end. Dataclasses become objects, NaN becomes null, lone surrogates U+FFFD."""
    return _dumps(value, OPTIONS | (orjson.OPT_INDENT_2 if indent else 0) | orjson.OPT_APPEND_NEWLINE)


def pieces(value: dict[str, Any]) -> Iterator[bytes]:
    """`dumps` in pieces, so that a list of 100,000 rows never lies in memory as a whole."""
    yield from _pieces(value)
    yield b"\n"


def _pieces(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        mark = b"{"
        for key, item in value.items():
            yield mark + _dumps(key) + b":"
            yield from _pieces(item)
            mark = b","
        yield b"}"
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) > ROWS:
        mark = b"["
        for start in range(0, len(value), ROWS):
            yield mark + _dumps(list(value[start : start + ROWS]))[1:-1]
            mark = b","
        yield b"]"
    else:
        yield _dumps(value)


def _dumps(value: Any, options: int = OPTIONS) -> bytes:
    try:
        return orjson.dumps(value, default=list, option=options)
    except TypeError:
        return orjson.dumps(_clean(value), option=options)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [_clean(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _clean(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
    return value
