"""OpenAI chat with one message per line: the whole file is one conversation (plain dumps, gptme, vibe)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxctl.formats.base import FORMATS, Emit, Json
from ctxctl.formats.chat import ConversationFormat
from ctxctl.formats.openai_chat import chat_message, is_message

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft
    from ctxctl.formats.tail import Point


@FORMATS.register("openai-chat-message")
class OpenAIChatMessage(ConversationFormat):
    """Each record is one message."""

    name = "openai-chat-message"
    title = "OpenAI chat: a message per line"
    priority = 80
    appends = True

    def __init__(self, path: str, emit: Emit, *, usage_only: bool = False) -> None:
        super().__init__(path, emit, usage_only=usage_only)
        self.begin(1)

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        return any(isinstance(record, dict) and is_message(record) for record in records)

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.chat_write import rewrite_lines

        return rewrite_lines(draft)

    def go_on(self, point: Point) -> None:
        self.session.go_on(point)

    def point(self) -> Point:
        return self.session.point()

    def feed(self, record: Json, line: int) -> None:
        chat_message(self, record, line, str(line))
