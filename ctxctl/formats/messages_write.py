"""Writing compacted Anthropic Messages requests: content blocks leave or get another text, all else stays as it is.

Source of what the API takes: anthropics/anthropic-sdk-python `types/` and formats.md 6: results first in the message
behind their calls, no blank text, no message without content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from ctxctl.formats.base import Json, dumps, word
from ctxctl.formats.content import pieces
from ctxctl.formats.draft import Draft
from ctxctl.formats.fates import Arranger, Fate
from ctxctl.formats.rewriting import Record, rewritten

MEDIA = ("image", "document")


def rewrite_messages(draft: Draft) -> Iterator[bytes]:
    """The bytes of a file of Messages requests after its compaction."""
    return rewritten(draft, _record)


def _record(record: Record) -> None:
    head = record.head
    body = next((h for h in (head.get("body"), head.get("request")) if isinstance(h, dict)), head)
    record.tools(body)
    before = list(record.system(list(pieces(body.get("system"), "system"))))
    if before and any(fate is not True for fate in before):
        _edit_system(body, before)
    arranger: Arranger[Json] = Arranger(record.draft, said_by_user)
    for messages in record.lists:
        kept = [new for message in messages for new in arranged(message, record, arranger)]
        if messages is record.lists[-1]:
            kept += arranger.flush()
        messages[:] = kept
    response = head.get("response")
    usage = response.get("usage") if isinstance(response, dict) else head.get("usage")
    if isinstance(usage, dict):
        record.remember(sum(map(len, record.lists)))


def arranged(message: Json, record: Record, arranger: Arranger[Json]) -> Iterator[Json]:
    """What is written for one message."""
    if not isinstance(message, dict) or "content" not in message:
        yield from arranger.add(message, "other")
        return
    role = {"assistant": "assistant", "system": "system"}.get(str(message.get("role")), "user")
    found = list(pieces(message["content"], "user_message" if role == "user" else role))
    message = record.named(message, found)
    fates = record.take([piece.kind for piece in found])
    new = edit_message(message, [piece.kind for piece in found], fates)
    yield from arranger.add(new, role, record.fates, results=new is not None and _answers(new))


def said_by_user(text: str) -> Json:
    """A message of the user's role."""
    return {"role": "user", "content": text}


def edit_message(message: dict[str, Json], kinds: Sequence[str], fates: Sequence[Fate]) -> dict[str, Json] | None:
    """A message after its pieces met their fates, itself where nothing changes; None when nothing remains that may be
    sent: reasoning without what it led to is left out too."""
    if all(fate is True for fate in fates):
        return message if fates else None
    remain = [kind for kind, fate in zip(kinds, fates, strict=True) if fate is not False]
    if not remain or (set(remain) == {"thinking"} and set(kinds) != {"thinking"}):
        return None
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": fates[0]} if isinstance(fates[0], str) else message
    return {**message, "content": edit_blocks(content, kinds[0], fates)}


def edit_blocks(content: Sequence[Json], kind: str, fates: Sequence[Fate]) -> list[Json]:
    """Content blocks after their pieces met their fates. kind: of text blocks."""
    kept: list[Json] = []
    at = 0
    for block in content:
        n = sum(1 for _ in pieces([block], kind))
        new = edit_block(block, fates[at : at + n]) if n else block
        at += n
        if new is not None:
            kept.append(new)
    return kept


def edit_block(block: Json, fates: Sequence[Fate]) -> Json | None:
    """One content block: itself, changed, or None when it leaves. A result has a fate for its text and one for each
    picture in it."""
    if all(fate is True for fate in fates):
        return block
    if isinstance(block, str):
        return fates[0] if isinstance(fates[0], str) else None
    type_ = word(block, "type") or ""
    if type_ == "tool_result" or type_.endswith("_tool_result"):
        return _edit_result(block, fates)
    fate = fates[0]
    if not isinstance(fate, str):
        return None
    if type_ in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return {**block, "input": arguments(block.get("name"), fate)}
    if type_ == "text":
        return {**block, "text": fate}
    if type_ == "compaction":
        return {**block, "content": fate}
    return {"type": "text", "text": fate}


def _edit_result(block: dict[str, Json], fates: Sequence[Fate]) -> dict[str, Json] | None:
    said, pictures = fates[0], iter(fates[1:])
    if all(fate is False for fate in fates):
        return None
    content = block.get("content")
    if not isinstance(content, list):
        single = isinstance(content, dict) and word(content, "type") in MEDIA
        if not single:
            return {**block, "content": said if isinstance(said, str) else ""}
        content = [content]
    parts: list[Json] = []
    for part in content:
        if isinstance(part, dict) and word(part, "type") in MEDIA:
            fate = next(pictures)
            if fate is not False:
                parts.append(part if fate is True else {"type": "text", "text": fate})
        elif said is True:
            parts.append(part)
    if not isinstance(said, str):
        return {**block, "content": parts}
    if not parts:
        return {**block, "content": said}
    return {**block, "content": [{"type": "text", "text": said}, *parts] if said else parts}


def arguments(name: Json, text: str) -> dict[str, Json]:
    """The arguments that a changed call has: what stands behind its name in the text."""
    rest = text.removeprefix(name).lstrip(" ") if isinstance(name, str) else text
    try:
        value = orjson.loads(rest)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        return value
    return {"note": rest} if rest else {}


def argument_text(name: Json, text: str) -> str:
    """The same as JSON text, which is left as it stands where it is an object."""
    rest = text.removeprefix(name).lstrip(" ") if isinstance(name, str) else text
    try:
        if isinstance(orjson.loads(rest), dict):
            return rest
    except orjson.JSONDecodeError:
        pass
    return dumps(arguments(name, text)).decode()


def _edit_system(body: dict[str, Json], fates: Sequence[Fate]) -> None:
    system = body.get("system")
    if isinstance(system, str):
        fate = fates[0]
        if isinstance(fate, str):
            body["system"] = fate
        else:
            del body["system"]
        return
    kept = edit_blocks(system if isinstance(system, list) else [], "system", fates)
    if kept:
        body["system"] = kept
    else:
        del body["system"]


def _answers(message: dict[str, Json]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and (word(block, "type") or "") == "tool_result" for block in content
    )
