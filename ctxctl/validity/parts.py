"""The parts of one message that validity is judged by, in whatever shape an agent writes it.

Shapes: content blocks (Anthropic), `tool_calls` and tool messages (OpenAI chat), items (OpenAI Responses). Sources:
the request types of anthropic-sdk-python and openai-python.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.formats.base import Json, word

CALL, RESULT, TEXT, THINKING, OTHER = "call", "result", "text", "thinking", "other"

Place = tuple[str, int]
"""Where a part stands in its message: the field and the index in its list, -1 when the field is the part."""

SELF: Place = ("", -1)
"""The message as a whole is the part."""

TEXTS = frozenset(("text", "input_text", "output_text"))
ITEM_CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call"))
ITEM_RESULTS = frozenset(("function_call_output", "custom_tool_call_output", "local_shell_call_output"))
ASSISTANTS = frozenset(("assistant", "model"))
SYSTEMS = frozenset(("system", "developer"))
TOOLS = frozenset(("tool", "function"))


class Part(NamedTuple):
    """id: of a call or result. blank: a text with nothing in it, or a result that holds such a text. signed: of
    thinking. error: of a result. text: of thinking."""

    kind: str
    place: Place
    id: str | None = None
    blank: bool = False
    signed: bool = True
    error: bool = False
    text: str = ""


def role_of(message: dict[str, Json], parts: list[Part]) -> str:
    """system, user, assistant or tool."""
    role = word(message, "role")
    if role is None:  # an item of a response
        return "tool" if any(p.kind == RESULT for p in parts) else "assistant"
    if role in ASSISTANTS:
        return "assistant"
    return "system" if role in SYSTEMS else "tool" if role in TOOLS else "user"


def parts_of(message: dict[str, Json]) -> list[Part]:
    """The parts of a message, in the order in which they are sent."""
    role = word(message, "role")
    if role is None:
        output = message.get("output")
        if isinstance(output, list) and "type" not in message:
            return [_item(item, ("output", i)) for i, item in enumerate(output) if isinstance(item, dict)]
        return [_item(message, SELF)]
    if role in TOOLS:
        return [Part(RESULT, SELF, word(message, "tool_call_id"), error=message.get("is_error") is True)]
    found: list[Part] = []
    if any(isinstance(message.get(key), str) and message[key] for key in ("reasoning_content", "reasoning", "refusal")):
        found.append(Part(OTHER, SELF))
    content = message.get("content")
    if isinstance(content, str):
        found.append(Part(TEXT, ("content", -1), blank=not content.strip()))
    elif isinstance(content, list):
        for i, block in enumerate(content):
            place = ("content", i)
            if isinstance(block, dict):
                found.append(_block(block, place))
            elif isinstance(block, str):
                found.append(Part(TEXT, place, blank=not block.strip()))
    elif content is not None:
        found.append(Part(OTHER, ("content", -1)))
    calls = message.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(call, dict):
            found.append(Part(CALL, ("tool_calls", i), word(call, "id")))
    if isinstance(message.get("function_call"), dict):
        found.append(Part(OTHER, ("function_call", -1)))
    return found


def _block(block: dict[str, Json], place: Place) -> Part:
    type_ = block.get("type")
    if type_ in TEXTS:
        text = block.get("text")
        return Part(TEXT, place, blank=not (isinstance(text, str) and text.strip()))
    if type_ == "tool_use":
        return Part(CALL, place, word(block, "id"))
    if type_ == "tool_result":
        inner = block.get("content")
        blank = isinstance(inner, list) and any(_is_blank(part) for part in inner)
        return Part(RESULT, place, word(block, "tool_use_id"), blank, error=block.get("is_error") is True)
    if type_ == "thinking":
        text = block.get("thinking")
        return Part(THINKING, place, signed=bool(block.get("signature")), text=text if isinstance(text, str) else "")
    if type_ == "redacted_thinking":
        return Part(THINKING, place)
    return Part(OTHER, place)


def _is_blank(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not str(part.get("text") or "").strip()


def _item(item: dict[str, Json], place: Place) -> Part:
    type_ = item.get("type")
    if type_ in ITEM_CALLS:
        return Part(CALL, place, word(item, "call_id"))
    if type_ in ITEM_RESULTS:
        return Part(RESULT, place, word(item, "call_id"))
    return Part(OTHER, place)


# -- changing a message ------------------------------------------------------------------------------------------------


def without(message: dict[str, Json], places: set[Place]) -> dict[str, Json] | None:
    """A message without some of its parts; None when nothing is left that could be sent."""
    if SELF in places:
        return None
    made = dict(message)
    for field in {field for field, _ in places}:
        value = made.get(field)
        if isinstance(value, list):
            made[field] = [item for i, item in enumerate(value) if (field, i) not in places]
        elif (field, -1) in places:
            made[field] = None
    if made.get("tool_calls") == []:
        del made["tool_calls"]
    if "content" in made and not made["content"]:
        made["content"] = None
    elif "output" in made and not made["output"]:
        return None
    kept = [p for p in parts_of(made) if not (p.kind == TEXT and p.blank)]
    return made if kept else None


def renamed(message: dict[str, Json], place: Place, id_: str) -> dict[str, Json]:
    """A message with another id for one call or result."""
    field, index = place
    if place == SELF:
        return {**message, "tool_call_id" if "role" in message else "call_id": id_}
    items = list(message[field])
    block = items[index]
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block.get("type"), "id")
    if field == "output":
        key = "call_id"
    items[index] = {**block, key: id_}
    return {**message, field: items}


def block_at(message: dict[str, Json], place: Place) -> dict[str, Json]:
    """The content block at a place."""
    found: dict[str, Json] = message[place[0]][place[1]]
    return found


def without_blanks(message: dict[str, Json], place: Place) -> dict[str, Json]:
    """A message whose result at a place holds no blank text."""
    items = list(message[place[0]])
    inner = [part for part in items[place[1]]["content"] if not _is_blank(part)]
    items[place[1]] = {**items[place[1]], "content": inner}
    return {**message, place[0]: items}


def with_results(message: dict[str, Json], blocks: list[Json]) -> dict[str, Json]:
    """A user message with further tool results, behind those that it has and in front of everything else."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content.strip() else []
    items = list(content) if isinstance(content, list) else []
    results = [item for item in items if _is_result(item)]
    others = [item for item in items if not _is_result(item)]
    return {**message, "content": [*results, *blocks, *others]}


def _is_result(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"
