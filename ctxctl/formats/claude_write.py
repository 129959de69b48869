"""Writing a compacted Claude Code session, so that the agent can resume it.

A new session holds the records that say how it stands, a boundary, the summary, and what stays. With the history kept,
the same is appended to the original lines as the agent itself does: records that stay as they are are named in the
boundary, as far as they come first; from the first change on they are written anew behind it. Sources: recorded
sessions, the preserved segments of claude-code-log's `dag.md`, and which records a resume needs
(heiervang-technologies/unleash#419).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from ctxctl.formats.base import Json, dumps, word
from ctxctl.formats.claude_links import INHERIT, Chain
from ctxctl.formats.claude_patch import set_fields
from ctxctl.formats.claude_plan import Item, Kept, Made, Plan, Stub, plan
from ctxctl.formats.claude_records import Envelope, Source, strict
from ctxctl.formats.claude_side import LINKS, NEWEST, PROMPT, SideLines
from ctxctl.formats.draft import Draft
from ctxctl.formats.lines import each_part
from ctxctl.model.text import NO_RESULT


def rewrite(draft: Draft) -> Iterator[bytes]:
    """The lines of the compacted session."""
    if not (draft.in_place or draft.keep_history):
        yield from _New(draft).lines()
    elif not draft.outcome:
        for line in range(1, len(draft.store) + 1):
            yield draft.store.get(line)
    else:
        yield from _Appended(draft).lines()


class _Writer:
    """What both layouts share. session: id of what is written; None where records keep theirs."""

    def __init__(self, draft: Draft, session: str | None) -> None:
        self.draft = draft
        self.plan: Plan = plan(draft)
        self.source = Source(draft, self.plan.texts)
        self.session = session
        self.side = draft.transcript.side if isinstance(draft.transcript.side, SideLines) else SideLines()
        newest = max((i.line for i in self.plan.items if isinstance(i, Kept)), default=0)
        self.envelope = Envelope(draft, self.source.first(newest), session)
        self.chain = Chain(None)
        self.renamed: dict[str, str] = {}
        self.leaf: str | None = None

    def opening(self, preserved: list[str], logical: str | None) -> Iterator[bytes]:
        """The boundary and the summary. preserved: ids of records in front of it that follow the summary."""
        boundary, summary = self.envelope.uuid(), self.envelope.uuid()
        has_summary = self.plan.summary is not None
        yield self.envelope.boundary(boundary, logical, summary if has_summary else boundary, preserved)
        self.chain = Chain(boundary)
        if self.plan.summary is not None:
            yield self.made(self.plan.summary, summary)

    def made(self, text: str, uuid: str | None = None) -> bytes:
        """A summary's record."""
        self.leaf = uuid or self.envelope.uuid()
        return self.envelope.summary(self.leaf, self.chain.add(self.leaf, None, None), text)

    def item(self, item: Item) -> bytes | None:
        """A record of the plan, None when nothing of it can be written."""
        if isinstance(item, Made):
            return self.made(item.text)
        if isinstance(item, Stub):
            self.leaf = self.envelope.uuid()
            parent = self.chain.add(self.leaf, self.chain.last, item.group)
            return self.envelope.result(self.leaf, parent, item.call_id, NO_RESULT)
        found = self.source.kept(item)
        if found is None:
            return None
        data, record, changed = found
        return self.linked(data, record, item.group, fresh=changed)

    def linked(self, data: bytes, record: dict[str, Json], group: str | None, *, fresh: bool = False) -> bytes:
        """A copied record at its place in the chain. fresh: it gets an id of its own where its old one is in use."""
        own, parent = word(record, "uuid"), word(record, "parentUuid")
        fields: dict[str, bytes] = {}
        uuid = own if own is not None and not self.renews(fresh) else self.envelope.uuid()
        if uuid != own:
            fields["uuid"] = dumps(uuid)
            if own is not None:
                self.renamed[own] = uuid
        parent = self.renamed.get(parent, parent) if parent is not None else None
        above = self.chain.add(uuid, parent, group)
        if above != word(record, "parentUuid") or "parentUuid" not in record:
            fields["parentUuid"] = dumps(above)
        if self.session is not None and record.get("sessionId") != self.session:
            fields["sessionId"] = dumps(self.session)
        if group != INHERIT:
            self.leaf = uuid
        return set_fields(data, record, fields) if fields else data

    def renews(self, changed: bool) -> bool:
        """Whether a changed record needs an id of its own."""
        return False

    def prompt(self) -> Iterator[bytes]:
        """The last prompt, with the leaf that there is now."""
        if (line := self.side.newest.get(PROMPT)) is not None and (found := self.source.side(line, PROMPT)) is not None:
            data, record = found
            fields = {"leafUuid": dumps(self.leaf)} if "leafUuid" in record else {}
            if self.session is not None:
                fields["sessionId"] = dumps(self.session)
            yield set_fields(data, record, fields) + b"\n"


