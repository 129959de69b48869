"""Anthropic Messages: a request per line.

Source: the request types of anthropics/anthropic-sdk-python `types/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl.formats.convert.anthropic_shape import block_of
from ctxctl.formats.convert.base import TARGETS, Scene, Target, line, tools_for, uncarried
from ctxctl.formats.convert.order import anthropic_ids
from ctxctl.formats.message import Chat, Losses, Medium, Text

MAX_TOKENS = 4096
"""A request must say how long the answer may be; no transcript does."""

MOVED = "places of later system messages: they stand in front"


@TARGETS.register("anthropic-messages")
class ToAnthropicMessages(Target):
    """Each conversation is one request, on one line."""

    name = "anthropic-messages"
    several = True

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        for chat in chats:
            uncarried(chat, losses, tools=True)
            yield line(_request(chat, losses))


def _request(chat: Chat, losses: Losses) -> dict[str, Any]:
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for message in anthropic_ids(chat.messages, losses):
        if message.role == "system":
            losses.add(MOVED, int(bool(messages)))
            system += [{"type": "text", "text": p.text} for p in message.parts if isinstance(p, Text)]
            continue
        content = [b for b in (block_of(part, losses) for part in message.parts) if b is not None]
        if not content:
            continue
        only = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else None
        said = only is not None and not any(isinstance(p, Medium) for p in message.parts)
        messages.append({"role": message.role, "content": only if said else content})
    request: dict[str, Any] = {"model": chat.model} if chat.model else {}
    # an empty list says that there is none, and tells a request of this API from others
    request |= {"max_tokens": MAX_TOKENS, "system": system, "messages": messages}
    if chat.tools:
        request["tools"] = tools_for(chat.tools, "anthropic")
    return request
