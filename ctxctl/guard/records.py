"""The texts that tools wrote, within the raw records of a transcript, for rewriting them where they stand."""

from __future__ import annotations

from collections.abc import Callable

from ctxctl.formats.base import Json, word
from ctxctl.formats.codex_items import OUTPUTS

Change = Callable[[str], str]

COPIES = frozenset(("toolUseResult", "raw_output"))
"""Keys under which a client keeps a second copy of what a tool returned."""

EVENTS = frozenset(("exec_command_end", "mcp_tool_call_end", "patch_apply_end"))
"""Events of Codex that repeat the output of a call; of these the fields below."""
EVENT_FIELDS = ("stdout", "stderr", "aggregated_output", "formatted_output", "result")

AS_IT_IS = frozenset(
    (
        "id",
        "tool_use_id",
        "call_id",
        "tool_call_id",
        "type",
        "uuid",
        "source",
        "image_url",
        "signature",
        "encrypted_content",
    )
)
"""Keys whose values are no text: ids, and media as base64."""


def rewrite_results(record: Json, change: Change, *, prompts_are_results: bool = False) -> Json:
    """A record with `change` applied to each text of a tool's output in it, the very same object when no text changed.

    prompts_are_results: mini-swe-agent, where what commands print comes back in the user's role once the model has
    answered.
    """
    if isinstance(record, list):
        return _messages(record, change, prompts_are_results)
    return _object(record, change, prompts_are_results) if isinstance(record, dict) else record


def _object(value: dict[str, Json], change: Change, prompts: bool) -> dict[str, Json]:
    type_ = word(value, "type") or ""
    out: dict[str, Json] = {}
    same = True
    for key, item in value.items():
        new = item
        if key in COPIES or _is_result(value, type_, key):
            new = _texts(item, change)
        elif key == "messages" and isinstance(item, list):
            new = _messages(item, change, prompts)
        elif isinstance(item, dict):
            new = _object(item, change, prompts)
        elif isinstance(item, list):
            new = _list(item, change, prompts)
        out[key] = new
        same = same and new is item
    return value if same else out


def _is_result(value: dict[str, Json], type_: str, key: str) -> bool:
    if type_ == "tool_result" or type_.endswith("_tool_result"):
        return key == "content"
    if type_ in OUTPUTS:
        return key in ("output", "tools")
    if type_ in EVENTS:
        return key in EVENT_FIELDS
    return key == "content" and word(value, "role") in ("tool", "function")


def _messages(items: list[Json], change: Change, prompts: bool) -> list[Json]:
    if not prompts:
        return _list(items, change, prompts)
    out: list[Json] = []
    answered = False
    for item in items:
        new = item
        if isinstance(item, dict):
            new = _object(item, change, prompts)
            if answered and new.get("role") == "user":
                content = _texts(new.get("content"), change)
                new = new if content is new.get("content") else {**new, "content": content}
            answered = answered or item.get("role") == "assistant"
        out.append(new)
    return out if any(a is not b for a, b in zip(items, out, strict=True)) else items


def _list(items: list[Json], change: Change, prompts: bool) -> list[Json]:
    out = [rewrite_results(item, change, prompts_are_results=prompts) for item in items]
    return out if any(a is not b for a, b in zip(items, out, strict=True)) else items


def _texts(value: Json, change: Change) -> Json:
    """A value with every string in it changed, but for those that are no text."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        items = [_texts(item, change) for item in value]
        return items if any(a is not b for a, b in zip(value, items, strict=True)) else value
    if isinstance(value, dict):
        fields = {key: item if key in AS_IT_IS else _texts(item, change) for key, item in value.items()}
        return fields if any(value[key] is not item for key, item in fields.items()) else value
    return value
