"""The state as a JSON file and back: typed, upgraded from plain lists, unknown keys kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import msgspec
import orjson

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.model.state import SCHEMA, AgentState, Environment, Position, Subtask
from ctxctl.model.text import clean

_KEYS = frozenset(field.name for field in fields(AgentState)) - {"extra"}
_OF_ENVIRONMENT = frozenset(field.name for field in fields(Environment)) - {"extra"}
_OF_SUBTASK = frozenset(field.name for field in fields(Subtask)) - {"extra"}
LONGEST_ID = 16
"""Characters of an id that counts for the next one."""
_SUBTASKS = ("completed_subtasks", "current_subtask", "remaining_subtasks")
_STATUS = {"completed_subtasks": "done", "current_subtask": "doing", "remaining_subtasks": "planned"}


def is_state(value: Any) -> bool:
    """Whether a JSON value is a state rather than anything else: it says so, or has a goal or subtasks."""
    return isinstance(value, dict) and (
        str(value.get("schema", "")).startswith("ctxctl.state/")
        or "task_goal" in value
        or "remaining_subtasks" in value
    )


def load(path: Path) -> AgentState:
    """The state in a file.

    Raises NothingFoundError when there is none or it is empty, InputError when it can't be read as one, with the key
    that is wrong.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NothingFoundError(
            "there is no state", path=str(path), hint="`ctxctl checkpoint SESSION` saves one"
        ) from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None
    if not data.strip(b" \t\r\n\x00"):
        raise NothingFoundError("the state is empty", path=str(path), hint="`ctxctl checkpoint SESSION` saves one")
    try:
        value = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON: {error.msg}", path=str(path), line=error.lineno, hint=_MOVE) from None
    if not is_state(value):
        what = "no state of a task: it has neither `task_goal` nor `remaining_subtasks`"
        raise InputError(what, path=str(path), hint=_MOVE)
    return from_json(value, path=str(path))


_MOVE = "move it away, and `ctxctl checkpoint SESSION` makes a new one"


def from_json(value: Mapping[str, Any], *, path: str | None = None) -> AgentState:
    """The state that a value holds. Plain lists of strings are upgraded, unknown keys kept. Raises InputError for a
    key whose value is of a wrong shape: guessing would lose it at the next write."""
    schema = value.get("schema", SCHEMA)
    if not isinstance(schema, str) or not schema.startswith("ctxctl.state/"):
        raise InputError(f"`schema` is {schema!r}, not {SCHEMA}", path=path)
    if schema != SCHEMA:
        raise InputError(f"a newer state ({schema}); this ctxctl knows {SCHEMA}", path=path, hint="upgrade ctxctl")
    known = {key: item for key, item in value.items() if key in _KEYS and (item is not None or key in _NULL)}
    known = _upgraded(known)
    try:
        state = msgspec.convert(known, AgentState)
    except msgspec.ValidationError as error:
        raise InputError(f"not a state: {error}", path=path, hint=_MOVE) from None
    position = replace(state.transcript, seal="")
    if position != Position() and seal_of(position) != state.transcript.seal:
        # what was changed by hand must not decide where reading goes on: then the whole is read
        position = replace(position, mark="", leaves=(), carry={}, reading={})
    state = replace(state, transcript=position)
    return replace(_numbered(state), extra={key: item for key, item in value.items() if key not in _KEYS})


_NULL = ("current_subtask",)


