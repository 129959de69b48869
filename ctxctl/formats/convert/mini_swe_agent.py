"""mini-swe-agent trajectories.

Source: SWE-agent/mini-swe-agent `docs/usage/output_files.md` and `agents/default.py`, version 1.1 of the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl.formats.convert.base import TARGETS, Scene, Target, uncarried
from ctxctl.formats.convert.chat_shape import chat_messages
from ctxctl.formats.message import Chat, Losses, Text
from ctxctl.model.text import clean

FORMAT = "mini-swe-agent-1.1"

OBSERVED = "user messages after the first answer: read as observations"


@TARGETS.register("mini-swe-agent")
class ToMiniSweAgent(Target):
    """The whole file is one run, with the indentation that the agent itself writes."""

    name = "mini-swe-agent"

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        chat = chats[0]
        uncarried(chat, losses)
        answered = False
        for message in chat.messages:
            answered |= message.role == "assistant"
            said = answered and message.role == "user" and any(isinstance(p, Text) for p in message.parts)
            losses.add(OBSERVED, int(said))
        info: dict[str, Any] = {"exit_status": "", "submission": ""}
        if chat.model:
            info["config"] = {"model": {"model_name": chat.model}}
        record: dict[str, Any] = {
            "info": info,
            "messages": chat_messages(chat, losses),
            "trajectory_format": FORMAT,
        }
        if chat.id:
            record["instance_id"] = chat.id
        yield clean(json.dumps(record, indent=2, ensure_ascii=False)).encode() + b"\n"
