"""Response items (OpenAI Responses API, Codex rollouts) as pieces.

Source: openai/codex `codex-rs/protocol/src/models.rs` and openai-python `types/responses/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import orjson

from ctxctl.formats.base import Json, part_text, word
from ctxctl.formats.content import Piece, call_text, target_of
from ctxctl.formats.media import media_of
from ctxctl.model.block import Media
from ctxctl.model.text import is_summary

EXIT_CODE = re.compile(r'(?:"exit_code"\s*:\s*|^Exit code: |^Process exited with code )(-?\d+)', re.M)

# Context that the client puts into user and developer messages; not typed by the human.
INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<skills_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<user_shell_command>",
)
OWN_SUMMARY = "Another language model started to solve this problem"
"""How Codex begins its own summaries (`core/templates/compact/summary_prefix.md`)."""
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"))
OUTPUTS = frozenset(
    ("function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output")
)
DIGEST = 6
"""Bytes of the digest of a message."""
ITEMS = CALLS | OUTPUTS | {"message", "agent_message", "reasoning", "compaction", "compaction_summary"}


def item_pieces(item: dict[str, Json]) -> Iterator[Piece]:
    """The pieces of one response item. Encrypted content has no text that could be counted."""
    type_ = type_of(item)
    if type_ in ("message", "agent_message"):
        yield from _message(item)
    elif type_ == "reasoning":
        lists = [item[key] for key in ("summary", "content") if isinstance(item.get(key), list)]
        parts = [p for found in lists for p in found if isinstance(p, dict)]
        texts = [p["text"] for p in parts if isinstance(p.get("text"), str)]
        yield Piece("thinking", "\n".join(texts))
    elif type_ in OUTPUTS:
        yield from _output(item)
    elif type_ in ("compaction", "compaction_summary", "context_compaction"):
        yield Piece("summary", item["message"] if isinstance(item.get("message"), str) else "")
    elif isinstance(type_, str) and type_.endswith("_call"):
        yield _call(item, type_)


def type_of(item: dict[str, Json]) -> str | None:
    """The type of an item; one without is a message when it has a role."""
    return word(item, "type") or ("message" if "role" in item else None)


def is_injected(item: dict[str, Json]) -> bool:
    """Whether a user message was written by the client and not by the human."""
    text = next((p.text for p in _message(item) if p.text), "")
    return text.lstrip().startswith(INJECTED)


def _message(item: dict[str, Json]) -> Iterator[Piece]:
    role = item.get("role")
    kind = {"assistant": "assistant", "developer": "system", "system": "system"}.get(str(role), "user_message")
    if item.get("type") == "agent_message":
        kind = "assistant"
    content = item.get("content", item.get("message"))
    for part in [content] if isinstance(content, str) else (content if isinstance(content, list) else []):
        if isinstance(part, str):
            text = part
        elif isinstance(part, dict):
            if word(part, "type") in ("input_image", "image"):
                yield _image(part)
                continue
            said = part.get("text", part.get("refusal"))
            text = said if isinstance(said, str) else part_text(part)
        else:
            continue
        own = kind
        if kind == "user_message":
            if text.lstrip().startswith(INJECTED):
                own = "memory_injection"
            elif is_summary(text) or text.startswith(OWN_SUMMARY):
                own = "summary"
        yield Piece(own, text)


def _call(item: dict[str, Json], type_: str) -> Piece:
    name = item.get("name")
    name = name if isinstance(name, str) and name else type_.removesuffix("_call")
    arguments = next((item[k] for k in ("arguments", "input", "action") if item.get(k) is not None), "")
    parsed = arguments
    if isinstance(arguments, str):
        try:
            parsed = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            parsed = {"command": arguments}
    call_id = item.get("call_id", item.get("id"))
    return Piece(
        "tool_call",
        call_text(name, arguments),
        name,
        call_id if isinstance(call_id, str) else None,
        target=target_of(parsed),
    )


def _output(item: dict[str, Json]) -> Iterator[Piece]:
    call_id = item.get("call_id")
    call_id = call_id if isinstance(call_id, str) else None
    output = item.get("output", item.get("tools"))
    if isinstance(output, list):
        texts = [p["text"] for p in output if isinstance(p, dict) and isinstance(p.get("text"), str)]
        images = [_image(p)._replace(call_id=call_id) for p in output if isinstance(p, dict) and "image_url" in p]
    else:
        texts, images = [output if isinstance(output, str) else part_text(output)], []
    text = "\n".join(texts)
    # the old shell tool puts the status behind the output, newer ones in front of it
    status = EXIT_CODE.search(text[:200]) or EXIT_CODE.search(text[-200:])
    failed = (status is not None and status.group(1) != "0") or item.get("success") is False
    yield Piece("tool_result", text, None, call_id, failed)
    yield from images


def _image(part: dict[str, Json]) -> Piece:
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and url.startswith("data:"):
        return Piece("image", "", media=media_of(url, None))
    return Piece("image", "", media=Media())


def said(role: str | None, parts: Sequence[Piece]) -> bytes:
    """What tells whether two messages are the same: who says what, and how many pictures come with it."""
    head = f"{role} {sum(p.media is not None for p in parts)} "
    text = "".join([head, *(p.text for p in parts)])
    return blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST).digest()