class _New(_Writer):
    """A session of its own."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft, draft.new_id)
        self._waiting: list[tuple[int, bool]] = []
        side = self.side
        self._below: dict[int, list[int]] = {}
        for line, parent in zip(side.bare, side.parents, strict=True):
            self._below.setdefault(parent, []).append(line)
        self._snapshots: dict[int, list[int]] = {}
        for line, message in zip(side.snapshots, side.messages, strict=True):
            self._snapshots.setdefault(message, []).append(line)

    def lines(self) -> Iterator[bytes]:
        yield from self._heads()
        for data in self.opening([], None):
            yield data + b"\n"
        items = self.plan.items
        last = len(items) - 1
        at = 0
        for number, item in enumerate(items):
            if isinstance(item, Kept):
                yield from self._flush(item.line if item.line > at else None)
                at = item.line
            made = self.item(item)
            if made is None:
                continue
            if isinstance(item, Kept) and self.leaf is not None:
                for line in self._snapshots.pop(hash(self.leaf), ()):
                    if line > at:
                        heappush(self._waiting, (line, True))
                    elif (found := self.source.side(line)) is not None:
                        yield found[0] + b"\n"
                for line in self._below.get(at, ()):
                    heappush(self._waiting, (line, False))
            yield made + b"\n"
            if number == last and isinstance(item, Kept) and _is_open(item):
                self._waiting.clear()  # the result will follow at once
        yield from self._flush(None)
        yield from self.prompt()

    def _heads(self) -> Iterator[bytes]:
        """Notes about the session: the newest of each kind, and all links, in the order of the file."""
        lines = {self.side.newest[type_]: type_ for type_ in NEWEST if type_ in self.side.newest}
        lines.update(dict.fromkeys(self.side.links, LINKS))
        for line in sorted(lines):
            if (found := self.source.side(line, lines[line])) is not None:
                yield set_fields(*found, {"sessionId": dumps(self.draft.new_id)}) + b"\n"

    def _flush(self, until: int | None) -> Iterator[bytes]:
        """Snapshots and system records that follow what was written, up to a line."""
        while self._waiting and (until is None or self._waiting[0][0] < until):
            line, is_snapshot = heappop(self._waiting)
            for data, record in self.source.records(line):
                if is_snapshot:
                    yield data + b"\n"
                elif record.get("parentUuid") in self.chain and word(record, "uuid") not in self.chain:
                    yield self.linked(data, record, INHERIT) + b"\n"
                    for below in self._below.get(line, ()):
                        heappush(self._waiting, (below, False))


class _Appended(_Writer):
    """The original lines, and the compaction behind them."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft, None if draft.in_place else draft.new_id)

    def renews(self, changed: bool) -> bool:
        return changed

    def lines(self) -> Iterator[bytes]:
        for _, found in each_part(self.draft):
            for part in found:
                if isinstance(part.value, dict):
                    yield strict(part) + b"\n"
        preserved = self._preserved()
        order = self.draft.transcript.order
        logical = order[-1] if order and not order[-1].startswith("line:") else None
        for data in self.opening(preserved, logical):
            yield data + b"\n"
        for item in self.plan.items[len(preserved) :]:
            if (made := self.item(item)) is not None:
                yield made + b"\n"
        yield from self.prompt()

    def _preserved(self) -> list[str]:
        """Ids of the records that stay as they are, from the first on up to a change. The last one is always written
        anew: it is where the agent goes on. A response is not divided: what stands behind the boundary is whole."""
        items = self.plan.items
        found: list[str] = []
        for item in items[:-1]:
            uuid = self.source.unchanged(item) if isinstance(item, Kept) else None
            if uuid is None:
                break
            found.append(uuid)
        while (
            found
            and _group(items[len(found)]) is not None
            and _group(items[len(found)]) == _group(items[len(found) - 1])
        ):
            found.pop()
        return found


def _group(item: Item) -> str | None:
    return None if isinstance(item, Made) else item.group


def _is_open(item: Kept) -> bool:
    return any(block.kind == "tool_call" for block in item.live.values())
