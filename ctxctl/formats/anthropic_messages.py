"""Anthropic Messages requests: an object per file or per line, or a bare list of messages (Cline, Roo Code).

Source: the request types of anthropics/anthropic-sdk-python `types/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxctl.formats.base import FORMATS, Json, dumps, word
from ctxctl.formats.chat import ConversationFormat, stale_messages, stated_ratio
from ctxctl.formats.content import Piece, pieces
from ctxctl.formats.openai_chat import messages_of
from ctxctl.formats.session import Call, anthropic_usage
from ctxctl.model.text import is_summary

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft

BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"))


@FORMATS.register("anthropic-messages")
class AnthropicMessages(ConversationFormat):
    """Each record is one request, and one conversation."""

    name = "anthropic-messages"
    title = "Anthropic Messages request, or a list of its messages"
    document = True
    priority = 60

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        return any(_is_request(record) for record in records)

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.messages_write import rewrite_messages

        return rewrite_messages(draft)

    def feed(self, record: Json, line: int) -> None:
        messages = messages_of(record)
        if messages is None:
            self.diagnostics.add("warning", "odd_shape", "an object without a list of messages", line)
            return
        head = record if isinstance(record, dict) else {}
        body = next((h for h in (head.get("body"), head.get("request")) if isinstance(h, dict)), head)
        self.model = body["model"] if isinstance(body.get("model"), str) else self.model
        self.id = self.id or (head["id"] if isinstance(head.get("id"), str) else None)
        self.begin(line)
        if isinstance(body.get("tools"), list) and body["tools"]:
            self.place([Piece("tool_definitions", dumps(body["tools"]).decode())], "system", line)
        system = list(pieces(body.get("system"), "system"))
        if system:
            self.place(system, "system", line)
        last: Call | None = None
        stale, self.ratio = stale_messages(head), stated_ratio(head)
        for position, message in enumerate(messages, 1):
            if not isinstance(message, dict) or "content" not in message:
                self.diagnostics.add("warning", "odd_shape", f"message {position} is not a message object", line)
                continue
            role = message.get("role")
            kind = {"assistant": "assistant", "system": "system"}.get(str(role), "user_message")
            parts = list(pieces(message.get("content"), kind))
            if kind == "user_message":
                parts = [p._replace(kind="summary") if p.kind == kind and is_summary(p.text) else p for p in parts]
            role = {"assistant": "assistant", "system": "system"}.get(kind, "user")
            last = self.message(parts, role, line, name=f"{line}.{position}") or last
            if last is not None and position <= stale:
                last.stale = True
        response = head.get("response")
        usage = response.get("usage") if isinstance(response, dict) else head.get("usage")
        if isinstance(usage, dict) and last is not None:
            anthropic_usage(last, usage, line, self.diagnostics)


def _is_request(record: Json) -> bool:
    messages = messages_of(record)
    if not messages:
        return (
            isinstance(record, dict)
            and isinstance(record.get("messages"), list)
            and "max_tokens" in record
            and ("system" in record)
        )
    if isinstance(record, dict) and "system" in record and "max_tokens" in record:
        return True
    return any(
        isinstance(block, dict) and word(block, "type") in BLOCKS
        for message in messages[:50]
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
    )
