"""Response items (Codex, Responses API) after their pieces met their fates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.formats.base import Json, word
from ctxctl.formats.codex_items import OUTPUTS, item_pieces, type_of
from ctxctl.formats.fates import Fate
from ctxctl.formats.messages_write import argument_text, arguments


def edit_item(item: dict[str, Json], fates: Sequence[Fate]) -> dict[str, Json] | None:
    """One response item, itself where nothing changes; None when nothing of it remains."""
    if all(fate is True for fate in fates):
        return item
    if all(fate is False for fate in fates):
        return None
    type_ = type_of(item) or ""
    if type_ in ("message", "agent_message"):
        return _edit_message(item, iter(fates))
    if type_ in OUTPUTS:
        return _edit_output(item, fates)
    text = str(fates[0])
    if type_ == "reasoning":
        bare = {key: value for key, value in item.items() if key != "encrypted_content"}
        return {**bare, "summary": [{"type": "summary_text", "text": text}], "content": None}
    if type_.endswith("_call"):
        return _edit_call(item, text)
    return user_item(text)


def user_item(text: str) -> dict[str, Json]:
    """A message of the user's role."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _edit_message(item: dict[str, Json], fates: Iterator[Fate]) -> dict[str, Json]:
    key = "content" if "content" in item else "message"
    content = item[key]
    if isinstance(content, str):
        fate = next(fates)
        return {**item, key: fate} if isinstance(fate, str) else item
    said = "output_text" if item.get("role") == "assistant" else "input_text"
    kept: list[Json] = []
    for part in content:
        fate = next(fates) if isinstance(part, (str, dict)) else True
        if fate is True:
            kept.append(part)
        elif isinstance(fate, str):
            textual = isinstance(part, dict) and isinstance(part.get("text"), str)
            kept.append({**part, "text": fate} if textual else {"type": said, "text": fate})
    return {**item, key: kept}


def _edit_output(item: dict[str, Json], fates: Sequence[Fate]) -> dict[str, Json]:
    said, pictures = fates[0], iter(fates[1:])
    output = item.get("output", item.get("tools"))
    if not isinstance(output, list):
        return {**item, "output": said} if isinstance(said, str) else item
    kept: list[Json] = []
    for part in output:
        if isinstance(part, dict) and "image_url" in part:
            fate = next(pictures)
            if fate is not False:
                kept.append(part if fate is True else {"type": "input_text", "text": fate})
        elif said is True:
            kept.append(part)
    if isinstance(said, str):
        first = [{"type": "input_text", "text": said}] if said else []
        return {**item, "output": [*first, *kept] if kept else said}
    return {**item, "output": kept or ""}


def _edit_call(item: dict[str, Json], text: str) -> dict[str, Json]:
    """A call with other arguments: text of an object, free text, or an action, as it had them."""
    key = next((k for k in ("arguments", "input", "action") if item.get(k) is not None), "arguments")
    old = item.get(key)
    name = next(item_pieces(item)).tool_name
    if isinstance(old, dict):
        return {**item, key: arguments(name, text)}
    if key == "input":
        return {**item, key: text.removeprefix(name or "").removeprefix(" ")}
    return {**item, key: argument_text(name, text)}


def is_reasoning(item: Json) -> bool:
    """Whether an item is reasoning, which is sent back only with what it led to."""
    return isinstance(item, dict) and word(item, "type") == "reasoning"
