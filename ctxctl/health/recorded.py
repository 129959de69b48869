"""Figures of sessions out of a report that `ctxctl health` wrote as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from ctxctl.errors import InputError
from ctxctl.health.figures import Measured, counted, values_of

SCHEMA = "ctxctl.health/"
HINT = "`ctxctl health --json -o FILE PATH...` writes such a report"


def reported(path: str | Path) -> tuple[Measured, ...]:
    """The sessions of a report, without files that had failed. Raises InputError for a file that is none."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None
    found = [session for line, item in _objects(data, path) for session in _sessions(item, path, line)]
    if not found:
        raise InputError("the report holds no session", path=str(path), hint=HINT)
    return tuple(found)


def _objects(data: bytes, path: str | Path) -> Iterator[tuple[int | None, Any]]:
    """The one object of a file, or one per line, with its line."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        yield None, orjson.loads(data)
        return
    except orjson.JSONDecodeError as error:
        problem = f"it is no JSON: {error.msg}"
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if len(lines) < 2:
        raise InputError(problem, path=str(path), hint=HINT)
    for number, line in lines:
        try:
            yield number, orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"it is no JSON: {error.msg}", path=str(path), line=number, hint=HINT) from None


def _sessions(item: Any, path: str | Path, line: int | None) -> Iterator[Measured]:
    schema = item.get("schema") if isinstance(item, Mapping) else None
    if not isinstance(schema, str) or not schema.startswith(SCHEMA):
        what = f"a report of {schema}" if isinstance(schema, str) else "no report of ctxctl"
        raise InputError(f"it is {what}, not of health", path=str(path), line=line, hint=HINT)
    result = item.get("result")
    if not isinstance(result, Mapping):
        return  # that file had failed
    files = result.get("files")
    if isinstance(files, list):
        for file in files:
            if isinstance(file, Mapping) and isinstance(file.get("result"), Mapping):
                yield _session(file["result"], file.get("path"))
    else:
        yield _session(result, item.get("path"))


def _session(result: Mapping[str, Any], path: Any) -> Measured:
    session, metrics = result.get("session"), result.get("metrics")
    facts: Mapping[str, Any] = session if isinstance(session, Mapping) else {}
    codes = counted(result.get("alerts"))
    for key, count in counted(result.get("findings")).items():
        codes[key] = codes.get(key, 0) + count
    id_, at = facts.get("id"), facts.get("path", path)
    return Measured(
        at if isinstance(at, str) else "",
        id_ if isinstance(id_, str) else None,
        values_of(metrics if isinstance(metrics, Mapping) else {}, facts, facts.get("requests")),
        codes,
    )
