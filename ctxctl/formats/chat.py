"""Messages of the OpenAI chat shape, and the reader that all linear conversation formats share.

Sources: the message types of openai-python `types/chat/`, and dumps in the wild (content null with tool calls,
arguments as objects, `reasoning_content`, the retired `function` role).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.formats.base import Emit, Format, Json, part_text, word
from ctxctl.formats.content import Piece, call_text, piece, target_of
from ctxctl.formats.media import media_of
from ctxctl.formats.session import Call, Session, calibration_of, tokens_of
from ctxctl.model.block import MAIN, Media
from ctxctl.model.text import is_summary
from ctxctl.model.transcript import Conversation, MessageCounts, Overflow, Transcript

KIND_OF_ROLE = {
    "system": "system",
    "developer": "system",
    "user": "user_message",
    "human": "user_message",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool_result",
    "function": "tool_result",
}
MEDIA = frozenset(("image_url", "input_image", "input_audio", "file"))
ANTHROPIC_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"))


REASONING = ("reasoning_content", "reasoning")


def chat_pieces(message: dict[str, Json], kind: str) -> Iterator[Piece]:
    """The pieces of one chat message: reasoning, content parts, then calls. `chat_write` edits them in this order."""
    for key in REASONING:
        if isinstance(message.get(key), str) and message[key]:
            yield Piece("thinking", message[key])
            break
    call_id = message.get("tool_call_id")
    call_id = call_id if isinstance(call_id, str) else None
    name = message.get("name") if kind == "tool_result" else None
    texts: list[str] = []
    media: list[Piece] = []
    for _, text, found in content_parts(message, kind, call_id):
        if text is not None:
            texts.append(text)
        media.extend(found)
    if isinstance(message.get("refusal"), str):
        texts.append(message["refusal"])
    text = "\n".join(texts)
    if text or (kind == "tool_result" and not media):
        said = "summary" if kind == "user_message" and is_summary(text) else kind
        yield Piece(said, text, name if isinstance(name, str) else None, call_id, message.get("is_error") is True)
    yield from media
    for call in tool_calls(message):
        yield _call(call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _call({"function": legacy})


def content_parts(
    message: dict[str, Json], kind: str, call_id: str | None = None
) -> Iterator[tuple[Json, str | None, list[Piece]]]:
    """The parts of a message's content: each with its share of the text, or with the pieces that it is itself."""
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield part, part, []
        elif isinstance(part, dict):
            type_ = word(part, "type")
            if type_ in MEDIA:
                yield part, None, [_media(part, call_id)]
            elif type_ in ANTHROPIC_BLOCKS:
                yield part, None, list(piece(part, kind))
            else:
                text = part.get("text", part.get("refusal"))
                yield part, text if isinstance(text, str) else part_text(part), []


