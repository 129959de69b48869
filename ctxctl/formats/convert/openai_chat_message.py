"""OpenAI chat with a message per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.formats.convert.base import TARGETS, Scene, Target, line, uncarried
from ctxctl.formats.convert.chat_shape import chat_messages
from ctxctl.formats.message import Chat, Losses


@TARGETS.register("openai-chat-message")
class ToOpenAIChatMessage(Target):
    """The whole file is one conversation."""

    name = "openai-chat-message"

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        for chat in chats:
            uncarried(chat, losses)
            for message in chat_messages(chat, losses):
                yield line(message)
