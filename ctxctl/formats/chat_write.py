"""Writing compacted chat conversations: OpenAI chat in all its framings, and mini-swe-agent trajectories.

Source of what providers take: openai-python `types/chat/` and formats.md 6: tool messages stand right behind the
assistant message that called, and content may be null only beside calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.formats.base import Json
from ctxctl.formats.chat import REASONING, chat_pieces, content_parts, tool_calls
from ctxctl.formats.codex_edit import edit_item, is_reasoning
from ctxctl.formats.codex_items import item_pieces
from ctxctl.formats.content import Piece
from ctxctl.formats.draft import Draft
from ctxctl.formats.fates import Arranger, Fate, Fates
from ctxctl.formats.lines import compact, each_part, editable, ended, write_as_it_was
from ctxctl.formats.messages_write import argument_text, arguments, edit_block, said_by_user
from ctxctl.formats.openai_chat import ROLE_OF_KIND, answer_of, kind_of, response_of
from ctxctl.formats.rewriting import Record, refuse_history, rewritten


def rewrite_chat(draft: Draft) -> Iterator[bytes]:
    """The bytes of a file whose records are conversations, requests or logged calls."""
    return rewritten(draft, _record)


def _record(record: Record) -> None:
    head = record.head
    record.tools(head["body"] if isinstance(head.get("body"), dict) else head)
    arranger: Arranger[Json] = Arranger(record.draft, said_by_user)
    for messages in record.lists:
        messages[:] = [new for message in messages for new in _arranged(message, record, arranger)]
    response = response_of(head)
    answers = answer_of(response)
    for answer in answers:
        # the answer that a log holds keeps its place, were it empty: usage stands beside it
        found = _pieces(answer)
        answer, kinds = record.named(answer, found), [piece.kind for piece in found]
        new = edit_chat(answer, kinds, record.take(kinds))
        early = [*arranger.add(None, "assistant", record.fates), *arranger.flush()]
        bare: Json = {"role": "assistant", "content": None}
        if record.lists:
            record.lists[-1].extend(early)
        elif early:
            bare["content"] = "\n".join(message["content"] for message in early)  # no message could stand in front
        response["choices"][0]["message"] = new or bare
    if record.lists:
        record.lists[-1].extend(arranger.flush())
    if isinstance(response.get("usage", head.get("usage")), dict):
        record.remember(sum(map(len, record.lists)) + len(answers))


def _arranged(message: Json, record: Record, arranger: Arranger[Json]) -> Iterator[Json]:
    """What is written for one message of a list."""
    if not isinstance(message, dict):
        yield from arranger.add(message, "other")
        return
    found = _pieces(message)
    role = role_of(message)
    if not found and kind_of(message.get("role")) is None:  # no message: kept for whoever wrote it
        yield from arranger.add(message, "system")
        return
    message, kinds = record.named(message, found), [piece.kind for piece in found]
    new = edit_chat(message, kinds, record.take(kinds))
    yield from arranger.add(new, role, record.fates, results=role == "tool")


def _pieces(message: dict[str, Json]) -> list[Piece]:
    return list(chat_pieces(message, kind_of(message.get("role")) or "user_message"))


def role_of(message: dict[str, Json]) -> str:
    """The role of a message as a reader takes it."""
    return ROLE_OF_KIND[kind_of(message.get("role")) or "user_message"]


def rewrite_lines(draft: Draft) -> Iterator[bytes]:
    """The bytes of a file with a message on each line."""
    refuse_history(draft)
    if not draft.outcome:
        yield from write_as_it_was(draft)
        return
    fates = Fates(draft)
    arranger: Arranger[bytes] = Arranger(draft, lambda text: ended(compact(said_by_user(text))))
    for line, found in each_part(draft):
        at, touched = 0, fates.touched(line)
        for part in found:
            message = part.value
            if not isinstance(message, dict):
                continue
            content = message.get("content")
            role = role_of(message)
            if touched is False and not (isinstance(content, list) and any(map(is_blank, content))):
                yield from arranger.add(ended(part.data), role, results=role == "tool")
                continue
            message = editable(part)
            pieces = _pieces(message)
            if not pieces and kind_of(message.get("role")) is None:  # no message: kept for whoever wrote it
                yield ended(part.data)
                continue
            named, kinds = fates.named(message, line, at, pieces), [piece.kind for piece in pieces]
            new = edit_chat(named, kinds, fates.take(line, at, kinds))
            at += len(kinds)
            data = None if new is None else ended(part.data if new is message else compact(new))
            yield from arranger.add(data, role, fates, results=role == "tool")
    yield from arranger.flush()


def edit_chat(message: dict[str, Json], kinds: Sequence[str], fates: Sequence[Fate]) -> dict[str, Json] | None:
    """A chat message after its pieces met their fates, itself where nothing changes; None when nothing remains that
    may be sent: reasoning without what it led to is left out too."""
    content = message.get("content")
    blanks = isinstance(content, list) and any(map(is_blank, content))
    if all(fate is True for fate in fates) and not blanks:
        return message if fates else None
    remain = [kind for kind, fate in zip(kinds, fates, strict=True) if fate is not False]
    if not remain or (set(remain) == {"thinking"} and set(kinds) != {"thinking"}):
        return None
    new = dict(message)
    queue = iter(fates)
    for key in REASONING:
        if isinstance(message.get(key), str) and message[key]:
            _edit_reasoning(new, key, next(queue))
            break
    _edit_content(new, queue)
    calls = tool_calls(message)
    kept = [call for call in map(_edit_call, calls, queue) if call is not None]
    if kept:
        new["tool_calls"] = kept
    elif calls:
        del new["tool_calls"]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        fate = next(queue)
        if fate is False:
            del new["function_call"]
        elif isinstance(fate, str):
            new["function_call"] = _renewed(legacy, fate)
    return new


def is_blank(part: Json) -> bool:
    """Whether a content part is text without a word, which providers refuse."""
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part
    return isinstance(text, str) and not text.strip()


def _edit_reasoning(new: dict[str, Json], key: str, fate: Fate) -> None:
    if fate is True:
        return
    for name in (*REASONING, "reasoning_details"):
        new.pop(name, None)
    if isinstance(fate, str):
        new[key] = fate


def _edit_content(new: dict[str, Json], queue: Iterator[Fate]) -> None:
    """The text of a message is one piece however many parts it has, then each picture is one."""
    kind = kind_of(new.get("role")) or "user_message"
    content, refusal = new.get("content"), new.get("refusal")
    parts = list(content_parts(new, kind))
    texts = [text for _, text, _ in parts if text is not None] + ([refusal] if isinstance(refusal, str) else [])
    media = any(found for _, _, found in parts)
    said: Fate = next(queue) if "\n".join(texts) or (kind == "tool_result" and not media) else True
    fresh = said if isinstance(said, str) else None
    if not isinstance(content, list):
        if fresh is not None and (isinstance(content, str) or not isinstance(refusal, str)):
            new["content"], fresh = fresh, None
        elif said is False and content is not None:
            new["content"] = None
    else:
        kept: list[Json] = []
        for part, text, found in parts:
            if text is None:
                fates = [next(queue) for _ in found]
                edited = _edit_part(part, fates) if fates else part
                if edited is not None:
                    kept.append(edited)
            elif said is True:
                kept += [] if is_blank(part) else [part]
            elif fresh is not None:
                kept.append(fresh if isinstance(part, str) else _texted(part, fresh))
                fresh = None
        if fresh is not None and not isinstance(refusal, str):
            kept.insert(0, {"type": "text", "text": fresh})
            fresh = None
        new["content"] = kept or None
    if isinstance(refusal, str) and said is not True:
        if fresh is None:
            del new["refusal"]
        else:
            new["refusal"] = fresh


def _texted(part: dict[str, Json], text: str) -> dict[str, Json]:
    return {**part, "text": text} if isinstance(part.get("text"), str) else {"type": "text", "text": text}


def _edit_part(part: dict[str, Json], fates: Sequence[Fate]) -> Json | None:
    """A picture, a file, or a block in the manner of the Messages API."""
    if all(fate is True for fate in fates):
        return part
    if "tool_use_id" in part or part.get("type") in ("tool_use", "thinking", "redacted_thinking"):
        return edit_block(part, fates)
    return {"type": "text", "text": fates[0]} if isinstance(fates[0], str) else None


def _edit_call(call: dict[str, Json], fate: Fate) -> dict[str, Json] | None:
    if not isinstance(fate, str):
        return call if fate else None
    for key in ("function", "custom"):
        if isinstance(call.get(key), dict):
            return {**call, key: _renewed(call[key], fate)}
    return _renewed(call, fate)


def _renewed(body: dict[str, Json], text: str) -> dict[str, Json]:
    """A call with the arguments of a changed text, as text or as an object as it had them."""
    key = "input" if "input" in body and "arguments" not in body else "arguments"
    make = arguments if isinstance(body.get(key), dict) else argument_text
    return {**body, key: make(body.get("name"), text)}


def rewrite_trajectory(draft: Draft) -> Iterator[bytes]:
    """The bytes of a mini-swe-agent trajectory after its compaction; `info`, and with it the run's bill, stays."""
    return rewritten(draft, _trajectory)


