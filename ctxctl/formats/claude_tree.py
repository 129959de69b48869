"""The tree of a Claude Code session: which records are on the live branch, and which of those are in the window.

Records hang on each other by `parentUuid`, but a walk from the leaf to the root loses parallel tool calls and their
results (siblings), and a dangling parent cuts off everything before it. So file order is the rule, and only what a
rewind left behind is taken out. Sources: recorded sessions (544 files), the behaviour that claude-code-log's
`dev-docs/dag.md` describes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxctl.formats.base import Diagnostics
from ctxctl.formats.idindex import EMPTY, IdIndex

MESSAGE, PROMPT, BOUNDARY, SIDE, ATTACHED = 1, 2, 4, 8, 16

NO_PARENT, DANGLING = -1, -2


class Boundary(NamedTuple):
    """A compaction record. node: its index; uuids: of records that stay; run: or the head and tail of a run of them;
    anchor: what they follow, the boundary itself or its summary. when: seconds since 1970. ratio: a calibration
    that it states."""

    node: int
    line: int
    trigger: str | None
    before: int | None
    after: int | None
    uuids: tuple[str, ...] = ()
    run: tuple[str, str] | None = None
    anchor: str | None = None
    when: float | None = None
    ratio: float | None = None


class Fork(NamedTuple):
    """Where a conversation was rewound. node: the last shared record; heads: first record of each path."""

    node: int
    heads: tuple[int, ...]


@dataclass(slots=True)
class Live:
    """Result of `Tree.resolve`. nodes: records in the window, in the order in which the model sees them."""

    nodes: list[int] = field(default_factory=list)
    dead: bytearray = field(default_factory=bytearray)
    forks: list[Fork] = field(default_factory=list)
    kept: dict[int, list[int]] = field(default_factory=dict)
    leaf: int = -1
    unreachable: int = 0


class Tree:
    """Records with a uuid, in columns: a session of 200 MB has 50,000 of them.

    before: ids of records on the live path in front of the first one, where reading goes on within a file. behind:
    whether a record changes which of those are on it, so that the whole must be read.
    """

    def __init__(self) -> None:
        self._index = IdIndex()
        self._last: str | None = None
        self._ids = bytearray()
        self._odd_ids: dict[int, str] = {}
        self._pending: dict[int, list[int]] = {}
        self._when = array("q")
        self._steps = 0
        self.parent = array("i")
        self.flags = bytearray()
        self.line = array("i")
        self.first = array("i")
        self.count = array("i")
        self.turn = array("i")
        self.moved: dict[int, int] = {}
        self.is_copy = False
        self.before: frozenset[str] = frozenset()
        self.behind = False

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, uuid: str, parent: str | None, flags: int, line: int, first: int, when: str | None) -> int:
        """Append a record; returns its index. first: number of its first block; `count` and `turn` (of an
        answer) are set by the caller.

        A uuid that was seen before is a copy that the agent wrote again (kept messages after a compaction): the later
        position counts. `is_copy` tells whether the newest record is one.
        """
        node = len(self.parent)
        if self.before and not flags & SIDE:
            # an answer came after every record in front: what the user typed behind one of them is another path
            self.behind |= uuid in self.before or (flags & PROMPT != 0 and parent in self.before)
        key = hash(uuid)
        earlier = self._index.put(key, node)
        self.is_copy = earlier != EMPTY
        if self.is_copy:
            self.moved[earlier] = node
        self._store_id(node, uuid)
        self.parent.append(node - 1 if parent is not None and parent == self._last else self._resolve(parent, node))
        self._last = uuid
        self.flags.append(flags)
        self.line.append(line)
        self.first.append(first)
        self.count.append(0)
        self.turn.append(0)
        self._when.append(hash(when))
        return node

    def _resolve(self, parent: str | None, node: int) -> int:
        if parent is None:
            return NO_PARENT
        key = hash(parent)
        found = self._index.get(key)
        if found in (EMPTY, node):
            if parent in self.before:
                return DANGLING
            self._pending.setdefault(key, []).append(node)
            return DANGLING
        return found

    def _store_id(self, node: int, uuid: str) -> None:
        """A canonical uuid takes 16 bytes instead of 85."""
        if len(uuid) == 36 and uuid[8] == uuid[13] == uuid[18] == uuid[23] == "-" and uuid == uuid.lower():
            try:
                packed = bytes.fromhex(uuid.replace("-", ""))
            except ValueError:
                packed = b""
            if len(packed) == 16:  # blanks between the digits are skipped
                self._ids += packed
                return
        self._ids += bytes(16)
        self._odd_ids[node] = uuid

    def uuid(self, node: int) -> str:
        """The id of a record."""
        odd = self._odd_ids.get(node)
        if odd is not None:
            return odd
        h = self._ids[node * 16 : node * 16 + 16].hex()
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def reaches_behind(self, leaf_hint: str | None) -> bool:
        """Whether a record hangs on one in front of the first that is not known to be on the live path. Nothing speaks
        for it where none is known."""
        if not self.before:
            return False
        hint = leaf_hint is not None and leaf_hint not in self.before and self.find(leaf_hint) is None
        unknown = (n for key, nodes in self._pending.items() if self._index.get(key) == EMPTY for n in nodes)
        return hint or self.behind or any(not self.flags[n] & SIDE for n in unknown)

    def newest(self, line: int, dead: bytearray, most: int) -> list[str]:
        """Ids of records of the main thread in front of a line that are not dead, at most so many, the newest first."""
        found: list[str] = []
        for node in range(len(self) - 1, -1, -1):
            if len(found) == most:
                break
            if self.line[node] < line and not self.flags[node] & SIDE and not dead[node]:
                found.append(self.uuid(node))
        return found

    def find(self, uuid: str | None) -> int | None:
        """Index of a record by uuid, None when it is not in the file."""
        found = self._index.get(hash(uuid)) if uuid is not None else EMPTY
        return found if found != EMPTY else None

    def resolve(
        self,
        boundaries: list[Boundary],
        logical: dict[int, str | None],
        leaf_hint: str | None,
        side: int,
        diagnostics: Diagnostics,
    ) -> Live:
        """Work out the live branch and the window.

        logical: `logicalParentUuid` by boundary node. leaf_hint: the leaf that the agent noted last, if it did so
        after the last record. side: flag value (SIDE or 0) of the thread that the window belongs to.
        """
        live = Live(dead=bytearray(len(self)))
        mine: Sequence[int] = range(len(self))
        if side or any(flags & SIDE for flags in self.flags):
            mine = array("i", (n for n in mine if self.flags[n] & SIDE == side))
        parent, cut = self._links(mine, logical, boundaries, diagnostics)
        if not any(self.flags[n] & MESSAGE for n in mine):
            return live
        hinted = self.find(leaf_hint)
        live.leaf = hinted if hinted is not None and self.flags[hinted] & SIDE == side else mine[-1]
        ancestors = _ancestors(live.leaf, parent)
        live.forks = self._forks(mine, parent, boundaries)
        self._bury(live, mine, parent, ancestors)
        while live.leaf >= 0 and not self.flags[live.leaf] & MESSAGE:
            live.leaf = parent[live.leaf]  # the leaf that users know is a message, not the note behind it
        live.unreachable = self._unreachable(mine, cut, parent, live.leaf)
        self._window(live, mine, boundaries)
        return live

    def _links(
        self, mine: Sequence[int], logical: dict[int, str | None], boundaries: list[Boundary], diagnostics: Diagnostics
    ) -> tuple[array[int], set[int]]:
        """Parents with every gap bridged by file order, and the records behind a gap."""
        parent = self.parent[:]
        cut: set[int] = set()
        self._steps = 4 * len(self)
        for key, children in self._pending.items():
            target = self._index.get(key)
            for node in children:
                if target != EMPTY:
                    if self._is_cycle(node, target):
                        diagnostics.add("warning", "parent_cycle", self._cycle_text(node, target), self.line[node])
                    else:
                        diagnostics.add(
                            "info", "parent_after_child", "parentUuid points to a later record", self.line[node]
                        )
                else:
                    diagnostics.add(
                        "warning",
                        "dangling_parent",
                        "parentUuid names a record that is not in the file; bridged by file order",
                        self.line[node],
                    )
                    cut.add(node)
        tails = {b.node: b.run[1] if b.run else None for b in boundaries}
        for node, uuid in logical.items():
            before = self.find(uuid)
            if before is None and uuid is not None:
                diagnostics.add(
                    "warning",
                    "dangling_parent",
                    "logicalParentUuid names a record that is not in the file; bridged by file order",
                    self.line[node],
                )
                cut.add(node)
                before = self.find(tails.get(node))
            if before is not None and before < node:
                parent[node] = before
        previous = -1
        for node in mine:
            if parent[node] >= node or parent[node] == DANGLING:
                parent[node] = previous
            if self.flags[node] & (MESSAGE | BOUNDARY):
                previous = node
        return parent, cut

    def _is_cycle(self, node: int, target: int) -> bool:
        """Whether the walk from `target` upwards comes back to `node`. All walks together are bounded: a hostile file
        could make each of them as long as itself."""
        while target >= 0 and target != node and self._steps > 0:
            target = self.parent[target]
            self._steps -= 1
        return target == node

    def _cycle_text(self, node: int, target: int) -> str:
        if node == target:
            return "a record is its own parent; file order is used"
        lines = f"lines {self.line[node]} to {self.line[target]}"
        return f"records hang on each other in a circle ({lines}); file order is used"

    def _forks(self, mine: Sequence[int], parent: array[int], boundaries: list[Boundary]) -> list[Fork]:
        """Records from which the user started anew: one path goes on with a typed prompt, and before it another path
        had gone on with an answer or a prompt of its own. Tool results and further blocks of the same response beside
        a prompt belong to the trunk. Paths that start at the same instant are copies that a compaction replays."""
        has_message = bytearray(len(self))
        has_prompt = bytearray(len(self))
        newest = self.turn[:]  # of all answers below a record
        for node in reversed(mine):
            above = parent[node]
            if self.flags[node] & MESSAGE:
                has_message[node] = 1
            if self.flags[node] & PROMPT:
                has_prompt[node] = 1
            if above >= 0:
                has_message[above] |= has_message[node]
                has_prompt[above] |= has_prompt[node]
                newest[above] = max(newest[above], newest[node])
        at = {parent[n] for n in mine if self.flags[n] & PROMPT and parent[n] >= 0}
        kept = {b.node: parent[b.node] for b in boundaries if b.run is not None or b.uuids}
        children: dict[int, list[int]] = {}
        for node in mine:
            above = parent[node]
            # what a compaction preserved goes on behind its boundary as if it still hung there
            if above in at and has_message[node] and kept.get(node) != above:
                children.setdefault(above, []).append(node)
        forks = []
        for node, heads in sorted(children.items()):
            prompts = [h for h in heads if self.flags[h] & PROMPT]
            rivals = [h for h in heads if has_prompt[h] or newest[h] > self.turn[node]]
            if len({self._when[h] for h in rivals}) > 1 and any(h < p for p in prompts for h in rivals[:1]):
                forks.append(Fork(node, tuple(rivals)))
        return forks

    def _bury(self, live: Live, mine: Sequence[int], parent: array[int], ancestors: bytearray) -> None:
        dead = live.dead
        for fork in live.forks:
            chosen = next((h for h in fork.heads if ancestors[h]), fork.heads[-1])
            for head in fork.heads:
                if head != chosen:
                    dead[head] = 1
        if live.forks:
            for node in mine:
                if parent[node] >= 0 and dead[parent[node]]:
                    dead[node] = 1

    def _unreachable(self, mine: Sequence[int], cut: set[int], parent: array[int], leaf: int) -> int:
        """Records that only bridging keeps: those before the gap nearest to the leaf."""
        node = leaf
        while node >= 0 and node not in cut:
            node = parent[node]
        if node < 0:
            return 0
        return sum(1 for n in mine if n < node)

    def _window(self, live: Live, mine: Sequence[int], boundaries: list[Boundary]) -> None:
        shown = MESSAGE | ATTACHED
        start, summaries = -1, 1
        # where a record was first written: the last one of a preserved run may stand again behind the boundary
        first = {later: earlier for earlier, later in self.moved.items()}
        for boundary in boundaries:
            kept = self._preserved(boundary, live, first)
            live.kept[boundary.node] = kept
            if not live.dead[boundary.node]:
                start = boundary.node
                summaries = int(self.find(boundary.anchor) != start)
        rest = [n for n in mine if n > start and self.flags[n] & shown and not live.dead[n] and n not in self.moved]
        kept = [n for n in live.kept.get(start, []) if n < start]
        # the model sees the summary first, if what was preserved follows it, then that, then the rest
        live.nodes = rest[:summaries] + kept + rest[summaries:]

    def _preserved(self, boundary: Boundary, live: Live, first: dict[int, int]) -> list[int]:
        shown = MESSAGE | ATTACHED
        if boundary.run is not None:
            head, tail = self.find(boundary.run[0]), self.find(boundary.run[1])
            if head is None or tail is None:
                return []
            head, tail = first.get(head, head), first.get(tail, tail)
            side = self.flags[boundary.node] & SIDE
            run = (n for n in range(head, tail + 1) if self.flags[n] & shown and self.flags[n] & SIDE == side)
            return [n for n in run if not live.dead[n] and n not in self.moved]
        found = (self.find(uuid) for uuid in boundary.uuids)
        return [n for n in found if n is not None]


def _ancestors(node: int, parent: array[int]) -> bytearray:
    """A mark for each record on the way from a leaf to its root."""
    seen = bytearray(len(parent))
    while node >= 0 and not seen[node]:
        seen[node] = 1
        node = parent[node]
    return seen
