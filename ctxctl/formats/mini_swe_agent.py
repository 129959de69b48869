"""mini-swe-agent trajectories: chat messages with the raw API response of each call in `extra`.

Source: SWE-agent/mini-swe-agent `docs/usage/output_files.md` and `agents/default.py`; versions 1 and 1.1, and the bare
list of before 1.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.formats.base import FORMATS, Json
from ctxctl.formats.chat import ConversationFormat, chat_pieces, chat_usage, stale_messages, stated_ratio
from ctxctl.formats.codex_items import item_pieces
from ctxctl.formats.openai_chat import chat_message, is_conversation
from ctxctl.formats.overflow import is_overflow
from ctxctl.formats.session import Call
from ctxctl.model.text import is_summary, stands_for_many
from ctxctl.model.transcript import Overflow

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft


@FORMATS.register("mini-swe-agent")
class MiniSweAgent(ConversationFormat):
    """The whole file is one run."""

    name = "mini-swe-agent"
    title = "mini-swe-agent trajectory (.traj.json)"
    document = True
    priority = 40

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        for record in records:
            if isinstance(record, dict):
                if str(record.get("trajectory_format", "")).startswith("mini-swe-agent"):
                    return True
            elif isinstance(record, list) and path.endswith(".traj.json"):
                return is_conversation(record)
        return False

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.chat_write import rewrite_trajectory

        return rewrite_trajectory(draft)

    def feed(self, record: Json, line: int) -> None:
        head = record if isinstance(record, dict) else {}
        messages = head.get("messages") if head else record
        if not isinstance(messages, list):
            self.diagnostics.add("warning", "odd_shape", "a trajectory without a list of messages", line)
            return
        self.id = head["instance_id"] if isinstance(head.get("instance_id"), str) else self.id
        self.model = _configured_model(head)
        self.begin(line, self.id)
        answered = 0
        stale, self.ratio = stale_messages(head), stated_ratio(head)
        for position, message in enumerate(messages, 1):
            if not isinstance(message, dict):
                self.diagnostics.add("warning", "odd_shape", f"message {position} is not an object", line)
                continue
            extra = message.get("extra")
            extra = extra if isinstance(extra, dict) else {}
            call = self._message(message, extra, line, f"{line}.{position}", answered > 0)
            answered += _is_told(message)
            if call is not None:
                answered += 1
                call.stale = position <= stale
                self._spent(call, extra, line)
        info = head.get("info")
        status = info.get("exit_status") if isinstance(info, dict) else None
        if isinstance(status, str) and is_overflow(status):
            self.overflows.append(Overflow(self.thread.calls + 1, line, f"the run ended with {status}"))

    def _message(
        self, message: dict[str, Json], extra: dict[str, Json], line: int, name: str, running: bool
    ) -> Call | None:
        if "role" not in message and (isinstance(message.get("output"), list) or "type" in message):
            return self._responses_item(message, line, name)
        role = message.get("role")
        if role == "exit":  # how the run ended; never sent to a model
            return None
        if role == "user" and running:
            # after the first answer the user role carries what the command printed
            text = message.get("content")
            error = isinstance(text, str) and text.startswith("<returncode>") and not text.startswith("<returncode>0<")
            parts = [
                part._replace(kind="tool_result", tool_name="bash", is_error=error)
                if not stands_for_many(part.text)
                else part
                for part in chat_pieces(message, "user_message")
            ]
            return self.message(parts, "user", line, name=name)
        model = _response_model(extra)
        self.model = model or self.model
        return chat_message(self, message, line, name)

    def _responses_item(self, message: dict[str, Json], line: int, name: str) -> Call | None:
        """A message of a Responses model: raw output items stand in its place."""
        output = message.get("output")
        items = output if isinstance(output, list) and "type" not in message else [message]
        parts = [p for item in items if isinstance(item, dict) for p in item_pieces(item)]
        wrote = any(p.kind in ("assistant", "thinking", "tool_call") for p in parts)
        return self.message(parts, "assistant" if wrote else "tool", line, name=name)

    def _spent(self, call: Call, extra: dict[str, Json], line: int) -> None:
        response = extra.get("response")
        if isinstance(response, dict) and isinstance(response.get("usage"), dict):
            chat_usage(call, response["usage"], line, self)
        cost = extra.get("cost")
        if call.cost is None and isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0:
            call.cost = float(cost)


def _is_told(message: dict[str, Json]) -> bool:
    """Whether a message stands for earlier ones of the run."""
    text = message.get("content")
    return message.get("role") == "user" and isinstance(text, str) and is_summary(text)


def _response_model(extra: dict[str, Json]) -> str | None:
    response = extra.get("response")
    model = response.get("model") if isinstance(response, dict) else None
    return model if isinstance(model, str) else None


def _configured_model(head: dict[str, Any]) -> str | None:
    """`info.config.model.model_name`, where the run states it."""
    value: Any = head
    for key in ("info", "config", "model", "model_name"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
