"""The typed session summary as a JSON value and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from ctxctl.model.summary import SCHEMA, Commit, DecisionFact, FileFact, LeftOut, SessionSummary, TestRun, Todo

_ITEMS: dict[str, type[Any]] = {
    "decisions": DecisionFact,
    "files": FileFact,
    "todos": Todo,
    "tests": TestRun,
    "commits": Commit,
    "left_out": LeftOut,
}


def as_json(summary: SessionSummary) -> dict[str, Any]:
    """A value of plain types, all fields present; `schema` is its version."""
    return {**asdict(summary), "schema": SCHEMA}


def from_json(value: dict[str, Any]) -> SessionSummary:
    """The summary that a value holds. Unknown keys are passed over, missing ones empty; items of a wrong shape are left
    out. Raises nothing: what another version wrote is read as far as it is understood."""
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(SessionSummary)):
        given = value.get(name)
        if name == "goal":
            found[name] = given if isinstance(given, str) else ""
        elif name == "schema":
            found[name] = given if isinstance(given, int) else SCHEMA
        elif name == "turns":
            pair = given if isinstance(given, list | tuple) and len(given) == 2 else (0, 0)
            found[name] = tuple(n if isinstance(n, int) else 0 for n in pair)
        elif isinstance(given, list | tuple):
            found[name] = tuple(item for raw in given if (item := _item(name, raw)) is not None)
    return SessionSummary(**found)


def _item(name: str, raw: Any) -> Any:
    kind = _ITEMS.get(name)
    if kind is None:
        return raw if isinstance(raw, str) else None
    if isinstance(raw, str) and kind is DecisionFact:
        return DecisionFact(raw)
    if not isinstance(raw, dict):
        return None
    known = {field.name: raw[field.name] for field in fields(kind) if field.name in raw}
    known = {key: tuple(entry) if isinstance(entry, list) else entry for key, entry in known.items()}
    try:
        return kind(**known)
    except TypeError:
        return None
