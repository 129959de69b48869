"""Changing a JSON file that a person wrote: a member comes or goes, and every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from json import decoder
from typing import Any

from ctxctl.errors import ConfigError

_scanstring: Callable[[str, int], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]
"""The string that starts behind a quote, and where it ends."""

SPACE = re.compile(r"[ \t\r\n]*")
SCALAR = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Node:
    """A value in the text: where it starts and ends. keys: of an object's members, None for an array or a scalar.
    starts: where each child begins, with its key. children: in order."""

    start: int
    end: int
    keys: tuple[str, ...] | None = None
    starts: tuple[int, ...] = ()
    children: tuple[Node, ...] = ()

    def child(self, key: str) -> Node | None:
        """The member of an object under a key."""
        if self.keys is None or key not in self.keys:
            return None
        return self.children[self.keys.index(key)]


def scan(text: str, path: str) -> Node:
    """Where the values of a JSON text lie. Raises ConfigError with file and line for what is no JSON object, for one
    with comments, and for a key that is there twice."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        comment = re.match(r"\s*(//|/\*|#)", text[error.pos :])
        what = "a comment, which JSON has not" if comment else f"no JSON: {error.msg}"
        raise ConfigError(what, path=path, line=error.lineno, hint=_MEND) from None
    except RecursionError:
        raise ConfigError("nested too deeply", path=path, line=1, hint=_MEND) from None
    root = _value(text, SPACE.match(text, 0).end(), path)  # type: ignore[union-attr]
    if not isinstance(value, dict):
        raise ConfigError("no JSON object", path=path, line=1, hint=_MEND)
    return root


_MEND = "mend the file by hand; nothing was changed"


def _skip(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def _value(text: str, at: int, path: str) -> Node:
    opening = text[at]
    if opening == '"':
        return Node(at, _scanstring(text, at + 1)[1])
    if opening not in "{[":
        return Node(at, SCALAR.match(text, at).end())  # type: ignore[union-attr]
    keys: list[str] = []
    starts: list[int] = []
    children: list[Node] = []
    place = _skip(text, at + 1)
    while text[place] not in "}]":
        if text[place] == ",":
            place = _skip(text, place + 1)
        starts.append(place)
        if opening == "{":
            key, after = _scanstring(text, place + 1)
            if key in keys:
                line = text.count("\n", 0, place) + 1
                raise ConfigError(f"the key `{key}` is there twice", path=path, line=line, hint=_MEND)
            keys.append(key)
            place = _skip(text, _skip(text, after) + 1)
        children.append(_value(text, place, path))
        place = _skip(text, children[-1].end)
    return Node(at, place + 1, tuple(keys) if opening == "{" else None, tuple(starts), tuple(children))


def added(text: str, node: Node, value: Any, key: str | None = None) -> str:
    """The text with one more member at the end of an object (key) or array, in the style of the file."""
    lead = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if node.children and "\n" not in text[node.start : node.end]:
        last = node.children[-1].end
        return f"{text[:last]}, {lead}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    line = text.rfind("\n", 0, node.start) + 1
    outer = re.match(r"[ \t]*", text[line : node.start])[0]  # type: ignore[index]
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    written = newline + outer + unit + lead + (newline + outer + unit).join(lines)
    if node.children:
        last = node.children[-1].end
        return f"{text[:last]},{written}{text[last:]}"
    return f"{text[: node.start + 1]}{written}{newline}{outer}{text[node.end - 1 :]}"


def removed(text: str, node: Node, index: int) -> str:
    """The text without one child of an object or array, and without its comma."""
    if len(node.children) == 1:
        return text[: node.start + 1] + text[node.end - 1 :]
    if index == len(node.children) - 1:
        return text[: node.children[index - 1].end] + text[node.children[index].end :]
    return text[: node.starts[index]] + text[node.starts[index + 1] :]


def _unit(text: str) -> str:
    """What the file indents by; two spaces where it does not."""
    found = re.search(r'\{\s*?\n([ \t]+)"', text)
    return found[1] if found else "  "
