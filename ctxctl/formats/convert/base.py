"""What a target of a conversion is, and what its writers share."""

from __future__ import annotations

import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

import orjson

from ctxctl.formats.base import Json, dumps
from ctxctl.formats.message import Call, Chat, Losses, Medium, Message, Result, Text, Thinking
from ctxctl.model.text import is_summary
from ctxctl.registry import Registry

TARGETS: Registry[type[Target]] = Registry("format to write", "ctxctl.formats.convert", "ctxctl.targets")

SIGNATURES = "signatures of thinking"
ENCRYPTED = "encrypted reasoning"
USAGE = "usage of model calls"
TIMES = "time stamps"
TOOLS = "tool definitions"
INJECTED = "marks of what the client put in"
SUMMARIES = "marks of summaries"
FREE_TEXT = "arguments that are no JSON object: wrapped as `input`"
NAMES = "tool names with signs that the provider refuses: replaced by _"

_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64
"""Characters of a tool's name at most (OpenAI; Anthropic takes 128)."""


@dataclass(frozen=True, slots=True)
class Scene:
    """session: id of the session that is written. now: ISO 8601 time for what states none. cwd: working folder where
    the transcript states none."""

    session: str
    now: str
    cwd: str = ""


class Target(ABC):
    """One format that is written. several: whether a file can hold more than one conversation."""

    name: ClassVar[str]
    several: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def write(cls, chats: Sequence[Chat], scene: Scene, losses: Losses) -> Iterator[bytes]:
        """The bytes of the file, line by line; what it can't carry is added to `losses`."""


def object_of(arguments: str, losses: Losses) -> dict[str, Json]:
    """The arguments of a call as the JSON object that providers demand."""
    if not arguments.strip():
        return {}
    value = parsed(arguments)
    if isinstance(value, dict):
        return value
    losses.add(FREE_TEXT)
    return {"input": arguments}


def parsed(text: str) -> Json:
    """The JSON value of a text, None when it is none."""
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def name_of(call: Call, losses: Losses) -> str:
    """The name of a call's tool as providers take it."""
    name = _NOT_A_NAME.sub("_", call.name)[:LONGEST_NAME] or "unknown"
    if name != call.name:
        losses.add(NAMES)
    return name


def line(value: Json) -> bytes:
    """One JSON line."""
    return dumps(value) + b"\n"


def data_url(medium: Medium, mime: str) -> str | None:
    """The address of a medium: its own, or one that holds the data."""
    if medium.data is not None:
        return f"data:{medium.mime or mime};base64,{medium.data}"
    return medium.url


def omitted(medium: Medium, losses: Losses, where: str = "") -> str:
    """The text in place of a medium that the format can't carry."""
    losses.add(f"{medium.kind}s{where}")
    return f"[{medium.kind} omitted]"


def uncarried(
    chat: Chat,
    losses: Losses,
    *,
    usage: bool = False,
    times: bool = False,
    injected: bool = False,
    summaries: bool = False,
    tools: bool = False,
) -> None:
    """Note what the whole of a chat loses. Arguments name what the format does carry."""
    if not usage:
        losses.add(USAGE, sum(1 for m in chat.messages if m.usage is not None and m.usage.reported))
    if not times:
        losses.add(TIMES, sum(1 for m in chat.messages if m.timestamp is not None))
    texts = [p for m in chat.messages for p in m.parts if isinstance(p, Text)]
    if not injected:
        losses.add(INJECTED, sum(1 for p in texts if p.kind == "memory_injection"))
    if not summaries:
        losses.add(SUMMARIES, sum(1 for p in texts if p.kind == "summary" and not is_summary(p.text)))
    if not tools and chat.tools:
        losses.add(TOOLS, len(chat.tools))


def thinking_lost(message: Message, losses: Losses) -> None:
    """Note signatures and encrypted reasoning of a message whose format has no place for them."""
    for part in message.parts:
        if isinstance(part, Thinking):
            losses.add(SIGNATURES, int(part.signature is not None or part.redacted is not None))
            losses.add(ENCRYPTED, int(part.encrypted is not None))


class Ids:
    """Version 4 uuids that follow from a name: the same input gives the same file."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def __call__(self) -> str:
        """The next one."""
        self._count += 1
        digest = hashlib.sha256(f"{self._seed}\n{self._count}".encode("utf-8", "surrogatepass")).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))


class Clock:
    """Time stamps for records in their order: the recorded one, else a millisecond after the one before."""

    def __init__(self, now: str) -> None:
        self._last = now

    def __call__(self, recorded: str | None) -> str:
        """The time stamp of the next record."""
        if recorded is not None:
            self._last = recorded
            return recorded
        try:
            later = datetime.fromisoformat(self._last) + timedelta(milliseconds=1)
        except ValueError:
            return self._last
        self._last = later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self._last


def tools_for(tools: list[Any] | None, shape: str) -> list[dict[str, Any]]:
    """Tool definitions in the shape of `anthropic` or `openai`; what is of neither shape stays as it is."""
    found = []
    for tool in tools or []:
        if not isinstance(tool, dict):
            continue
        body = tool.get("function")
        if shape == "anthropic" and isinstance(body, dict):
            schema = body.get("parameters") or {"type": "object", "properties": {}}
            tool = {"name": body.get("name"), "description": body.get("description") or "", "input_schema": schema}
        elif shape == "openai" and "input_schema" in tool:
            described = {"description": tool["description"]} if tool.get("description") else {}
            body = {"name": tool.get("name"), **described, "parameters": tool["input_schema"]}
            tool = {"type": "function", "function": body}
        found.append(tool)
    return found


def results_of(message: Message) -> list[Result]:
    """The results that a message holds; those of a conversion stand in messages of their own."""
    return [part for part in message.parts if isinstance(part, Result)]