def tool_calls(message: dict[str, Json]) -> list[dict[str, Json]]:
    """The calls of an assistant's message."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _call(call: dict[str, Json]) -> Piece:
    body = next((call[k] for k in ("function", "custom") if isinstance(call.get(k), dict)), call)
    name = body.get("name")
    name = name if isinstance(name, str) and name else "unknown"
    arguments = body.get("arguments", body.get("input"))
    call_id = call.get("id")
    parsed = arguments
    if isinstance(arguments, str):
        import orjson

        try:
            parsed = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            parsed = None
    text = call_text(name, arguments if arguments is not None else "")
    return Piece("tool_call", text, name, call_id if isinstance(call_id, str) else None, target=target_of(parsed))


def _media(part: dict[str, Json], call_id: str | None) -> Piece:
    value = part.get("image_url", part.get("file", part.get("input_audio")))
    url = value.get("url", value.get("file_data", value.get("data"))) if isinstance(value, dict) else value
    kind = "image" if "image" in str(part.get("type")) else "document"
    if isinstance(url, str) and url.startswith("data:"):
        return Piece(kind, "", call_id=call_id, media=media_of(url, None))
    return Piece(kind, "", call_id=call_id, media=Media())


def chat_usage(call: Call, usage: dict[str, Json], line: int, format_: Format) -> None:
    """Fill a call from an OpenAI-style usage object: prompt tokens include what the cache served."""
    diagnostics = format_.diagnostics
    prompt = tokens_of(usage.get("prompt_tokens", usage.get("input_tokens")), "prompt_tokens", line, diagnostics)
    output = tokens_of(
        usage.get("completion_tokens", usage.get("output_tokens")), "completion_tokens", line, diagnostics
    )
    details = _first(usage, "prompt_tokens_details", "input_tokens_details")
    cached = tokens_of(details.get("cached_tokens"), "cached_tokens", line, diagnostics) or 0
    written = tokens_of(details.get("cache_write_tokens"), "cache_write_tokens", line, diagnostics) or 0
    spent = _first(usage, "completion_tokens_details", "output_tokens_details")
    reasoning = tokens_of(spent.get("reasoning_tokens"), "reasoning_tokens", line, diagnostics) or 0
    if prompt is None and output is None:
        return
    call.reported = True
    call.damaged = int(prompt is None or prompt < 0)
    prompt = max(prompt or 0, 0)
    call.cache_read = min(max(cached, 0), prompt)
    call.cache_write = min(max(written, 0), prompt - call.cache_read)
    call.input = prompt - call.cache_read - call.cache_write
    call.output = max(output or 0, 0)
    call.reasoning = max(reasoning, 0)
    cost = usage.get("cost")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 <= cost < 1e9:
        call.cost = float(cost)


def stated_ratio(head: dict[str, Json]) -> float | None:
    """The calibration that ctxctl stated when it compacted a record."""
    note = head.get("compaction")
    return calibration_of(note) if isinstance(note, dict) else None


def stale_messages(head: dict[str, Json]) -> int:
    """How many messages of a record were there when ctxctl compacted it: usage stated among them bills what was spent,
    and says nothing of the window any more."""
    note = head.get("compaction")
    messages = note.get("messages") if isinstance(note, dict) else None
    return messages if isinstance(messages, int) and not isinstance(messages, bool) else 0


def _first(value: dict[str, Json], *keys: str) -> dict[str, Json]:
    return next((value[key] for key in keys if isinstance(value.get(key), dict)), {})


class ConversationFormat(Format):
    """Base of formats whose file is one or more plain conversations: everything in a conversation is in its window.

    A subclass hands over messages with `begin` and `message`. Several conversations share the main thread; `live` is
    that of the newest, and `Transcript.conversations` tells where each one lies, so that another can be chosen.
    """

    def __init__(self, path: str, emit: Emit, *, usage_only: bool = False) -> None:
        super().__init__(path, emit, usage_only=usage_only)
        self.session = Session(emit, self.saw_model)
        self.thread = self.session.threads[MAIN]
        self.id: str | None = None
        self.model: str | None = None
        self.order: list[str] = []
        self.users = 0
        self.assistants = 0
        self.overflows: list[Overflow] = []
        self.ratio: float | None = None
        self._conversations: list[dict[str, Any]] = []

    def begin(self, line: int, id_: str | None = None) -> None:
        """A conversation starts."""
        self._conversations.append({"line": line, "first": self.session.blocks, "id": id_, "messages": 0})
        self.order = []
        self.thread.open_calls.clear()

    def message(
        self, items: list[Piece], role: str, line: int, *, name: str, timestamp: str | None = None
    ) -> Call | None:
        """One message of the current conversation; the call, when the model wrote it. name: its id in `order`."""
        self._conversations[-1]["messages"] += 1
        self.order.append(name)
        call = None
        if role == "assistant":
            call = self.session.call(self.thread, line, self.model, timestamp)
            call.reported = False
            self.assistants += 1
        elif role == "user":
            self.users += 1
            if any(item.kind == "user_message" for item in items):
                self.thread.exchange += 1
        self.place(items, role, line, timestamp, turn=call.turn if call else None, response_id=name if call else None)
        return call

    def place(
        self,
        items: list[Piece],
        role: str,
        line: int,
        timestamp: str | None = None,
        turn: int | None = None,
        response_id: str | None = None,
    ) -> None:
        """Emit blocks that are not a message, such as tool definitions; numbered on within their record."""
        self.session.place(items, role, self.thread, line, timestamp, turn=turn, response_id=response_id)

    def finish(self) -> Transcript:
        marks = self._conversations
        ends = [m["first"] for m in marks[1:]] + [self.session.blocks] * bool(marks)
        conversations = tuple(
            Conversation(m["line"], m["first"], end, m["messages"], m["id"]) for m, end in zip(marks, ends, strict=True)
        )
        if not any(m["messages"] for m in marks):
            self.diagnostics.add("warning", "no_messages", "the transcript holds no message")
        last = conversations[-1] if conversations else Conversation(1, 0, 0, 0)
        return Transcript(
            id=self.id,
            format=self.name,
            path=self.path,
            model=self.session.main_model() or self.model,
            models=tuple(self.session.models),
            live=tuple(range(last.first, last.last)),
            order=tuple(self.order),
            usage=self.session.usage(),
            overflows=tuple(self.overflows),
            conversations=conversations if len(conversations) > 1 else (),
            threads=(MAIN,),
            records=self.records,
            exchanges=self.thread.exchange,
            messages=MessageCounts(self.users, self.assistants, 0),
            complete=self.complete,
            ratio=self.ratio,
            diagnostics=self.diagnostics.items(),
        )
