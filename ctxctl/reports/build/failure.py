"""The entry of a file that failed, the same for every command."""

from __future__ import annotations

from typing import Any


def failed_data(path: str, error: Any) -> dict[str, Any]:
    """The JSON of a file that could not be read or measured."""
    return {
        "path": path,
        "error": {"code": error.code, "message": error.message, "hint": error.hint, "line": error.line},
    }


def error_of(entry: dict[str, Any]) -> dict[str, Any]:
    """The error of an entry, for a line of its own; empty when there is none."""
    return {"error": entry["error"]} if "error" in entry else {}
