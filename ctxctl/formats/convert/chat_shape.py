"""Messages in the shape of OpenAI chat, which several formats share."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.base import dumps
from ctxctl.formats.convert.base import data_url, name_of, object_of, omitted, parsed, thinking_lost
from ctxctl.formats.message import Call, Chat, Losses, Medium, Message, Result, Text, Thinking


def chat_messages(chat: Chat, losses: Losses) -> list[dict[str, Any]]:
    """All messages of a chat: results as tool messages behind the message that called."""
    found: list[dict[str, Any]] = []
    for message in chat.messages:
        results = [part for part in message.parts if isinstance(part, Result)]
        if results:
            found.extend(_tool_message(result, losses) for result in results)
        elif message.role == "assistant":
            found.extend(_assistant(message, losses))
        else:
            found.extend(_said(message, losses))
    return found


def _said(message: Message, losses: Losses) -> list[dict[str, Any]]:
    """One message per text, each with the pictures behind it: the parts of one would be read as a single text."""
    found: list[list[dict[str, Any]]] = []
    for part in message.parts:
        if isinstance(part, Text):
            block = {"type": "text", "text": part.text}
        elif isinstance(part, Medium):
            block = _medium(part, losses)
        else:
            continue
        if not found or (block["type"] == "text" and any(b["type"] == "text" for b in found[-1])):
            found.append([])
        found[-1].append(block)
    return [{"role": message.role, "content": _content(blocks)} for blocks in found]


def _content(blocks: list[dict[str, Any]]) -> Any:
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _medium(medium: Medium, losses: Losses) -> dict[str, Any]:
    if medium.text is not None:
        return {"type": "text", "text": medium.text or "[document omitted]"}
    mime = medium.mime or ""
    if medium.kind == "image" and (url := data_url(medium, "image/png")) is not None:
        return {"type": "image_url", "image_url": {"url": url}}
    if mime.startswith("audio/") and medium.data is not None:
        return {"type": "input_audio", "input_audio": {"data": medium.data, "format": mime.removeprefix("audio/")}}
    if medium.data is not None:
        file = {"filename": medium.name or "document.pdf", "file_data": data_url(medium, "application/pdf")}
        return {"type": "file", "file": file}
    return {"type": "text", "text": omitted(medium, losses)}


def _assistant(message: Message, losses: Losses) -> list[dict[str, Any]]:
    thinking_lost(message, losses)
    thoughts = [p.text for p in message.parts if isinstance(p, Thinking) and p.text.strip()]
    texts = [p.text for p in message.parts if isinstance(p, Text)]
    texts += [omitted(p, losses) for p in message.parts if isinstance(p, Medium)]
    calls = [
        {
            "id": p.id,
            "type": "function",
            "function": {"name": name_of(p, losses), "arguments": arguments_text(p, losses)},
        }
        for p in message.parts
        if isinstance(p, Call)
    ]
    if not (texts or calls or thoughts):
        return []
    found: dict[str, Any] = {"role": "assistant"}
    if len(texts) > 1:
        found["content"] = [{"type": "text", "text": text} for text in texts]
    else:
        found["content"] = texts[0] if texts else None
    if thoughts:
        found["reasoning_content"] = "\n".join(thoughts)
        if not (texts or calls):
            found["content"] = ""  # reasoning alone: an answer that was cut off
    if calls:
        found["tool_calls"] = calls
    return [found]


def arguments_text(call: Call, losses: Losses) -> str:
    """The arguments of a call as JSON text: as recorded where that is an object."""
    if isinstance(parsed(call.arguments), dict):
        return call.arguments
    return dumps(object_of(call.arguments, losses)).decode()


def _tool_message(result: Result, losses: Losses) -> dict[str, Any]:
    text = result.text
    for medium in result.media:
        mark = omitted(medium, losses, " in tool results")
        text = text or mark
    return {"role": "tool", "tool_call_id": result.id, "content": text}
