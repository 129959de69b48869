"""What blocks leave out and a conversion needs: signatures of thinking, and the data of pictures and documents.

Blocks are made for counting. The record that a block comes from is read again, and the parts of it that have such
details are found in the order in which readers make blocks of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.formats.base import Diagnostics, Json
from ctxctl.formats.jsonlines import BOM, parse_line
from ctxctl.formats.message import Medium, Thinking

Detail = Thinking | Medium
DETAILED = frozenset(("thinking", "image", "document"))
"""Kinds of blocks that have details."""

_MEDIA = frozenset(("image", "document", "image_url", "input_image", "input_audio", "file", "input_file"))
_HOLDERS = ("payload", "message", "body", "request", "input", "response", "attachment", "prompt")


def details_of(line: bytes) -> list[Detail]:
    """The details of a physical line or a document, in the order of its blocks."""
    values = parse_line(line.removeprefix(BOM), 1, Diagnostics())
    if not values:
        return []
    return [detail for value in values for detail in _walk(value)]


def _walk(value: Json) -> Iterator[Detail]:
    if isinstance(value, list):
        for item in value:
            yield from _walk(item)
    elif isinstance(value, dict):
        yield from _record(value)


def _record(record: dict[str, Json]) -> Iterator[Detail]:
    type_ = record.get("type")
    if type_ == "reasoning":
        yield Thinking("", encrypted=_word(record.get("encrypted_content")))
        return
    if type_ == "thinking":
        yield Thinking(_word(record.get("thinking")) or "", _word(record.get("signature")))
        return
    if type_ == "redacted_thinking":
        yield Thinking("", redacted=_word(record.get("data")))
        return
    if type_ in _MEDIA and not isinstance(record.get("messages"), list):
        yield medium_of(record)
        return
    if type_ == "tool_use" or type_ == "function_call":
        return
    for key in ("reasoning_content", "reasoning"):
        if isinstance(record.get(key), str) and record[key]:
            yield Thinking(record[key])
            break
    for key in ("system", "messages", "preferred_output", "replacement_history", *_HOLDERS, "content", "output"):
        held = record.get(key)
        if isinstance(held, (list, dict)):
            yield from _walk(held)
    choices = record.get("choices")
    if isinstance(choices, list) and choices:
        yield from _walk(choices[0])


def medium_of(part: dict[str, Json]) -> Medium:
    """A picture or document part of any API."""
    type_ = part.get("type")
    source = part.get("source")
    if isinstance(source, dict):
        kind = "document" if type_ == "document" else "image"
        data, mime = _word(source.get("data")), _word(source.get("media_type"))
        name = _word(part.get("title"))
        if source.get("type") == "text":
            return Medium(kind, mime, text=data, name=name)  # type: ignore[arg-type]
        return Medium(kind, mime, data, _word(source.get("url")), None, name)  # type: ignore[arg-type]
    value = part.get("image_url", part.get("file", part.get("input_audio")))
    name = None
    if isinstance(value, dict):
        name = _word(value.get("filename"))
        if isinstance(value.get("format"), str) and isinstance(value.get("data"), str):
            return Medium("document", f"audio/{value['format']}", value["data"])
        value = value.get("url", value.get("file_data", value.get("data")))
    kind = "image" if "image" in str(type_) else "document"
    return from_url(kind, _word(value), name)


def from_url(kind: str, url: str | None, name: str | None) -> Medium:
    """A medium that is given by an address, which may hold the data itself."""
    if url is not None and url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        return Medium(kind, head.partition(";")[0] or None, data, name=name)  # type: ignore[arg-type]
    return Medium(kind, url=url, name=name)  # type: ignore[arg-type]


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) else None
