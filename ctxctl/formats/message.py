"""A conversation without a format: what every format can say, and what a conversion carries from one to another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ctxctl.model.usage import Usage

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Text:
    """kind: `user_message`, `assistant` or `system` for what its role says; `memory_injection` for what a client put
    in, `summary` for what stands for an earlier part."""

    text: str
    kind: str = "user_message"


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning. signature, redacted: of the Messages API, which takes thinking back only with one of them; encrypted:
    of the Responses API."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    encrypted: str | None = None


@dataclass(frozen=True, slots=True)
class Medium:
    """A picture or document: base64 data, an address, or the text of a document."""

    kind: Literal["image", "document"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    text: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. arguments: JSON text of an object as a rule; free text of some tools, and damage, stay as they
    are."""

    id: str | None
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a call gave. id None: an observation of an agent whose calls stand in its text."""

    id: str | None
    text: str
    is_error: bool = False
    media: tuple[Medium, ...] = ()
    name: str | None = None


Part = Text | Thinking | Medium | Call | Result


@dataclass(frozen=True, slots=True)
class Message:
    """usage: of the call that wrote it, where the transcript states one."""

    role: Role
    parts: tuple[Part, ...]
    timestamp: str | None = None
    usage: Usage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation as one window. tools: definitions as the transcript has them, None where it has none."""

    messages: tuple[Message, ...]
    id: str | None = None
    model: str | None = None
    cwd: str | None = None
    tools: list[Any] | None = None


@dataclass(slots=True)
class Losses:
    """What a conversion can't carry, by what it is, in the order in which it came up."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, count: int = 1) -> None:
        """Note that something is not carried, or not as it was."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
