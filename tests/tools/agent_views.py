"""The views (see chat_views) of the session files of agents: Claude Code and Codex."""

from __future__ import annotations

import re
from typing import Any

from chat_views import (
    SUMMARY,
    Message,
    Part,
    View,
    canonical,
    first_typed,
    joined,
    lines_of,
    merged,
    message_of,
    part_of,
)

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


def _is_side(record: dict[str, Any]) -> bool:
    return record.get("isSidechain") is True


def is_typed(text: str) -> bool:
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
    first: dict[str, str] = {}
    clashing: set[str] = set()
    for _, record in tree:  # a record that an agent writes again behind a compaction keeps its id
        if first.setdefault(record["uuid"], canonical(record.get("message"))) != canonical(record.get("message")):
            clashing.add(record["uuid"])
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
    return View(merged(messages), problems, dangling, clashing, first_typed(whole_session))


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
        if attachment.get("type") == "queued_command":
            return _queued(n, record, attachment)
        text = texts[0] if isinstance(texts[0], str) else canonical(texts[0])
        return Message("user", [Part("text", text, n, key=canonical(text))], n)
    message = record.get("message")
    if type_ not in ("user", "assistant") or not isinstance(message, dict) or "content" not in message:
        return None
    if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
        return None
    id_ = message.get("id") or record.get("uuid") if type_ == "assistant" else None
    found = message_of(type_, message["content"], n, id_)
    found.made = record.get("isCompactSummary") is True
    results = any(p.kind == "result" for p in found.parts)
    if type_ == "user" and not (found.made or results or record.get("isMeta") is True):
        for part in found.parts:
            part.typed = part.kind == "text" and is_typed(part.text)
    return found


def _queued(n: int, record: dict[str, Any], attachment: dict[str, Any]) -> Message | None:
    """What came in while the agent was at work: typed, or told by a task, another session, or the client."""
    if not attachment.get("prompt"):
        return None
    found = message_of("user", attachment["prompt"], n, None)
    by_client = record.get("isMeta") is True or attachment.get("isMeta") is True
    own = (attachment.get("origin") or {}).get("kind", "human") == "human" and not by_client
    for part in found.parts:
        part.typed = part.kind == "text" and own and attachment.get("commandMode") == "prompt" and is_typed(part.text)
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
    events = [r["payload"] for _, r in records if r.get("type") == "event_msg" and isinstance(r.get("payload"), dict)]
    told = {event.get("message") for event in events if event.get("type") == "user_message"}
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
    return View(found, problems, first_typed=first or first_typed(found))


def _codex_item(payload: dict[str, Any], n: int, told: set[Any]) -> Message | None:
    type_ = payload.get("type") or ("message" if "role" in payload else None)
    if type_ == "message":
        role = {"developer": "system"}.get(payload["role"], payload["role"])
        content = payload.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        message = Message(role, [part_of(b, n) for b in blocks], n, str(n))
        message.made = role == "user" and any(p.text.startswith(SUMMARY) for p in message.parts)
        for part in message.parts:
            own = part.text in told if told else not part.text.lstrip().startswith(CLIENT)
            part.typed = role == "user" and part.kind == "text" and own and not message.made
        return message
    if type_ in ANSWERS:
        text = " ".join(str(payload[k]) for k in ("name", "arguments", "input", "action") if k in payload)
        part = Part(ANSWERS[type_], text or type_, n, payload.get("call_id"), canonical(payload))
        return Message("assistant", [part], n)
    if type_ in ("function_call_output", "custom_tool_call_output"):
        part = Part("result", joined(payload.get("output")), n, payload.get("call_id"), canonical(payload))
        return Message("tool", [part], n)
    return None