def _upgraded(value: dict[str, Any]) -> dict[str, Any]:
    """Strings where objects stand today."""
    for key in _SUBTASKS:
        given = value.get(key)
        if key == "current_subtask":
            if isinstance(given, str):
                value[key] = {"id": "", "text": given, "status": "doing", "by": "hand"} if given.strip() else None
            elif isinstance(given, dict) and "status" not in given:
                value[key] = {"id": "", "status": "doing", **given}
            if isinstance(value.get(key), dict):
                value[key] = _apart(value[key], _OF_SUBTASK)
        elif isinstance(given, list):
            value[key] = [_subtask(item, _STATUS[key]) for item in given]
    if isinstance(given := value.get("decisions"), list):
        value["decisions"] = [{"what": item} if isinstance(item, str) else item for item in given]
    for key in ("working_set",):
        if isinstance(given := value.get(key), list):
            value[key] = [{"path": item} if isinstance(item, str) else item for item in given]
    if isinstance(given := value.get("todos"), list):
        value["todos"] = [{"text": item, "status": "planned"} if isinstance(item, str) else item for item in given]
    if isinstance(given := value.get("environment"), dict):
        files = given.get("files")
        if isinstance(files, list):
            files = [{"path": item, "role": "modified"} if isinstance(item, str) else item for item in files]
        elif isinstance(files, dict):
            files = [{"path": name, "role": "modified", "sha256": hash_} for name, hash_ in files.items()]
        services = given.get("services")
        if isinstance(services, list):
            services = [{"name": item} if isinstance(item, str) else item for item in services]
        value["environment"] = {
            **_apart(given, _OF_ENVIRONMENT),
            **({} if files is None else {"files": files}),
            **({} if services is None else {"services": services}),
        }
    if isinstance(given := value.get("tail"), list):
        plain = {"turn": 0, "kind": "user_message", "role": "user"}
        value["tail"] = [{**plain, "text": item} if isinstance(item, str) else item for item in given]
    return value


def _subtask(item: Any, status: str) -> Any:
    if isinstance(item, str):
        return {"id": "", "text": item, "status": status, "by": "hand"}
    if isinstance(item, dict):
        return _apart({"id": "", "status": status, **item}, _OF_SUBTASK)
    return item


def _apart(value: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """An object whose unknown keys stand under `extra`."""
    known = {key: item for key, item in value.items() if key in keys}
    return {**known, "extra": {key: item for key, item in value.items() if key not in keys}}


def _whole(value: Any) -> Any:
    """An object with its unknown keys at its end."""
    if not isinstance(value, dict):
        return value
    extra = value.pop("extra")
    return {**value, **extra}


def _numbered(state: AgentState) -> AgentState:
    """Every subtask has an id of its own, and the next one is higher than all of them."""
    highest = max((int(s.id[1:]) for s in state.subtasks if _is_ours(s.id)), default=0)
    following = max(state.next_id, highest + 1)
    seen: set[str] = set()

    def one(subtask: Subtask) -> Subtask:
        nonlocal following
        if not subtask.id or subtask.id in seen:
            subtask = replace(subtask, id=f"s{following}")
            following += 1
        seen.add(subtask.id)
        return subtask

    completed = tuple(one(s) for s in state.completed_subtasks)
    current = one(state.current_subtask) if state.current_subtask is not None else None
    remaining = tuple(one(s) for s in state.remaining_subtasks)
    return replace(
        state, completed_subtasks=completed, current_subtask=current, remaining_subtasks=remaining, next_id=following
    )


def _is_ours(id_: str) -> bool:
    return id_[:1] == "s" and len(id_) <= LONGEST_ID and id_[1:].isascii() and id_[1:].isdigit()


def seal_of(position: Position) -> str:
    """SHA-256 over a position without its seal, as JSON with sorted keys."""
    value = asdict(replace(position, seal=""))
    data = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(data.encode()).hexdigest()


def as_json(state: AgentState) -> dict[str, Any]:
    """A value of plain types with all fields, unknown keys at its end."""
    position = state.transcript
    if position != Position():
        position = replace(position, seal=seal_of(position))
    value = asdict(replace(state, extra={}, transcript=position))
    del value["extra"]
    value["environment"] = _whole(value["environment"])
    value["current_subtask"] = _whole(value["current_subtask"])
    for key in ("completed_subtasks", "remaining_subtasks"):
        value[key] = [_whole(item) for item in value[key]]
    return {"schema": value.pop("schema"), **value, **state.extra}


def dumps(state: AgentState) -> bytes:
    """The file: indented JSON, one line end."""
    value = as_json(state)
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
    except (TypeError, orjson.JSONEncodeError):
        return clean(json.dumps(value, indent=2, ensure_ascii=False)).encode() + b"\n"
