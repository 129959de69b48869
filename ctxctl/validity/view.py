"""A transcript as the messages that would be sent, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxctl.validity.findings import Level
from ctxctl.validity.parts import Part


@dataclass(slots=True)
class Message:
    """One message as it stands in the file.

    line: physical, 1-based; number: 1-based within its record, None when the record is the message. response: of the
    model, several messages may share one. uuid: of its record. cut: the answer stopped at its token limit. fixed:
    it stands where a repair can't change it.
    """

    line: int
    number: int | None
    role: str
    parts: list[Part]
    response: str | None = None
    uuid: str | None = None
    cut: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What the provider of a format insists on.

    merged: neighbours of one role are sent as one message, and results stand in the user's message. late, blank,
    begins: how bad a result is that comes late, a blank text, a first message that is not the user's.
    signatures: thinking needs them.
    """

    merged: bool
    late: Level
    blank: Level
    begins: Level
    signatures: bool


ANTHROPIC = Rules(merged=True, late="error", blank="error", begins="error", signatures=True)
CHAT = Rules(merged=False, late="error", blank="warning", begins="warning", signatures=False)
ITEMS = Rules(merged=True, late="warning", blank="warning", begins="warning", signatures=False)
"""Of Responses: results are told by their ids alone, so a late one is answered, but no agent writes it that way."""


@dataclass(slots=True)
class View:
    """One conversation: messages in the order in which they are sent, and the rules that hold for them."""

    rules: Rules
    messages: list[Message] = field(default_factory=list)
