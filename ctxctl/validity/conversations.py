"""Views of plain conversations: a message per line, or a list of messages in each record or document."""

from __future__ import annotations

from ctxctl.formats.base import Json
from ctxctl.formats.openai_chat import messages_of
from ctxctl.validity.findings import Counts
from ctxctl.validity.parts import CALL, RESULT, parts_of, role_of
from ctxctl.validity.view import ANTHROPIC, CHAT, Message, Rules, View


class Conversations:
    """Collects the messages of records that hold conversations. per_line: each record is one message;
    outputs: behind the first answer the user's messages are what commands printed, which may be nothing."""

    def __init__(self, rules: Rules, counts: Counts, *, per_line: bool = False, outputs: bool = False) -> None:
        self._rules = rules
        self._counts = counts
        self._per_line = per_line
        self._outputs = outputs
        self._views: list[View] = [View(rules)] if per_line else []

    def add(self, record: Json, line: int) -> None:
        """Take a record."""
        if self._per_line:
            if isinstance(record, dict):
                self._message(self._views[0], record, line, None, fixed=False)
            return
        messages = messages_of(record)
        if messages is None:
            return
        view = View(self._rules)
        self._views.append(view)
        editable = messages_list(record)
        for number, message in enumerate(messages, 1):
            if isinstance(message, dict):
                fixed = editable is None or number > len(editable)
                self._message(view, message, line, number, fixed=fixed)

    def _message(self, view: View, message: dict[str, Json], line: int, number: int | None, *, fixed: bool) -> None:
        if message.get("role") == "exit":
            return  # how a run ended; never sent
        if self._per_line and "role" not in message:
            return  # a note between the messages
        parts = parts_of(message)
        for part in parts:
            self._counts.calls += part.kind == CALL
            self._counts.results += part.kind == RESULT
        role = role_of(message, parts)
        if self._outputs and role == "user" and any(m.role == "assistant" for m in view.messages[:4]):
            parts = [part._replace(blank=False) for part in parts]
        view.messages.append(Message(line, number, role, parts, fixed=fixed))

    def views(self) -> list[View]:
        """One per conversation."""
        return self._views


def messages_list(record: Json) -> list[Json] | None:
    """The list within a record that its messages stand in, as it stands there; None when there is none."""
    if isinstance(record, list):
        return record
    for holder in (record, record.get("body"), record.get("input"), record.get("request")):
        if isinstance(holder, dict) and isinstance(holder.get("messages"), list):
            found: list[Json] = holder["messages"]
            return found
    return None


def conversations_for(format_name: str, counts: Counts) -> Conversations:
    """The collector for a format of plain conversations."""
    if format_name == "anthropic-messages":
        return Conversations(ANTHROPIC, counts)
    return Conversations(
        CHAT, counts, per_line=format_name == "openai-chat-message", outputs=format_name == "mini-swe-agent"
    )
