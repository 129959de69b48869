"""The view of a Claude Code session: the messages of its live branch behind the last boundary, as its reader tells."""

from __future__ import annotations

from ctxctl.formats.base import Json, word
from ctxctl.model.transcript import Transcript
from ctxctl.validity.findings import Counts
from ctxctl.validity.parts import CALL, RESULT, Part, parts_of
from ctxctl.validity.view import ANTHROPIC, Message, View


class ClaudeMessages:
    """Collects the message records of a session, line by line."""

    def __init__(self, transcript: Transcript, counts: Counts) -> None:
        self._place = {uuid: i for i, uuid in enumerate(transcript.order)}
        self._found: list[Message | None] = [None] * len(transcript.order)
        self._seen: set[str] = set()
        self._counted: set[tuple[str, str]] = set()
        self._counts = counts

    def add(self, record: dict[str, Json], line: int) -> None:
        """Take a record; those without a message are passed over."""
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            return
        parts = parts_of({"role": record["type"], **message})
        uuid = word(record, "uuid")
        if uuid is None or uuid not in self._seen:
            self._count(message, parts)
        if uuid is not None:
            self._seen.add(uuid)
        place = self._place.get(uuid if uuid is not None else f"line:{line}")
        if place is None or "content" not in message:
            return
        role: str = record["type"]
        response = word(message, "id") if role == "assistant" else None
        cut = message.get("stop_reason") == "max_tokens"
        # the newest record with a uuid is the one that counts
        self._found[place] = Message(line, None, role, parts, response or None, uuid, cut)

    def _count(self, message: dict[str, Json], parts: list[Part]) -> None:
        response = word(message, "id")
        for part in parts:
            if part.kind == CALL:
                key = (response, part.id) if response and part.id else None
                if key is None or key not in self._counted:
                    self._counts.calls += 1
                if key is not None:
                    self._counted.add(key)
            elif part.kind == RESULT:
                self._counts.results += 1

    def views(self) -> list[View]:
        """The one conversation that a session holds."""
        return [View(ANTHROPIC, [m for m in self._found if m is not None])]
