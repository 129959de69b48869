"""Codex: a rollout that the agent can resume.

Source: openai/codex `codex-rs/protocol/src/{protocol,models}.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.formats.base import Json
from ctxctl.formats.codex_items import INJECTED as CLIENT
from ctxctl.formats.convert.base import (
    INJECTED,
    SIGNATURES,
    TARGETS,
    Clock,
    Scene,
    Target,
    data_url,
    line,
    name_of,
    omitted,
    parsed,
    uncarried,
)
from ctxctl.formats.convert.chat_shape import arguments_text
from ctxctl.formats.message import Call, Chat, Losses, Medium, Message, Part, Result, Text, Thinking
from ctxctl.model.usage import Usage

VERSION = "0.114.0"
"""Version of Codex whose shape is written."""

FREE_TEXT_TOOLS = frozenset(("apply_patch",))
"""Tools whose argument is free text and not JSON."""


@TARGETS.register("codex")
class ToCodex(Target):
    """The whole file is one rollout."""

    name = "codex"

    @classmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        chat = chats[0]
        uncarried(chat, losses, usage=True, times=True, injected=True)
        yield from _Rollout(chat, scene, losses).lines()


class _Rollout:
    def __init__(self, chat: Chat, scene: Scene, losses: Losses) -> None:
        self.chat, self.scene, self.losses = chat, scene, losses
        self.clock = Clock(scene.now)
        self.turn = 0
        self.spent = Usage(0)
        self.free: set[str | None] = set()

    def lines(self) -> Iterator[bytes]:
        messages = list(self.chat.messages)
        yield self._meta(messages)
        for message in messages:
            if message.role == "system":
                yield from self._said(message, "developer")
            elif message.role == "assistant":
                yield from self._assistant(message)
            elif any(isinstance(p, Result) for p in message.parts):
                for part in message.parts:
                    if isinstance(part, Result):
                        yield self._item(self._output(part), message.timestamp)
            else:
                yield from self._user(message)

    def _line(self, type_: str, payload: dict[str, Json], when: str | None) -> bytes:
        return line({"timestamp": self.clock(when), "type": type_, "payload": payload})

    def _item(self, item: dict[str, Json], when: str | None) -> bytes:
        return self._line("response_item", item, when)

    def _meta(self, messages: list[Message]) -> bytes:
        """The head of the file; a system prompt in front is the agent's instructions."""
        when = next((m.timestamp for m in messages if m.timestamp), self.scene.now)
        meta: dict[str, Json] = {
            "id": self.scene.session,
            "timestamp": when,
            "cwd": self.chat.cwd or self.scene.cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
            "model_provider": "openai",
        }
        if messages and messages[0].role == "system" and len(messages[0].parts) == 1:
            first = messages.pop(0).parts[0]
            assert isinstance(first, Text)
            meta["base_instructions"] = {"text": first.text}
        return self._line("session_meta", meta, when)

    def _user(self, message: Message) -> Iterator[bytes]:
        texts = [p for p in message.parts if isinstance(p, Text)]
        typed = [p.text for p in texts if p.kind == "user_message"]
        self.losses.add(
            INJECTED, sum(1 for p in texts if p.kind == "memory_injection" and not p.text.lstrip().startswith(CLIENT))
        )
        yield from self._said(message, "user")
        if typed or not texts:
            event = {"type": "user_message", "message": "\n".join(typed), "images": [], "local_images": []}
            yield self._line("event_msg", event, message.timestamp)
        self.turn += 1
        context = {
            "turn_id": f"turn-{self.turn}",
            "cwd": self.chat.cwd or self.scene.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "workspace-write"},
            "model": self.chat.model or "unknown",
            "summary": "auto",
        }
        yield self._line("turn_context", context, message.timestamp)

    def _said(self, message: Message, role: str) -> Iterator[bytes]:
        content = [self._content(part, role) for part in message.parts]
        if content:
            yield self._item({"type": "message", "role": role, "content": content}, message.timestamp)

    def _content(self, part: Part, role: str) -> dict[str, Json]:
        type_ = "output_text" if role == "assistant" else "input_text"
        if isinstance(part, Text):
            return {"type": type_, "text": part.text}
        assert isinstance(part, Medium)
        return self._medium(part) if role == "user" else {"type": type_, "text": omitted(part, self.losses)}

    def _medium(self, medium: Medium) -> dict[str, Json]:
        if medium.text is not None:
            return {"type": "input_text", "text": medium.text}
        url = data_url(medium, "image/png") if medium.kind == "image" else None
        if url is None:
            return {"type": "input_text", "text": omitted(medium, self.losses)}
        return {"type": "input_image", "image_url": url}

    def _assistant(self, message: Message) -> Iterator[bytes]:
        when = message.timestamp
        said: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text | Medium):
                said.append(part)
                continue
            if said:
                yield from self._said(Message("assistant", tuple(said), when), "assistant")
                said = []
            if isinstance(part, Thinking):
                item = self._reasoning(part)
                if item is not None:
                    yield self._item(item, when)
            elif isinstance(part, Call):
                yield self._item(self._call(part), when)
        if said:
            yield from self._said(Message("assistant", tuple(said), when), "assistant")
        if message.usage is not None and message.usage.reported:
            yield self._line("event_msg", self._count(message.usage), when)

    def _reasoning(self, part: Thinking) -> dict[str, Json] | None:
        self.losses.add(SIGNATURES, int(part.signature is not None or part.redacted is not None))
        if not part.text.strip() and part.encrypted is None:
            return None
        summary = [{"type": "summary_text", "text": part.text}] if part.text.strip() else []
        return {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": part.encrypted}

    def _call(self, call: Call) -> dict[str, Json]:
        text = _free_text(call)
        if text is not None:
            self.free.add(call.id)
            return {
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "input": text,
            }
        name = name_of(call, self.losses)
        return {
            "type": "function_call",
            "name": name,
            "arguments": arguments_text(call, self.losses),
            "call_id": call.id,
        }

    def _output(self, result: Result) -> dict[str, Json]:
        type_ = "custom_tool_call_output" if result.id in self.free else "function_call_output"
        output: Json = result.text
        if result.media:
            said = [{"type": "input_text", "text": result.text}] if result.text.strip() else []
            output = [*said, *map(self._medium, result.media)]
        failed = {"success": False} if result.is_error else {}
        return {"type": type_, "call_id": result.id, "output": output, **failed}

    def _count(self, usage: Usage) -> dict[str, Json]:
        total = self.spent
        self.spent = Usage(
            0,
            total.input + usage.input,
            total.output + usage.output,
            total.cache_read + usage.cache_read,
            total.cache_write + usage.cache_write,
            total.reasoning + usage.reasoning,
        )
        info = {"total_token_usage": _tokens(self.spent), "last_token_usage": _tokens(usage)}
        return {"type": "token_count", "info": info, "rate_limits": None}


def _tokens(usage: Usage) -> dict[str, int]:
    """Counts as Codex states them: input includes what the cache served."""
    return {
        "input_tokens": usage.prompt,
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "reasoning_output_tokens": usage.reasoning,
        "total_tokens": usage.prompt + usage.output,
    }


def _free_text(call: Call) -> str | None:
    """The argument of a call that takes free text, None for one that takes JSON."""
    value = parsed(call.arguments)
    if isinstance(value, dict):
        text = value.get("input")
        alone = call.name in FREE_TEXT_TOOLS and len(value) == 1
        return text if alone and isinstance(text, str) else None
    return call.arguments if call.arguments.strip() else None
