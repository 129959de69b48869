"""What an agent would send of a session file, read from the formats' description alone: no import of ctxctl.

A view is the request as a list of messages. Formats: Claude Code, Codex, chat (a conversation per line, a message per
line), Messages requests, mini-swe-agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUMMARY = "[summary]"


@dataclass
class Part:
    """A piece of a message. kind: text, thinking, call, result, media. key: equal for equal pieces; typed: a human
    wrote it; where: line or message of the file."""

    kind: str
    text: str
    where: int
    id: str | None = None
    key: str = ""
    typed: bool = False


@dataclass
class Message:
    """role: system, user, assistant, tool. id: of a response. made: a summary that a compaction wrote."""

    role: str
    parts: list[Part]
    where: int
    id: str | None = None
    made: bool = False
    first_result: bool = False


@dataclass
class View:
    """A request, and what is wrong with its file (rule V10)."""

    messages: list[Message]
    problems: list[str] = field(default_factory=list)
    dangling: set[str] = field(default_factory=set)
    clashing: set[str] = field(default_factory=set)
    first_typed: list[str] = field(default_factory=list)


def canonical(value: Any) -> str:
    """A value as text, lone surrogates as the replacement character."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return whole(text)


def whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lines_of(data: bytes, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, record) of a JSON lines file; what breaks rule V10 goes to `problems`, what is glued or damaged is read as
    far as it can be."""
    if data and not data.endswith(b"\n"):
        problems.append("V10 no LF at the end")
    decoder = json.JSONDecoder()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line and number == data.count(b"\n") + 1:
            continue
        try:
            text = line.decode("utf-8", "strict")
        except UnicodeDecodeError:
            problems.append(f"V10 line {number}: not UTF-8")
            text = line.decode("utf-8", "surrogateescape")
        if text.startswith("\ufeff") or text.endswith("\r"):
            problems.append(f"V10 line {number}: BOM or CR")
            text = text.strip("\ufeff\r")
        found = 0
        while text:
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break
            found += 1
            if isinstance(value, dict):
                yield number, value
            else:
                problems.append(f"V10 line {number}: no object")
            text = text[end:]
        if found != 1 or text:
            problems.append(f"V10 line {number}: {found} JSON values{' and a rest' if text else ''}")
        if re.search(rb"(?<!\\)(\\\\)*\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])", line, re.I):
            problems.append(f"V10 line {number}: lone surrogate")


def view(path: Path, format_: str, conversation: int | None = None) -> View:
    """The view of a file. conversation: line of the one that is meant, of several in a file."""
    data = path.read_bytes()
    if format_ in ("claude-code", "codex"):
        from agent_views import claude, codex  # which take their values from here

        return claude(data) if format_ == "claude-code" else codex(data)
    if format_ == "openai-chat":
        problems: list[str] = []
        rows = dict(lines_of(data, problems))
        chosen = rows[conversation if conversation is not None else min(rows)]
        return chat([(n, m) for n, m in enumerate(chosen["messages"], 1)], problems)
    if format_ == "openai-chat-message":
        problems = []
        return chat(list(lines_of(data, problems)), problems)
    return document(data, format_)


def document(data: bytes, format_: str) -> View:
    problems: list[str] = []
    try:
        value = json.loads(data.decode("utf-8", "strict"))
    except ValueError as error:
        return View([], [f"V10 {error}"])
    if format_ == "anthropic-messages":
        messages: list[Message] = []
        system = value.get("system")
        if system:
            blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
            messages.append(Message("system", [part_of(b, 0) for b in blocks], 0))
        for n, item in enumerate(value["messages"], 1):
            message = message_of(item["role"], item["content"], n, str(n) if item["role"] == "assistant" else None)
            for part in message.parts:
                part.typed = message.role == "user" and part.kind == "text" and not part.text.startswith(SUMMARY)
            message.made = message.role == "user" and any(p.text.startswith(SUMMARY) for p in message.parts)
            messages.append(message)
        return View(merged(messages), problems, first_typed=first_typed(messages))
    items = value if isinstance(value, list) else value["messages"]
    found = chat(list(enumerate(items, 1)), problems)
    seen_answer = False
    for message in found.messages:
        if message.role == "assistant":
            seen_answer = True
        elif message.role == "user" and not message.made and seen_answer:
            message.role = "tool"  # what the environment answered
            for part in message.parts:
                part.kind, part.typed = "result", False
    found.messages = [m for m in found.messages if m.role != "exit"]
    found.first_typed = first_typed(found.messages)
    return found


def first_typed(messages: list[Message]) -> list[str]:
    for message in messages:
        if texts := [p.text for p in message.parts if p.typed]:
            return texts
    return []


def chat(items: list[tuple[int, dict[str, Any]]], problems: list[str]) -> View:
    """Messages as OpenAI's chat takes them."""
    messages: list[Message] = []
    for where, item in items:
        role = {"developer": "system", "function": "tool"}.get(str(item.get("role")), str(item.get("role")))
        parts: list[Part] = []
        content = item.get("content")
        if role == "tool":
            parts.append(Part("result", joined(content), where, item.get("tool_call_id"), canonical(item)))
            if messages and messages[-1].role == "tool":
                messages[-1].parts += parts
                continue
        else:
            if isinstance(item.get("reasoning_content"), str) and item["reasoning_content"]:
                parts.append(Part("thinking", item["reasoning_content"], where, key=item["reasoning_content"]))
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            parts += [part_of(b, where) for b in blocks]
            calls = item.get("tool_calls") or []
            for call in calls:
                text = f"{call['function'].get('name')} {call['function'].get('arguments')}"
                parts.append(Part("call", text, where, call.get("id"), canonical(call)))
            if content == "" and calls:
                parts = [p for p in parts if p.kind != "text" or p.text]
        made = role == "user" and any(p.text.startswith(SUMMARY) for p in parts)
        for part in parts:
            part.typed = role == "user" and part.kind == "text" and not made
        messages.append(Message(role, parts, where, str(where) if role == "assistant" else None, made))
    return View(messages, problems, first_typed=first_typed(messages))


def joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(joined(b.get("text", "")) if isinstance(b, dict) else str(b) for b in content)
    return "" if content is None else canonical(content)


def part_of(block: Any, where: int) -> Part:
    """A content block of the Messages API, or one alike."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    type_ = block.get("type")
    if type_ in ("text", "input_text", "output_text"):
        return Part("text", whole(str(block.get("text") or "")), where, key=canonical(block.get("text")))
    if type_ in ("thinking", "redacted_thinking"):
        return Part("thinking", str(block.get("thinking", "")), where, key=canonical(block))
    if type_ == "tool_use":
        text = f"{block.get('name')} {json.dumps(block.get('input'))}"
        return Part("call", text, where, block.get("id"), canonical(block))
    if type_ == "tool_result":
        return Part("result", whole(joined(block.get("content"))), where, block.get("tool_use_id"), canonical(block))
    return Part("media", "", where, key=canonical(block))


def message_of(role: str, content: Any, where: int, id_: str | None) -> Message:
    nothing = [{"type": "text", "text": ""}]  # a record without content is as wrong as a blank text
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or nothing
    message = Message(role, [part_of(b, where) for b in blocks], where, id_)
    kinds = [p.kind for p in message.parts]
    message.first_result = "result" in kinds and kinds[0] != "result"
    return message


def merged(messages: list[Message]) -> list[Message]:
    """Messages of one role in a row are one, as the Messages API takes them. The parts know where they stood."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role and message.role != "system":
            last = found[-1]
            last.parts = last.parts + message.parts
            last.made = last.made or message.made
            last.id = message.id if message.id is not None else last.id
        else:
            found.append(Message(**vars(message)))
    return found
