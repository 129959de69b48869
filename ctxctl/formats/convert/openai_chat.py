"""OpenAI chat: a request per line.

Source: the request types of openai-python `types/chat/`; `reasoning_content` as DeepSeek and vLLM take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.formats.convert.base import TARGETS, Scene, Target, line, tools_for, uncarried
from ctxctl.formats.convert.chat_shape import chat_messages
from ctxctl.formats.message import Chat, Losses


@TARGETS.register("openai-chat")
class ToOpenAIChat(Target):
    """Each conversation is one line."""

    name = "openai-chat"
    several = True

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        for chat in chats:
            uncarried(chat, losses, tools=True)
            head = {"model": chat.model} if chat.model else {}
            tools = {"tools": tools_for(chat.tools, "openai")} if chat.tools else {}
            yield line({**head, "messages": chat_messages(chat, losses), **tools})
