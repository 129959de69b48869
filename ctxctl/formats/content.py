"""Content blocks of the Anthropic Messages shape, as pieces: shared by Claude Code and Messages requests.

Source: the block types of anthropics/anthropic-sdk-python `types/`, and recorded sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxctl.formats.base import Json, dumps, part_text
from ctxctl.formats.media import media_of
from ctxctl.model.block import Media
from ctxctl.model.text import through

TARGET_KEYS = (
    "file_path",
    "path",
    "notebook_path",
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "description",
    "subject",
    "prompt",
)
PATH_KEYS = frozenset(("file_path", "path", "notebook_path"))
TARGET_LENGTH = 80
PLAIN = re.compile(r"[A-Za-z_./-]{1,20}|[a-z_.-]*|(?=[^/]{0,80}/)[A-Za-z_./-]*")
"""Words that are no credential, in part or whole: short ones and paths, without a digit."""
SHORTEST = 12
"""Characters of a name that may be one."""


class Piece(NamedTuple):
    """What one content block holds, before it has a place in a transcript."""

    kind: str
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    is_error: bool = False
    media: Media | None = None
    target: str | None = None


def shorten(text: str, length: int = TARGET_LENGTH, *, keep_end: bool = False) -> str:
    """One line of at most `length` characters, white space folded, `…` where it was cut: at its end, or its start."""
    if keep_end:
        flat = " ".join(text[-length * 4 :].split())
        return flat if len(flat) <= length else _end(flat, length)
    flat = " ".join(through(text, length * 4).split())
    return flat if len(flat) <= length else _beginning(flat, length - 1) + "…"


def _beginning(text: str, most: int) -> str:
    """So many characters; of a word that they end in nothing when it may be a credential, which could not be told by
    its first half."""
    start = max(text.rfind(edge, 0, most) for edge in ' "') + 1
    word = through(text, most)[start:]
    return text[:most] if PLAIN.fullmatch(word) or not word else text[:start].rstrip(' "')


def _end(path: str, most: int) -> str:
    """The end of a path, from a name of it on where the first one may be a credential."""
    start = len(path) + 1 - most
    stop = path.find("/", start)
    name = path[path.rfind("/", 0, start) + 1 : stop if stop >= 0 else len(path)]
    return "…" + path[start if PLAIN.fullmatch(name) or stop < 0 or len(name) < SHORTEST else stop :]


def target_of(arguments: Json) -> str | None:
    """What a call acts on: the path, command, pattern or query among its arguments, as one short line."""
    if not isinstance(arguments, dict):
        return None
    for key in TARGET_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            # ["bash", "-lc", "make test"]: what counts is the script
            value = value[-1] if len(value) > 2 and value[1] in ("-c", "-lc") else " ".join(value)
        if isinstance(value, str) and value.strip():
            return shorten(value, keep_end=key in PATH_KEYS)
    return None


def call_text(name: str, arguments: Json) -> str:
    """The text of a call: its name, a space, its arguments as compact JSON (or as they stand when they are text)."""
    return f"{name} {arguments if isinstance(arguments, str) else dumps(arguments).decode()}"


def pieces(content: Json, kind: str) -> Iterator[Piece]:
    """The pieces of a message's content. kind: of its text blocks. Unknown block types are kept as JSON text."""
    if isinstance(content, str):
        if content:
            yield Piece(kind, content)
        return
    if not isinstance(content, list):
        return
    for block in content:
        if isinstance(block, str):
            yield Piece(kind, block)
        elif isinstance(block, dict):
            yield from piece(block, kind)


def piece(block: dict[str, Json], kind: str) -> Iterator[Piece]:
    """The pieces of one content block: one, but a tool result with pictures gives one for each of them too."""
    type_ = block.get("type")
    if type_ == "text":
        text = block.get("text")
        yield Piece(kind, text if isinstance(text, str) else "")
    elif type_ == "tool_use" or type_ == "server_tool_use" or type_ == "mcp_tool_use":
        name, arguments = _text(block.get("name")) or "unknown", block.get("input")
        yield Piece(
            "tool_call", call_text(name, arguments), name, _text(block.get("id")), False, None, target_of(arguments)
        )
    elif type_ == "tool_result" or (isinstance(type_, str) and type_.endswith("_tool_result")):
        yield from _result(block)
    elif type_ == "thinking":
        yield Piece("thinking", _text(block.get("thinking")) or "")
    elif type_ == "redacted_thinking":
        yield Piece("thinking", "")
    elif type_ == "image" or type_ == "document":
        yield _media(block, type_)
    elif type_ == "compaction":
        yield Piece("summary", _text(block.get("content")) or "")
    else:
        yield Piece(kind, part_text(block))


def _result(block: dict[str, Json]) -> Iterator[Piece]:
    call_id = _text(block.get("tool_use_id"))
    content = block.get("content")
    error = block.get("is_error") is True
    if isinstance(content, str):
        yield Piece("tool_result", content, None, call_id, error)
        return
    texts: list[str] = []
    media: list[Piece] = []
    for part in content if isinstance(content, list) else ([content] if content is not None else []):
        type_ = part.get("type") if isinstance(part, dict) else None
        if type_ == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif type_ in ("image", "document"):
            media.append(_media(part, type_)._replace(call_id=call_id))
        elif isinstance(part, str):
            texts.append(part)
        elif part is not None:
            texts.append(part_text(part))
    yield Piece("tool_result", "\n".join(texts), None, call_id, error)
    yield from media


def _media(block: dict[str, Json], kind: str) -> Piece:
    source = block.get("source")
    if not isinstance(source, dict):
        return Piece(kind, "", media=Media())
    data, mime = source.get("data"), _text(source.get("media_type"))
    if kind == "document" and source.get("type") == "text" and isinstance(data, str):
        return Piece(kind, data, media=Media(mime))
    return Piece(kind, "", media=media_of(data, mime) if isinstance(data, str) else Media(mime))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
