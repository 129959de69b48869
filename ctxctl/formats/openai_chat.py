"""OpenAI chat: one conversation per line, a request object, a batch file, or a bare list of messages.

Source: the request and message types of openai-python `types/chat/` and the fine-tuning and batch file formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxctl.formats.base import FORMATS, Json, dumps, word
from ctxctl.formats.chat import KIND_OF_ROLE, ConversationFormat, chat_pieces, chat_usage, stale_messages, stated_ratio
from ctxctl.formats.content import Piece
from ctxctl.formats.session import Call

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft

ROLE_OF_KIND = {"system": "system", "user_message": "user", "assistant": "assistant", "tool_result": "tool"}


@FORMATS.register("openai-chat")
class OpenAIChat(ConversationFormat):
    """Each record is one conversation."""

    name = "openai-chat"
    title = "OpenAI chat: a conversation per line, a request, or a list of messages"
    document = True
    priority = 70

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        return any(
            is_conversation(messages_of(record)) or (isinstance(record, dict) and answer_of(response_of(record)))
            for record in records
        )

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.chat_write import rewrite_chat

        return rewrite_chat(draft)

    def feed(self, record: Json, line: int) -> None:
        messages = messages_of(record)
        if messages is None:
            self.diagnostics.add("warning", "odd_shape", "an object without a list of messages", line)
            return
        head = record if isinstance(record, dict) else {}
        body = head["body"] if isinstance(head.get("body"), dict) else head
        id_ = next((v for k in ("custom_id", "id") if isinstance(v := head.get(k), str)), None)
        self.id = self.id or id_
        self.model = body["model"] if isinstance(body.get("model"), str) else self.model
        response = response_of(head)
        answered_by = response.get("model")
        self.model = answered_by if isinstance(answered_by, str) else self.model
        self.begin(line, id_)
        if isinstance(body.get("tools"), list) and body["tools"]:
            self.place([Piece("tool_definitions", dumps(body["tools"]).decode())], "system", line)
        last: Call | None = None
        stale, self.ratio = stale_messages(head), stated_ratio(head)
        for position, message in enumerate([*messages, *answer_of(response)], 1):
            if isinstance(message, dict):
                last = chat_message(self, message, line, f"{line}.{position}") or last
                if last is not None and position <= stale:
                    last.stale = True
            else:
                self.diagnostics.add("warning", "odd_shape", f"message {position} is not an object", line)
        usage = response.get("usage", head.get("usage"))
        if isinstance(usage, dict) and last is not None:
            chat_usage(last, usage, line, self)


def chat_message(reader: ConversationFormat, message: dict[str, Json], line: int, name: str) -> Call | None:
    """Hand one chat message to a reader; the call when an assistant wrote it."""
    role = message.get("role")
    kind = kind_of(role)
    if kind is None:
        reader.diagnostics.add("warning", "odd_shape", f"a message with role {role!r}, read as user", line)
        kind = "user_message"
    when = message.get("timestamp")
    return reader.message(
        list(chat_pieces(message, kind)),
        ROLE_OF_KIND[kind],
        line,
        name=name,
        timestamp=when if isinstance(when, str) else None,
    )


def kind_of(role: Json) -> str | None:
    """The kind of what a role says; None for a role that is none."""
    return KIND_OF_ROLE.get(role) if isinstance(role, str) else None


def messages_of(record: Json) -> list[Json] | None:
    """The messages of one record: a bare list, a request, a batch line, or a preference pair; None for others."""
    if isinstance(record, list):
        return record
    if not isinstance(record, dict):
        return None
    holder = holder_of(record)
    if holder is not None:
        found: list[Json] = holder["messages"]
        preferred = record.get("preferred_output")
        return [*found, *preferred] if isinstance(preferred, list) else found
    return [] if answer_of(response_of(record)) else None


def holder_of(record: dict[str, Json]) -> dict[str, Json] | None:
    """The object within a record whose `messages` these are: itself, the body of a batch line, an input, a request."""
    holders = (record, record.get("body"), record.get("input"), record.get("request"))
    return next((h for h in holders if isinstance(h, dict) and isinstance(h.get("messages"), list)), None)


def is_conversation(messages: list[Json] | None) -> bool:
    """Whether these are chat messages: the first few carry a known role and something said or called."""
    if messages is None:
        return False
    return all(isinstance(m, dict) and is_message(m) for m in messages[:5]) and bool(messages)


def is_message(record: dict[str, Json]) -> bool:
    """Whether a record is one chat message."""
    known = word(record, "role") in KIND_OF_ROLE
    return known and any(key in record for key in ("content", "tool_calls", "function_call"))


def response_of(record: dict[str, Json]) -> dict[str, Json]:
    """The response object that a log or a batch result holds, else an empty one."""
    response = record.get("response", record if "choices" in record else None)
    if isinstance(response, dict) and isinstance(response.get("body"), dict):
        response = response["body"]
    return response if isinstance(response, dict) else {}


def answer_of(response: dict[str, Json]) -> list[Json]:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if isinstance(message, dict) else []