def _trajectory(record: Record) -> None:
    arranger: Arranger[Json] = Arranger(record.draft, said_by_user)
    for messages in record.lists:
        messages[:] = [new for message in messages for new in _step(message, record, arranger)] + [*arranger.flush()]
    if record.head:
        record.remember(sum(map(len, record.lists)))


def _step(message: Json, record: Record, arranger: Arranger[Json]) -> Iterator[Json]:
    if not isinstance(message, dict) or message.get("role") == "exit":
        yield from arranger.add(message, "system")
        return
    if "role" in message or not (isinstance(message.get("output"), list) or "type" in message):
        yield from _arranged(message, record, arranger)
        return
    whole = isinstance(message.get("output"), list) and "type" not in message
    items = message["output"] if whole else [message]
    kinds: list[str] = []
    kept: list[Json] = []
    summaries: list[str] = []
    for item in items:
        found = list(item_pieces(item)) if isinstance(item, dict) else []
        own = [piece.kind for piece in found]
        kinds += own
        new = edit_item(record.named(item, found), record.take(own)) if own else item
        summaries += record.fates.summaries if own else []
        kept += [] if new is None else [new]
    if kept != items and all(map(is_reasoning, kept)):
        kept = []  # reasoning is refused without what it led to
    record.fates.summaries, record.fates.behind = summaries, False
    left: Json = message if kept == items else None
    if kept and left is None:
        left = {**message, "output": kept} if whole else kept[0]
    wrote = any(kind in ("assistant", "thinking", "tool_call") for kind in kinds)
    yield from arranger.add(left, "assistant" if wrote else "tool", record.fates, results="tool_result" in kinds)
