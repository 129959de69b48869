"""How the records of a Claude Code session hang on each other: references to nothing, circles, ids used twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ctxctl.formats.base import Json, word
from ctxctl.model.transcript import Transcript
from ctxctl.validity.findings import Counts, Finding, Report

NONE, DANGLING = -1, -2


@dataclass(frozen=True, slots=True)
class Link:
    """A reference that is to be set anew. field: `parentUuid` or `logicalParentUuid`; uuid: what it should name; owner:
    of the record; code: of the finding."""

    line: int
    field: str
    uuid: str | None
    owner: str
    code: str


class Chain:
    """Every record with a uuid, in file order. record_at: gives the records of a line that have a uuid, to compare two
    of one id."""

    def __init__(self, record_at: Callable[[int, str], list[Json]]) -> None:
        self._record_at = record_at
        self._node: dict[str, int] = {}
        self.uuid: list[str] = []
        self.line: list[int] = []
        self._parent: list[str | None] = []
        self._thread: list[str] = []
        self._shown = bytearray()
        self._logical: list[tuple[int, str, str | None]] = []
        self._twice: list[tuple[int, int]] = []

    def add(self, record: dict[str, Json], line: int) -> None:
        """Take a record; those without a uuid are no part of the chain."""
        uuid = word(record, "uuid")
        if uuid is None:
            return
        node = len(self.uuid)
        earlier = self._node.get(uuid)
        if earlier is not None:
            self._twice.append((earlier, node))
        self._node[uuid] = node
        self.uuid.append(uuid)
        self.line.append(line)
        self._parent.append(word(record, "parentUuid"))
        side = record.get("isSidechain") is True
        self._thread.append((word(record, "agentId") or "side") if side else "")
        boundary = record.get("subtype") == "compact_boundary"
        self._shown.append(record.get("type") in ("user", "assistant") or boundary)
        logical = word(record, "logicalParentUuid")
        if logical is not None:
            data = record.get("compactMetadata")
            segment = data.get("preservedSegment") if isinstance(data, dict) else None
            tail = segment.get("tailUuid") if isinstance(segment, dict) else None
            self._logical.append((node, logical, tail if isinstance(tail, str) else None))

    # -- what is wrong ---------------------------------------------------------------------------------------------

    def judge(self, transcript: Transcript, report: Report, counts: Counts) -> None:
        """Name what is wrong. A gap is an error where a walk from the newest message to the first would stop at it and
        lose messages of the window; elsewhere it is a warning."""
        lost = self._losing(transcript)
        for node in self._dangling():
            counts.dangling_parents += 1
            if node in lost:
                text = "parentUuid names a record that is not in the file: what stands before it is cut off"
                level: str = "error"
            else:
                text, level = "parentUuid names a record that is not in the file", "warning"
            report(Finding("dangling_parent", level, self.line[node], text, self.uuid[node], fixable=True))  # type: ignore[arg-type]
        for node, logical, _ in self._logical:
            if logical not in self._node:
                counts.dangling_parents += 1
                text = "logicalParentUuid names a record that is not in the file"
                report(Finding("dangling_parent", "warning", self.line[node], text, self.uuid[node], fixable=True))
        for cycle in self._cycles():
            first, last = self.line[min(cycle)], self.line[max(cycle)]
            text = (
                "a record is its own parent"
                if len(cycle) == 1
                else f"{len(cycle)} records hang on each other in a circle (lines {first} to {last})"
            )
            report(Finding("parent_cycle", "error", first, text, self.uuid[min(cycle)], None, last, True))
        self._forward(report)
        for earlier, later in self._twice:
            line, other = self.line[later], self.line[earlier]
            if self._is_copy(earlier, later):
                text = f"the record of line {other} again"
                report(Finding("repeated_record", "info", line, text, self.uuid[later], None, other))
            else:
                counts.duplicates += 1
                text = f"the uuid of line {other}, with other content: readers keep one of them"
                report(Finding("duplicate_uuid", "error", line, text, self.uuid[later], None, other, True))

    def _dangling(self) -> Iterator[int]:
        for node, parent in enumerate(self._parent):
            if parent is not None and parent not in self._node:
                yield node

    def _losing(self, transcript: Transcript) -> set[int]:
        """Records with a gap above them at which a walk from the newest message ends too early."""
        live = [node for uuid in transcript.order if (node := self._node.get(uuid)) is not None]
        if not live:
            return set()
        first = min(live)
        found, node, steps = set(), live[-1], len(self.uuid)
        previous = self._previous(self._thread[node])
        while node >= 0 and steps >= 0:
            steps -= 1
            parent = self._parent[node]
            above = self._node.get(parent, DANGLING) if parent is not None else NONE
            if above == DANGLING:
                above = previous[node]
                if any(n < node for n in live) and node > first:
                    found.add(node)
            node = above if above < node else NONE
        return found

    def _previous(self, thread: str) -> list[int]:
        """For each record the message or boundary of a thread that stands before it, NONE for the first."""
        found, last = [], NONE
        for node in range(len(self.uuid)):
            found.append(last)
            if self._shown[node] and self._thread[node] == thread:
                last = node
        return found

    def _cycles(self) -> list[list[int]]:
        """Each circle of parents, as the records on it."""
        state = bytearray(len(self.uuid))  # 1: on the walk, 2: known to end
        found = []
        for start in range(len(self.uuid)):
            walk, node = [], start
            while node >= 0 and not state[node]:
                state[node] = 1
                walk.append(node)
                parent = self._parent[node]
                node = self._node.get(parent, NONE) if parent is not None else NONE
            if node >= 0 and state[node] == 1:
                found.append(walk[walk.index(node) :])
            for n in walk:
                state[n] = 2
        return found

    def _forward(self, report: Report) -> None:
        circling = {n for cycle in self._cycles() for n in cycle}
        for node, parent in enumerate(self._parent):
            above = self._node.get(parent, NONE) if parent is not None else NONE
            if above > node and node not in circling:
                text = f"parentUuid names a later record (line {self.line[above]})"
                report(
                    Finding(
                        "parent_after_child", "info", self.line[node], text, self.uuid[node], None, self.line[above]
                    )
                )

    def _is_copy(self, earlier: int, later: int) -> bool:
        """Whether two records of one uuid say the same; agents write kept messages again behind a compaction, with
        another parent."""
        uuid = self.uuid[later]
        one, two = self._record_at(self.line[earlier], uuid), self._record_at(self.line[later], uuid)
        return all(_said(a) == _said(b) for a in one for b in two)

    # -- how to mend it --------------------------------------------------------------------------------------------

    def links(self) -> list[Link]:
        """References that are to be set anew: gaps are bridged by file order within a thread, circles opened where a
        record hangs on a later one."""
        found = []
        previous: dict[str, list[int]] = {}

        def before(node: int) -> str | None:
            thread = self._thread[node]
            if thread not in previous:
                previous[thread] = self._previous(thread)
            above = previous[thread][node]
            while above >= 0 and self._node[self.uuid[above]] >= node:  # it was written again behind this one
                above = previous[thread][above]
            return self.uuid[above] if above >= 0 else None

        for node in self._dangling():
            found.append(self._link(node, "parentUuid", before(node), "dangling_parent"))
        for node, logical, tail in self._logical:
            if logical not in self._node:
                uuid = tail if tail in self._node else before(node)
                found.append(self._link(node, "logicalParentUuid", uuid, "dangling_parent"))
        for cycle in self._cycles():
            for node in cycle:
                parent = self._parent[node]
                if parent is not None and self._node[parent] >= node:
                    found.append(self._link(node, "parentUuid", before(node), "parent_cycle"))
        return found

    def _link(self, node: int, field: str, uuid: str | None, code: str) -> Link:
        return Link(self.line[node], field, uuid, self.uuid[node], code)

    def twins(self) -> list[tuple[int, str]]:
        """(line, uuid) of records whose uuid an earlier record has with other content."""
        return [(self.line[b], self.uuid[b]) for a, b in self._twice if not self._is_copy(a, b)]


def _said(record: dict[str, Json]) -> tuple[Json, ...]:
    """What a record says, in which one that was written again equals the first; its parent, its time stamp and the
    usage of a response that went on may differ."""
    message = record.get("message")
    body = message.get("content") if isinstance(message, dict) else message
    return record.get("type"), record.get("subtype"), record.get("isSidechain") is True, body, record.get("content")
