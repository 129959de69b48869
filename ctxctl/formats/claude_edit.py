"""One record of a Claude Code session with only the content blocks that stay, the rest of its bytes as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxctl.errors import InputError
from ctxctl.formats.base import Json, dumps
from ctxctl.formats.claude_patch import elements, find, set_fields, splice
from ctxctl.formats.claude_text import QUEUED, text_key
from ctxctl.formats.content import Piece, piece, pieces
from ctxctl.model.block import Block
from ctxctl.model.text import clean

Live = Mapping[int, Block]
"""The blocks of a record that stay, by their index within its line."""


class Edit:
    """Takes the live blocks out of a record. texts: what stands for a block, by its id; cleared: ids of blocks of which
    the window has a placeholder and the file the content; path: of the file, for errors.

    A block of which nothing can be sent is left out too: blank text, and reasoning that was cut before it was signed.
    """

    def __init__(self, texts: Mapping[str, str], cleared: frozenset[str], path: str) -> None:
        self._cleared = cleared
        self._texts = texts
        self._path = path

    def apply(self, data: bytes, record: dict[str, Json], live: Live, base: int = 0) -> bytes | None:
        """The bytes of the record, the same object when nothing changes; None when nothing of it stays.

        base: index within the line at which the record's blocks begin (several records may stand on one line).
        """
        outer, key = "message", "content"
        if record.get("type") == "attachment":
            outer, key = "attachment", text_key(record["attachment"]) or ""
        holder = record[outer]
        content = holder.get(key)
        if not isinstance(content, list) or (outer == "attachment" and holder.get("type") != QUEUED):
            return self._plain(data, live, (outer, key))
        if self._is_whole(content, live, base, holder):
            return data
        if (made := self._one_result(data, record, content, live)) is not None:
            return made
        where = self._places(content, live, base)
        if where is None:
            line = next(iter(live.values())).source.line
            raise InputError("the line no longer holds what was read", path=self._path, line=line)
        return self._listed(data, record, content, where, (outer, key))

    def _plain(self, data: bytes, live: Live, at: tuple[str, str]) -> bytes | None:
        """A record whose content is one text."""
        block = next(iter(live.values()))
        text = self._texts.get(block.id)
        if not (block.text if text is None else text).strip():
            return None
        return data if text is None else splice(data, [(*_span(data, at), dumps(clean(text)))])

    def _is_whole(self, content: list[Json], live: Live, base: int, holder: dict[str, Json]) -> bool:
        """Whether all blocks stay as they are: told without looking into them, for most records."""
        if len(content) != len(live) or base not in live or base + len(content) - 1 not in live:
            return False
        for item, block in zip(content, live.values(), strict=True):
            if block.id in self._texts or (block.call_id is not None and block.kind in ("image", "document")):
                return False
            if not _can_be_sent(item, holder) or (block.kind == "tool_result" and _has_media(item)):
                return False
        return True

    def _places(self, content: list[Json], live: Live, base: int) -> list[dict[int, Block]] | None:
        """Of each content block the live blocks that it gave, by their order in it.

        The blocks of a line may be the last ones of its content only: a snapshot of a response repeats earlier lines.
        """
        flat: list[tuple[int, int, Piece]] = []
        for at, item in enumerate(content):
            found = piece(item, "") if isinstance(item, dict) else pieces([item], "")
            flat.extend((at, part, value) for part, value in enumerate(found))
        for offset in range(len(flat)):
            places: list[dict[int, Block]] = [{} for _ in content]
            for index, block in live.items():
                position = index - base + offset
                if not 0 <= position < len(flat) or not _is_same(block, flat[position][2], block.id in self._cleared):
                    break
                at, part, _ = flat[position]
                places[at][part] = block
            else:
                return places
        return None

    def _one_result(self, data: bytes, record: dict[str, Json], content: list[Json], live: Live) -> bytes | None:
        """A record that is one result of text with a text in its place, which most changed records are; None where it
        is more than that, or where writing the record anew would change other bytes."""
        block = next(iter(live.values()))
        text = self._texts.get(block.id)
        item = content[0]
        if len(content) != 1 or len(live) != 1 or text is None or not isinstance(item, dict):
            return None
        if item.get("type") != "tool_result" or item.get("tool_use_id") != block.call_id or _has_media(item):
            return None
        if record.get("type") != "user" or dumps(record) != data:
            return None
        new = clean(text)
        made = {**record, "message": {**record["message"], "content": [{**item, "content": new}]}}
        if "toolUseResult" in record:
            made["toolUseResult"] = new
        return dumps(made)

    def _listed(
        self,
        data: bytes,
        record: dict[str, Json],
        content: list[Json],
        where: Sequence[dict[int, Block]],
        at: tuple[str, str],
    ) -> bytes | None:
        start, end = _span(data, at)
        kept: list[bytes] = []
        same = True
        payload: str | None = None
        for item, blocks, (begin, stop) in zip(content, where, elements(data, start), strict=True):
            raw = data[begin:stop]
            new = self._item(raw, item, blocks) if blocks and _can_be_sent(item, record[at[0]]) else None
            if new is not raw:
                same = False
                if isinstance(item, dict) and item.get("type") == "tool_result":
                    payload = self._texts.get(blocks[0].id, "") if new is not None else ""
            if new is not None:
                kept.append(new)
        if not kept:
            return None
        if same:
            return data
        made = splice(data, [(start, end, b"[%s]" % b",".join(kept))])
        if payload is not None and "toolUseResult" in record:
            # a copy for the screen, which would keep what was taken out
            made = set_fields(made, record, {"toolUseResult": dumps(clean(payload))})
        return made

    def _item(self, raw: bytes, item: Json, blocks: dict[int, Block]) -> bytes | None:
        """A content block as it stays: the same object when nothing changes, None when it goes."""
        if isinstance(item, dict) and item.get("type") == "tool_result":
            return self._result(raw, item, blocks)
        text = self._texts.get(blocks[0].id)
        if text is None:
            return raw
        type_ = item.get("type") if isinstance(item, dict) else "text"
        if not text.strip() and type_ != "thinking":
            return None
        if type_ == "text" and isinstance(item, dict) and (span := find(raw, b"text")) is not None:
            return splice(raw, [(*span, dumps(clean(text)))])
        if type_ in ("thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"):
            return raw  # signed, or what its result answers: stays as the model wrote it
        return dumps({"type": "text", "text": clean(text)})

    def _result(self, raw: bytes, item: dict[str, Json], blocks: dict[int, Block]) -> bytes | None:
        if 0 not in blocks:
            return None
        content = item.get("content")
        parts = content if isinstance(content, list) else []
        media = [n for n, part in enumerate(parts) if _is_media(part)]
        text = self._texts.get(blocks[0].id)
        pictures: list[bytes] = []
        changed = text is not None
        span = find(raw, b"content")
        spans = elements(raw, span[0]) if span is not None and media else []
        for order, n in enumerate(media, 1):
            instead = self._texts.get(blocks[order].id) if order in blocks else None
            if order not in blocks or instead is not None:
                changed = True
            if instead is not None:
                pictures.append(dumps({"type": "text", "text": clean(instead)}))
            elif order in blocks:
                pictures.append(raw[spans[n][0] : spans[n][1]])
        if not changed:
            return raw
        if text is not None:
            first = [dumps({"type": "text", "text": clean(text)})] if text.strip() else []
        else:
            first = [raw[spans[n][0] : spans[n][1]] for n in range(len(parts)) if n not in media]
        if text is not None and not pictures:
            new = dumps(clean(text))
        else:
            new = b"[%s]" % b",".join(first + pictures) if first or pictures else b'""'
        if span is None:
            return set_fields(raw, item, {"content": new})
        return splice(raw, [(*span, new)])


def _span(data: bytes, path: tuple[str, str]) -> tuple[int, int]:
    start = end = 0
    for key in path:
        found = find(data, key.encode(), start)
        if found is None:
            raise AssertionError(f"a record without {key}")
        start, end = found
    return start, end


def _is_same(block: Block, found: Piece, cleared: bool) -> bool:
    if block.call_id is not None and block.call_id != found.call_id:
        return False
    return (block.media is None) == (found.media is None) and (
        cleared or block.text == found.text or clean(block.text) == found.text
    )


def _is_media(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "document")


def _has_media(item: Json) -> bool:
    content = item.get("content") if isinstance(item, dict) else None
    return isinstance(content, list) and any(map(_is_media, content))


def _can_be_sent(item: Json, message: dict[str, Json]) -> bool:
    """Whether a provider takes a content block: not blank, and reasoning only with its signature."""
    if not isinstance(item, dict):
        return isinstance(item, str) and bool(item.strip())
    if item.get("type") == "text":
        text = item.get("text")
        return not isinstance(text, str) or bool(text.strip())
    if item.get("type") == "thinking" and not item.get("signature"):
        return "signature" not in item and message.get("stop_reason") != "max_tokens"
    return True
