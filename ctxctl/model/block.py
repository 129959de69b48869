"""A block: one content block of a message, the unit that is counted."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = (
    "system",
    "tool_definitions",
    "user_message",
    "assistant",
    "thinking",
    "tool_call",
    "tool_result",
    "memory_injection",
    "summary",
    "image",
    "document",
)
"""Every kind a block can have, in the order in which reports list them."""

MAIN = "main"
"""Name of the main thread; every other thread is a sub-agent's id."""

UNNAMED = "sidechain-"
"""How the names of threads start that a transcript gives no id."""


@dataclass(frozen=True, slots=True)
class Media:
    """What is known of an image or document without reading its pixels.

    width, height: pixels. pages: of a document. size: decoded bytes. mime: as stated in the transcript.
    """

    mime: str | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a block comes from. line: 1-based line of a JSONL file, or 1-based message of a JSON document;
    index: 0-based content block of that record."""

    line: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """One content block.

    id: unique in its transcript, `line.index`. kind: one of KINDS. role: as sent to the model. text: what the model
    reads, empty for media. turn: 1-based model call of its thread that sees the block first, or that produced it.
    exchange: 1-based user prompt that it belongs to. tool_name, call_id: of calls and their results. response_id: of
    what the model wrote. target: what a call acts on (path, command, pattern), shortened. thread: `main` or the id of
    a sub-agent. message: ordinal of the message that holds it, blocks of one message share it.
    """

    id: str
    kind: str
    role: str
    text: str
    turn: int
    exchange: int
    source: Source
    tool_name: str | None = None
    call_id: str | None = None
    response_id: str | None = None
    is_error: bool = False
    media: Media | None = None
    timestamp: str | None = None
    thread: str = MAIN
    pinned: bool = False
    target: str | None = None
    message: int = 0
