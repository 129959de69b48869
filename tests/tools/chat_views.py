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

NOT_TYPED = (
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "<teammate-message>",
    "[Request interrupted by user",
    "Stop hook feedback:",
    "Caveat: The messages below",
)
"""How texts of a user record begin that no human typed (Claude Code)."""
NOTE = re.compile(r"\s*<(system-reminder|ide_opened_file|ide_selection)>.*?</\1>\s*", re.S)
CLIENT = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<permissions", "<turn_aborted>", "<subagent_")
"""The same of Codex."""
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
    if format_ == "claude-code":
        return claude(data)
    if format_ == "codex":
        return codex(data)
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
            messages.append(Message("system", [_block(b, 0) for b in blocks], 0))
        for n, item in enumerate(value["messages"], 1):
            message = _anthropic(item["role"], item["content"], n, str(n) if item["role"] == "assistant" else None)
            for part in message.parts:
                part.typed = message.role == "user" and part.kind == "text" and not part.text.startswith(SUMMARY)
            message.made = message.role == "user" and any(p.text.startswith(SUMMARY) for p in message.parts)
            messages.append(message)
        return View(merged(messages), problems, first_typed=_first(messages))
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
    found.first_typed = _first(found.messages)
    return found


def _first(messages: list[Message]) -> list[str]:
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
            parts.append(Part("result", _text(content), where, item.get("tool_call_id"), canonical(item)))
            if messages and messages[-1].role == "tool":
                messages[-1].parts += parts
                continue
        else:
            if isinstance(item.get("reasoning_content"), str) and item["reasoning_content"]:
                parts.append(Part("thinking", item["reasoning_content"], where, key=item["reasoning_content"]))
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            parts += [_block(b, where) for b in blocks]
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
    return View(messages, problems, first_typed=_first(messages))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(b.get("text", "")) if isinstance(b, dict) else str(b) for b in content)
    return "" if content is None else canonical(content)


def _block(block: Any, where: int) -> Part:
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
        return Part("result", whole(_text(block.get("content"))), where, block.get("tool_use_id"), canonical(block))
    return Part("media", "", where, key=canonical(block))


def _anthropic(role: str, content: Any, where: int, id_: str | None) -> Message:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    message = Message(role, [_block(b, where) for b in blocks], where, id_)
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


def _is_side(record: dict[str, Any]) -> bool:
    return record.get("isSidechain") is True


def _typed_text(text: str) -> bool:
    """Whether a human typed it: what is left behind the notes of the editor."""
    at = 0
    while (match := NOTE.match(text, at)) is not None:
        at = match.end()
    rest = text[at:].lstrip()
    return bool(rest) and not rest.startswith((*NOT_TYPED, SUMMARY))


def claude(data: bytes) -> View:
    """formats.md 2: behind the newest boundary, what it preserved behind its summary, branches of rewinds left out."""
    problems: list[str] = []
    records = list(lines_of(data, problems))
    own_file = not any(r.get("type") in ("user", "assistant") and not _is_side(r) for _, r in records)
    tree = [(n, r) for n, r in records if isinstance(r.get("uuid"), str)]
    uuids = [r["uuid"] for _, r in tree]
    known = set(uuids)
    dangling = {r["parentUuid"] for _, r in tree if r.get("parentUuid") and r["parentUuid"] not in known}
    if len(known) < len(uuids):
        problems.append("V10 uuid used twice")
    seen: set[str] = set()
    for n, record in tree:
        parent = record.get("parentUuid")
        if parent in known and parent not in seen:
            problems.append(f"V10 line {n}: its parent comes later")
        seen.add(record["uuid"])
    main = [(n, r) for n, r in records if (own_file or not _is_side(r)) and _in_tree(r)]
    main = _without_rewinds(main, [r for _, r in records if r.get("type") == "last-prompt"])
    cut = max((i for i, (_, r) in enumerate(main) if r.get("subtype") == "compact_boundary"), default=-1)
    whole_session = [m for m in (_claude_message(n, r) for n, r in main) if m is not None]
    live = _preserved(main, cut) if cut >= 0 else main
    cleared = {
        id_
        for _, r in live
        if r.get("subtype") == "microcompact_boundary"
        for id_ in (r.get("microcompactMetadata") or {}).get("compactedToolIds", ())
    }
    messages: list[Message] = []
    open_: dict[str, Message] = {}
    for n, record in live:
        message = _claude_message(n, record)
        if message is None:
            continue
        for part in message.parts:
            if part.kind == "result" and part.id in cleared:
                part.text = ""
        if message.role == "assistant" and message.id in open_:
            there = open_[message.id]
            there.parts += [p for p in message.parts if p.key not in {q.key for q in there.parts}]
            continue
        messages.append(message)
        if message.role == "assistant" and message.id is not None:
            open_[message.id] = message
    return View(merged(messages), problems, dangling, _first(whole_session))


def _in_tree(record: dict[str, Any]) -> bool:
    return record.get("type") in ("user", "assistant", "attachment", "system", "progress")


def _claude_message(n: int, record: dict[str, Any]) -> Message | None:
    """The message of a record, None for one that is not sent."""
    type_ = record.get("type")
    if type_ == "attachment":
        attachment = record.get("attachment") or {}
        texts = [attachment.get(k) for k in ("prompt", "content", "text") if attachment.get(k)]
        if not texts:
            return None
        text = texts[0] if isinstance(texts[0], str) else canonical(texts[0])
        return Message("user", [Part("text", text, n, key=canonical(text))], n)
    message = record.get("message")
    if type_ not in ("user", "assistant") or not isinstance(message, dict) or "content" not in message:
        return None
    if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
        return None
    id_ = message.get("id") or record.get("uuid") if type_ == "assistant" else None
    found = _anthropic(type_, message["content"], n, id_)
    found.made = record.get("isCompactSummary") is True
    results = any(p.kind == "result" for p in found.parts)
    if type_ == "user" and not (found.made or results or record.get("isMeta") is True):
        for part in found.parts:
            part.typed = part.kind == "text" and _typed_text(part.text)
    return found


