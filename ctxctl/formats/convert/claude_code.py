"""Claude Code: a session file that the agent can resume.

The vendor publishes no schema; the envelope is that of recorded sessions of version 2.1. One content block per line,
a result per user line, every record the parent of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl.formats.convert.anthropic_shape import block_of
from ctxctl.formats.convert.base import TARGETS, Clock, Ids, Scene, Target, line, uncarried
from ctxctl.formats.convert.order import anthropic_ids
from ctxctl.formats.message import Call, Chat, Losses, Message, Result, Text
from ctxctl.model.usage import Usage

VERSION = "2.1.0"
"""Version of Claude Code whose shape is written."""

SYSTEM = "system prompts: carried as notes of the client, since the agent sends its own"


@TARGETS.register("claude-code")
class ToClaudeCode(Target):
    """The whole file is one session."""

    name = "claude-code"

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        chat = chats[0]
        uncarried(chat, losses, usage=True, times=True, injected=True, summaries=True)
        yield from _Session(chat, scene, losses).lines()


class _Session:
    def __init__(self, chat: Chat, scene: Scene, losses: Losses) -> None:
        self.chat, self.scene, self.losses = chat, scene, losses
        self.ids = Ids(scene.session)
        self.clock = Clock(scene.now)
        self.parent: str | None = None
        self.callers: dict[str, str] = {}

    def lines(self) -> Iterator[bytes]:
        for number, message in enumerate(anthropic_ids(self.chat.messages, self.losses), 1):
            if message.role == "assistant":
                yield from self._assistant(message, number)
            else:
                yield from self._user(message)

    def _record(self, type_: str, when: str | None, message: dict[str, Any], **more: Any) -> bytes:
        uuid = self.ids()
        record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.chat.cwd or self.scene.cwd,
            "sessionId": self.scene.session,
            "version": VERSION,
            "gitBranch": "",
            "type": type_,
            "message": message,
            **more,
            "uuid": uuid,
            "timestamp": self.clock(when),
        }
        self.parent = uuid
        return line(record)

    def _user(self, message: Message) -> Iterator[bytes]:
        for kind, parts in _runs(message):
            blocks = [b for b in (block_of(part, self.losses) for part in parts) if b is not None]
            marks: dict[str, Any] = {}
            if kind == "memory_injection" or message.role == "system":
                marks["isMeta"] = True
                self.losses.add(SYSTEM, int(message.role == "system"))
            elif kind == "summary":
                marks |= {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
            elif kind == "result":
                result = parts[0]
                assert isinstance(result, Result)
                caller = self.callers.get(result.id or "")
                marks |= {"sourceToolAssistantUUID": caller} if caller else {}
            only = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else None
            content = only if only is not None else blocks
            yield self._record("user", message.timestamp, {"role": "user", "content": content}, **marks)

    def _assistant(self, message: Message, number: int) -> Iterator[bytes]:
        pairs = [(part, block_of(part, self.losses)) for part in message.parts]
        groups = [([part], [block]) for part, block in pairs if block is not None]
        if _looks_repeated([blocks[0] for _, blocks in groups]):
            groups = [([p for parts, _ in groups for p in parts], [b for _, blocks in groups for b in blocks])]
        id_ = f"msg_{self.ids().replace('-', '')[:24]}"
        request = f"req_{self.ids().replace('-', '')[:24]}"
        calls = any(isinstance(part, Call) for part in message.parts)
        for at, (parts, blocks) in enumerate(groups, 1):
            last = at == len(groups)
            reply = {
                "model": message.model or self.chat.model or "unknown",
                "id": id_,
                "type": "message",
                "role": "assistant",
                "content": blocks,
                "stop_reason": ("tool_use" if calls else "end_turn") if last else None,
                "stop_sequence": None,
                "usage": _usage(message.usage),
            }
            record = self._record("assistant", message.timestamp, reply, requestId=request)
            self.callers.update({p.id: self.parent for p in parts if isinstance(p, Call) and p.id and self.parent})
            yield record


def _runs(message: Message) -> list[tuple[str, list[Any]]]:
    """The parts of a message as records: each result on its own, texts of one kind together."""
    found: list[tuple[str, list[Any]]] = []
    for part in message.parts:
        if isinstance(part, Result):
            found.append(("result", [part]))
            continue
        kind = part.kind if isinstance(part, Text) else "user_message"
        if found and found[-1][0] == kind:
            found[-1][1].append(part)
        else:
            found.append((kind, [part]))
    return found


def _looks_repeated(blocks: list[dict[str, Any]]) -> bool:
    """Whether a second line would be taken for the first one as it grew: a text that begins with the text before."""
    if len(blocks) < 2 or blocks[0]["type"] != blocks[1]["type"]:
        return False
    return any(str(blocks[1].get(key)).startswith(str(blocks[0].get(key))) for key in ("text", "thinking"))


def _usage(usage: Usage | None) -> dict[str, Any]:
    """The usage object of a response; zeros where nothing was reported, since the agent reads it without asking."""
    spent = usage if usage is not None and usage.reported else Usage(0)
    return {
        "input_tokens": spent.input,
        "cache_creation_input_tokens": spent.cache_write,
        "cache_read_input_tokens": spent.cache_read,
        "output_tokens": spent.output,
    }
