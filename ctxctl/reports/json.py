"""JSON for programs: one object, or one line per file."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from ctxctl import __version__

OPTIONS = orjson.OPT_NON_STR_KEYS


def envelope(command: str, settings: Any, result: Any) -> dict[str, Any]:
    """The object that every command prints."""
    return {"schema": f"ctxctl.{command}/1", "ctxctl": __version__, "settings": settings, "result": result}


def dumps(value: Any, *, indent: bool = False) -> bytes:
    """Strict UTF-8 JSON with a line end. Dataclasses become objects, NaN becomes null, lone surrogates U+FFFD."""
    options = OPTIONS | (orjson.OPT_INDENT_2 if indent else 0) | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(value, option=options)
    except TypeError:
        return orjson.dumps(_clean(value), option=options)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _clean(getattr(value, f.name)) for f in fields(value)}
    return value