Record = tuple[int, dict[str, Any]]


def _preserved(main: list[Record], cut: int) -> list[Record]:
    """Records of the window: the summary, what the boundary preserved, and the rest."""
    metadata = main[cut][1].get("compactMetadata") or {}
    before, behind = main[:cut], main[cut + 1 :]
    at = {r.get("uuid"): i for i, (_, r) in enumerate(before)}
    kept: list[Record] = []
    segment, named = metadata.get("preservedSegment"), metadata.get("preservedMessages")
    if isinstance(named, dict):
        kept = [before[at[u]] for u in named.get("uuids", ()) if u in at]
    elif isinstance(segment, dict) and segment.get("headUuid") in at and segment.get("tailUuid") in at:
        kept = before[at[segment["headUuid"]] : at[segment["tailUuid"]] + 1]
    again = {r.get("uuid") for _, r in behind}
    kept = [(n, r) for n, r in kept if r.get("uuid") not in again]
    head = 1 if behind and behind[0][1].get("isCompactSummary") else 0
    return behind[:head] + kept + behind[head:]


def _without_rewinds(main: list[Record], prompts: list[dict[str, Any]]) -> list[Record]:
    """Without the branches that a rewind left: where two prompts hang on one record, the one towards the leaf stays."""
    by_uuid = {r["uuid"]: r for _, r in main if isinstance(r.get("uuid"), str)}
    leaf = next((p["leafUuid"] for p in reversed(prompts) if p.get("leafUuid") in by_uuid), None)
    newest = next((r["uuid"] for _, r in reversed(main) if isinstance(r.get("uuid"), str)), None)
    path: set[str] = set()
    for start in (newest, leaf):
        while start in by_uuid and start not in path:
            path.add(start)
            start = by_uuid[start].get("parentUuid")
    prompts_of: dict[str, list[str]] = {}
    for n, record in main:
        parent, uuid = record.get("parentUuid"), record.get("uuid")
        message = _claude_message(n, record) if record.get("type") == "user" else None
        if isinstance(parent, str) and isinstance(uuid, str) and message and any(p.typed for p in message.parts):
            prompts_of.setdefault(parent, []).append(uuid)
    gone: set[str] = set()
    for children in prompts_of.values():
        times = {by_uuid[c].get("timestamp") for c in children}
        if len(children) > 1 and len(times) > 1 and any(c in path for c in children):
            gone.update(c for c in children if c not in path)
    if not gone:
        return main
    kept: list[Record] = []
    for n, record in main:
        if record.get("uuid") in gone or record.get("parentUuid") in gone:
            gone.add(record.get("uuid") or "")
        else:
            kept.append((n, record))
    return kept


ANSWERS = {
    "reasoning": "thinking",
    "function_call": "call",
    "custom_tool_call": "call",
    "local_shell_call": "call",
    "web_search_call": "text",
}


def codex(data: bytes) -> View:
    """formats.md 3: the newest replacement history and the items behind it, less rollbacks."""
    problems: list[str] = []
    records = list(lines_of(data, problems))
    told = {
        r["payload"].get("message")
        for _, r in records
        if r.get("type") == "event_msg" and isinstance(r.get("payload"), dict) and r["payload"].get("type") == "user_message"
    }
    items: list[Message] = []
    first: list[str] = []
    for n, record in records:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        if record.get("type") == "compacted" and isinstance(payload.get("replacement_history"), list):
            items = [m for p in payload["replacement_history"] if (m := _codex_item(p, n, told)) is not None]
        elif record.get("type") == "event_msg" and payload.get("type") == "thread_rolled_back":
            for _ in range(int(payload.get("num_turns") or 0)):
                last = max((i for i, m in enumerate(items) if any(p.typed for p in m.parts)), default=0)
                del items[last:]
        elif record.get("type") == "response_item" and (message := _codex_item(payload, n, told)) is not None:
            items.append(message)
            first = first or [p.text for p in message.parts if p.typed]
    found: list[Message] = []
    for message in items:
        if found and found[-1].role == message.role and message.role in ("assistant", "tool"):
            found[-1].parts = found[-1].parts + message.parts
        else:
            found.append(message)
    return View(found, problems, first_typed=first or _first(found))


def _codex_item(payload: dict[str, Any], n: int, told: set[Any]) -> Message | None:
    type_ = payload.get("type") or ("message" if "role" in payload else None)
    if type_ == "message":
        role = {"developer": "system"}.get(payload["role"], payload["role"])
        content = payload.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        message = Message(role, [_block(b, n) for b in blocks], n, str(n))
        message.made = role == "user" and any(p.text.startswith(SUMMARY) for p in message.parts)
        for part in message.parts:
            own = part.text in told if told else not part.text.lstrip().startswith(CLIENT)
            part.typed = role == "user" and part.kind == "text" and own and not message.made
        return message
    if type_ in ANSWERS:
        text = " ".join(str(payload[k]) for k in ("name", "arguments", "input", "action") if k in payload)
        return Message("assistant", [Part(ANSWERS[type_], text or type_, n, payload.get("call_id"), canonical(payload))], n)
    if type_ in ("function_call_output", "custom_tool_call_output"):
        part = Part("result", _text(payload.get("output")), n, payload.get("call_id"), canonical(payload))
        return Message("tool", [part], n)
    return None
