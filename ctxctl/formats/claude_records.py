"""Where the records of a compacted Claude Code session come from: its own lines, or new ones in their shape."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import orjson

from ctxctl.errors import InputError
from ctxctl.formats.base import Diagnostics, Json, dumps, word
from ctxctl.formats.claude_edit import Edit
from ctxctl.formats.claude_plan import Kept
from ctxctl.formats.claude_text import attached
from ctxctl.formats.content import pieces
from ctxctl.formats.draft import Draft, Normalised
from ctxctl.formats.lines import Part, parts
from ctxctl.model.text import clean

Record = tuple[bytes, dict[str, Json]]

COMMON = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId", "teamName")
"""Keys that say where a record was made; new ones have those of the newest."""


class Source:
    """Fetches records by line. texts: what stands for blocks, by their id."""

    def __init__(self, draft: Draft, texts: dict[str, str]) -> None:
        self._counted = draft
        self._quietly = replace(draft, normalised=Normalised(), notes=[])
        if draft.in_place or draft.keep_history:
            self._counted = self._quietly  # every line is copied once anyway, and counted then
        self._notes = Diagnostics()
        cleared = frozenset(draft.blocks[n].id for n in draft.transcript.cleared if n in draft.blocks)
        changed = {draft.blocks[n].id for n in draft.outcome.changed}
        path = draft.transcript.path
        self._edit = Edit(texts, cleared, path)
        self._as_it_is = Edit({k: v for k, v in texts.items() if k in changed}, cleared, path)

    def records(self, line: int) -> Iterator[Record]:
        """The records of a line, each as one line without its end."""
        return self._records(line, self._counted)

    def _records(self, line: int, draft: Draft) -> Iterator[Record]:
        for part in parts(draft.store.get(line), line, draft, self._notes):
            if isinstance(part.value, dict):
                yield strict(part), part.value

    def first(self, line: int) -> dict[str, Json]:
        """The first record of a line, empty where there is none."""
        return next((record for _, record in self._records(line, self._quietly)), {}) if line else {}

    def side(self, line: int, type_: str | None = None) -> Record | None:
        """A side record, of the newest of a type where it is given."""
        found = [r for r in self.records(line) if type_ is None or r[1].get("type") == type_]
        return found[-1] if found else None

    def kept(self, item: Kept) -> tuple[bytes, dict[str, Json], bool] | None:
        """A record with what stays of it, its value as read, and whether it was changed; None when nothing stays."""
        data, record, base = self._find(item)
        made = self._edit.apply(data, record, item.live, base)
        return None if made is None else (made, record, made is not data)

    def unchanged(self, item: Kept) -> str | None:
        """The id of a record that stays as it is in the file, None when it changes or has none."""
        data, record, base = self._find(item)
        return word(record, "uuid") if self._as_it_is.apply(data, record, item.live, base) is data else None

    def _find(self, item: Kept) -> tuple[bytes, dict[str, Json], int]:
        found = list(self.records(item.line))
        if len(found) == 1:
            return (*found[0], 0)
        base, first = 0, min(item.live)
        for data, record in found:
            size = _blocks(record)
            if base <= first < base + size:
                return data, record, base
            base += size
        raise InputError("the line no longer holds what was read", path=self._counted.transcript.path, line=item.line)


def strict(part: Part) -> bytes:
    """The bytes of a record as one line of strict JSON, without its end."""
    if b"\n" in part.data:
        return dumps(part.value)
    if not part.plain:
        try:
            orjson.loads(part.data)
        except orjson.JSONDecodeError:  # NaN and its like, which only lenient readers take
            return dumps(part.value)
    return part.data


def _blocks(record: dict[str, Json]) -> int:
    """How many blocks a record gives."""
    if record.get("type") == "attachment":
        attachment = record.get("attachment")
        return len(attached(attachment)[0]) if isinstance(attachment, dict) else 0
    message = record.get("message")
    if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return 0
    if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
        return 0
    return sum(1 for _ in pieces(message.get("content"), ""))


class Envelope:
    """Makes new records in the shape that those around them have. pattern: the newest record that stays."""

    def __init__(self, draft: Draft, pattern: dict[str, Json], session: str | None) -> None:
        self._common = {key: pattern[key] for key in COMMON if key in pattern}
        self._common.setdefault("userType", "external")
        if draft.transcript.cwd is not None:
            self._common.setdefault("cwd", draft.transcript.cwd)
        self._common["sessionId"] = session or self._common.get("sessionId") or draft.transcript.id or draft.new_id
        self._side = pattern.get("isSidechain") is True
        self._now = draft.now
        self._before, self._after, self._ratio = draft.before, draft.after, draft.ratio
        self._seed = f"{draft.new_id} {draft.now} {len(draft.store)}"
        self._made = 0

    def uuid(self) -> str:
        """A fresh id in the form of version 4, the same for the same draft."""
        self._made += 1
        return str(uuid.UUID(bytes=uuid.uuid5(uuid.NAMESPACE_OID, f"{self._seed} {self._made}").bytes, version=4))

    def _record(self, id_: str, parent: str | None, type_: str, rest: dict[str, Json]) -> bytes:
        head = {"parentUuid": parent, "isSidechain": self._side, **self._common, "type": type_}
        return dumps(head | rest | {"uuid": id_, "timestamp": self._now})

    def boundary(self, id_: str, logical: str | None, anchor: str, preserved: list[str]) -> bytes:
        """A compaction. logical: the record in front of it; preserved: ids of those that follow the anchor."""
        metadata: dict[str, Json] = {"trigger": "manual", "preTokens": self._before, "postTokens": self._after}
        if self._ratio != 1:
            metadata["calibration"] = round(self._ratio, 6)
        if preserved:
            metadata["preservedMessages"] = {"anchorUuid": anchor, "uuids": preserved}
        rest = {
            "logicalParentUuid": logical,
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": metadata,
        }
        return self._record(id_, None, "system", rest)

    def summary(self, id_: str, parent: str | None, text: str) -> bytes:
        """A summary of what left."""
        message = {"role": "user", "content": clean(text)}
        rest = {"message": message, "isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        return self._record(id_, parent, "user", rest)

    def result(self, id_: str, parent: str | None, call_id: str, text: str) -> bytes:
        """The result of a call that has none."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": True}
        return self._record(id_, parent, "user", {"message": {"role": "user", "content": [block]}})
