"""Content blocks in the shape of Anthropic Messages, for requests and for Claude Code.

Source: the block types of anthropics/anthropic-sdk-python `types/`.
"""

from __future__ import annotations

from typing import Any

from ctxctl.formats.convert.base import ENCRYPTED, data_url, name_of, object_of, omitted
from ctxctl.formats.message import Call, Losses, Medium, Part, Result, Text, Thinking

UNSIGNED = "thinking without a signature"
"""The provider refuses it; it is left out."""

_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


def block_of(part: Part, losses: Losses) -> dict[str, Any] | None:
    """One part as a content block, None for what can't be carried."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thinking):
        return _thinking(part, losses)
    if isinstance(part, Call):
        return {
            "type": "tool_use",
            "id": part.id,
            "name": name_of(part, losses),
            "input": object_of(part.arguments, losses),
        }
    if isinstance(part, Result):
        return _result(part, losses)
    return _medium(part, losses)


def _thinking(part: Thinking, losses: Losses) -> dict[str, Any] | None:
    if part.redacted is not None:
        return {"type": "redacted_thinking", "data": part.redacted}
    if part.signature:
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    losses.add(ENCRYPTED if part.encrypted is not None and not part.text else UNSIGNED)
    return None


def _result(part: Result, losses: Losses) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.id}
    if part.media:
        said = [{"type": "text", "text": part.text}] if part.text.strip() else []
        block["content"] = [*said, *(_medium(m, losses) for m in part.media)]
    elif part.text:
        block["content"] = part.text
    if part.is_error:
        block["is_error"] = True
    return block


def _medium(medium: Medium, losses: Losses) -> dict[str, Any]:
    if medium.text is not None and medium.text.strip():
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": medium.text}}
    title = {"title": medium.name} if medium.name and medium.kind == "document" else {}
    mime = medium.mime or ("image/png" if medium.kind == "image" else "application/pdf")
    if medium.data is not None and (mime in _IMAGES if medium.kind == "image" else mime == "application/pdf"):
        source = {"type": "base64", "media_type": mime, "data": medium.data}
        return {"type": medium.kind, "source": source, **title}
    if medium.data is None and medium.url is not None:
        return {"type": medium.kind, "source": {"type": "url", "url": data_url(medium, mime)}, **title}
    return {"type": "text", "text": omitted(medium, losses)}
