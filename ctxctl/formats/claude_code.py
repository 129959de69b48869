"""Claude Code sessions: `~/.claude/projects/<folder>/<session>.jsonl` with the files of their sub-agents.

The vendor publishes no schema. What is read here follows recorded sessions of versions 1.0 to 2.1: one response
stands on several lines (one content block each, usage repeated), records form a tree, compactions are boundary
records with everything before them still in the file.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxctl.formats import claude_tree as tree
from ctxctl.formats.base import FORMATS, Emit, Format, Json, word
from ctxctl.formats.claude_boundary import boundary_of
from ctxctl.formats.claude_companions import belongs_to_a_session, companions_of
from ctxctl.formats.claude_result import build, words
from ctxctl.formats.claude_side import HEADS, PROMPT, SideLines, is_record
from ctxctl.formats.claude_snapshots import Snapshots
from ctxctl.formats.claude_text import attached, typed
from ctxctl.formats.content import pieces
from ctxctl.formats.idindex import EMPTY, IdIndex
from ctxctl.formats.overflow import is_overflow
from ctxctl.formats.session import Call, Session, Thread, anthropic_usage
from ctxctl.model.block import MAIN, UNNAMED
from ctxctl.model.transcript import Overflow, Transcript

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft
    from ctxctl.formats.tail import Point

USER_RECORD = b'"type":"user","message":{"role":"user"'
NOT_COPIED = ("compact_boundary", "microcompact_boundary", "api_error")
"""Subtypes of system records that a compacted session does without."""
OVERFLOW_STOP = "model_context_window_exceeded"
NO_ID = 0
LEAVES, CALLS = 64, 16
"""Newest records and calls in front of a point that are known where reading goes on from it."""


@FORMATS.register("claude-code")
class ClaudeCode(Format):
    """One session file, and the files of its sub-agents as further threads."""

    name = "claude-code"
    title = "Claude Code session (.jsonl, with sub-agent files)"
    priority = 20
    summary_first = True
    appends = True

    def __init__(self, path: str, emit: Emit, *, usage_only: bool = False) -> None:
        super().__init__(path, emit, usage_only=usage_only)
        self.session = Session(emit, self.saw_model)
        self.tree = tree.Tree()
        self.id: str | None = None
        self.cwd: str | None = None
        self.boundaries: list[tree.Boundary] = []
        self.side_boundaries: list[tree.Boundary] = []
        self.boundary_turns: dict[int, int] = {}
        self.micro: list[tuple[int, int, int, dict[str, Json], int, list[int]]] = []
        self.logical: dict[int, str | None] = {}
        self.leaf_hint: str | None = None
        self.overflows: list[Overflow] = []
        self.snapshots = Snapshots()
        self.results: dict[int, int] = {}
        self._calls = IdIndex()
        self.call_keys = array("q")
        self.requests = array("q")
        self._newest: tuple[Call | None, Json] = (None, None)
        self.shown: dict[str, int] = {}
        self.errors = 0
        self.users: dict[str, int] = {}
        self.assistants: dict[str, int] = {}
        self.parts: list[tuple[int, str]] = []
        self._stated: tuple[bytes, bytes] | None = None
        self.side = SideLines()
        self._newest_cut: float | None = None
        self._companion: str | None = None
        self._sidechain = ""
        self.goes_on = False
        self.dead = bytearray()
        self._leaves: tuple[str, ...] = ()
        self._before: dict[tuple[str | None, str], Call] = {}
        self._recent: deque[tuple[str, str, int]] = deque(maxlen=CALLS + 1)

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        return any(isinstance(r, dict) and is_record(r) for r in records)

    def wanted(self, line: bytes) -> bool:
        if line.find(USER_RECORD, 0, 700) >= 0 and line.find(b'"assistant"', 0, 700) < 0:
            # tool results are most of a file's bytes: they are told by their head, and a record glued to one by the
            # usage at its end
            return line.find(b'"output_tokens":', max(0, len(line) - 4096)) >= 0
        output = line.find(b'"output_tokens":')
        if output < 0:
            return line.find(b"compact_boundary", 0, 4096) >= 0
        start, id_ = line.rfind(b'"usage":{', 0, output), line.find(b'"id":"msg', 0, 2000)
        if start >= 0 and id_ >= 0:
            # the further lines of a response repeat its figures byte for byte
            stated = (line[id_ : id_ + 40], line[start : output + 40])
            if stated == self._stated and line.find(b'"output_tokens":', output + 1) < 0:
                return False
            self._stated = stated
        return b'"assistant"' in line

    @classmethod
    def companions(cls, path: Path) -> list[Path]:
        return companions_of(path)

    @classmethod
    def is_companion(cls, path: Path) -> bool:
        return belongs_to_a_session(path)

    def begin_companion(self, path: Path) -> None:
        stem = path.name.partition(".jsonl")[0]
        self._companion = stem.removeprefix("agent-")
        self.session.prefix = f"{stem}:"
        self.parts.append((self.session.blocks, self.session.prefix))

    def go_on(self, point: Point) -> None:
        self.session.go_on(point)
        self.goes_on, self.cwd = True, point.more.get("cwd")
        self.tree.before, self._leaves = frozenset(point.leaves), point.leaves
        for id_, request, turn in point.more.get("calls", ()):
            self._recent.append((id_, request, turn))
            self._before[id_, request] = Call(turn, MAIN, point.line)

    def point(self) -> Point:
        line, turn, _, _ = self.session.newest
        leaves = (*self.tree.newest(line, self.dead, LEAVES), *self._leaves)[:LEAVES]
        calls = [list(entry) for entry in self._recent if entry[2] <= turn][-CALLS:]
        return self.session.point(leaves, calls=calls, cwd=self.cwd)

    # -- records ---------------------------------------------------------------------------------------------------

    def feed(self, record: Json, line: int) -> None:
        type_ = word(record, "type")
        if self.id is None and isinstance(record.get("sessionId"), str):
            self.id = record["sessionId"]
        if type_ == "assistant":
            self._assistant(record, line)
        elif type_ == "progress" and isinstance(record.get("uuid"), str):
            data = record.get("data")
            agent = word(data, "agentId") if isinstance(data, dict) else None
            if agent is not None:
                self.shown.setdefault(agent, line)
            self._node(record, line, 0)
        elif self.usage_only:
            if type_ == "system":
                self._system(record, line)
        elif type_ == "user":
            self._user(record, line)
        elif type_ == "system":
            self._system(record, line)
        elif type_ == "attachment":
            self._attachment(record, line)
        elif type_ in HEADS and self._companion is None:
            self.side.note(type_, line, record.get("messageId"))
            if type_ == PROMPT:
                leaf = record.get("leafUuid")
                self.leaf_hint = leaf if isinstance(leaf, str) else None
        elif isinstance(record.get("uuid"), str):
            self._bare(self._node(record, line, 0))
        elif type_ is None and "message" not in record:
            self.diagnostics.add("warning", "unknown_record", "an object without a type; kept, not counted", line)

    def _node(self, record: dict[str, Json], line: int, flags: int) -> int:
        """The record's place in the tree, -1 when it has no uuid."""
        uuid = record.get("uuid")
        if self._companion is not None or self.usage_only:
            return -1
        if record.get("isSidechain") is True:
            flags |= tree.SIDE
        if not isinstance(uuid, str):
            uuid = f"line:{line}"
        parent = record.get("parentUuid")
        if flags & (tree.MESSAGE | tree.ATTACHED):
            self.leaf_hint = None  # a note about the leaf holds until the next message
        when = record.get("timestamp")
        return self.tree.add(
            uuid,
            parent if isinstance(parent, str) else None,
            flags,
            line,
            self.session.blocks,
            when if isinstance(when, str) else None,
        )

    def _bare(self, node: int) -> None:
        """A record of the chain that holds no block."""
        if node >= 0:
            self.side.bare.append(node)

    def _thread(self, record: dict[str, Json]) -> Thread:
        if self._companion is not None:
            return self.session.thread(self._companion)
        if record.get("isSidechain") is not True:
            return self.session.threads[MAIN]
        agent = record.get("agentId")
        if isinstance(agent, str) and agent:
            return self.session.thread(agent)
        # before 2.0 the helpers stood in the session's own file without an id; a root starts a new one
        if record.get("parentUuid") is None or not self._sidechain:
            self._sidechain = f"{UNNAMED}{len(self.session.threads)}"
        return self.session.thread(self._sidechain)

    def _message(self, record: dict[str, Json], line: int) -> dict[str, Json] | None:
        message = record.get("message")
        if isinstance(message, dict) and ("content" in message or "usage" in message):
            return message
        if self._companion is None and isinstance(record.get("uuid"), str):
            self._node(record, line, 0)
        what = "no message" if message is None else f"a message of type {type(message).__name__} without content"
        self.diagnostics.add("warning", "odd_shape", f"a {record.get('type')} record with {what}", line)
        return None

    # -- user ------------------------------------------------------------------------------------------------------

    def _user(self, record: dict[str, Json], line: int) -> None:
        message = self._message(record, line)
        if message is None:
            return
        thread = self._thread(record)
        if record.get("isCompactSummary") is True:
            parts, prompt = list(pieces(message.get("content"), "summary")), False
        elif record.get("isMeta") is True:
            parts, prompt = list(pieces(message.get("content"), "memory_injection")), False
        else:
            parts, prompt = typed(message.get("content"))
        node = self._node(record, line, tree.MESSAGE | (tree.PROMPT if prompt else 0))
        if prompt and not (node >= 0 and self.tree.is_copy):
            thread.exchange += 1
        for offset, part in enumerate(parts):
            if part.kind == "tool_result" and part.call_id is not None and self._companion is None:
                self.results[hash(part.call_id)] = self.session.blocks + offset
        when = record.get("timestamp")
        count = self.session.place(parts, "user", thread, line, when if isinstance(when, str) else None)
        if node >= 0:
            self.tree.count[node] = count
        self.users[thread.name] = self.users.get(thread.name, 0) + 1
        if self.cwd is None and isinstance(record.get("cwd"), str):
            self.cwd = record["cwd"]

    def _attachment(self, record: dict[str, Json], line: int) -> None:
        attachment, meta = record.get("attachment"), record.get("isMeta") is True
        parts, prompt = attached(attachment, meta=meta) if isinstance(attachment, dict) else ([], False)
        # what was typed meanwhile is no prompt of the tree: the user did not go back to where it hangs
        node = self._node(record, line, tree.ATTACHED if parts else 0)
        if not parts:
            self._bare(node)
        when = record.get("timestamp")
        thread = self._thread(record)
        if prompt and not (node >= 0 and self.tree.is_copy):
            thread.exchange += 1
        count = self.session.place(parts, "user", thread, line, when if isinstance(when, str) else None)
        if node >= 0:
            self.tree.count[node] = count

    # -- assistant -------------------------------------------------------------------------------------------------

    def _assistant(self, record: dict[str, Json], line: int) -> None:
        message = self._message(record, line)
        if message is None:
            return
        model = message.get("model")
        if model == "<synthetic>" or record.get("isApiErrorMessage") is True:
            self._client_error(record, message, line)
            return
        thread = self._thread(record)
        id_ = message.get("id")
        id_ = id_ if isinstance(id_, str) and id_ else None
        when = record.get("timestamp")
        call = self._call(record, id_, thread, line, model if isinstance(model, str) else None, when)
        if call is None:
            self._node(record, line, 0)
            self.diagnostics.add("info", "replayed_call", "a helper repeats a call of the main thread; left out", line)
            return
        usage = message.get("usage")
        if isinstance(usage, dict):
            self._usage(call, usage, line)
        if message.get("stop_reason") == OVERFLOW_STOP:
            self.overflows.append(Overflow(call.turn, line, "the answer stopped at the end of the window"))
        if self.usage_only:
            return
        node = self._node(record, line, tree.MESSAGE)
        parts = list(pieces(message.get("content"), "assistant"))
        if id_ is not None and not (node >= 0 and self.tree.is_copy):
            parts = self.snapshots.fresh(thread.name, hash(id_), parts, self.session.blocks)
        count = self.session.place(
            parts, "assistant", thread, line, when if isinstance(when, str) else None, turn=call.turn, response_id=id_
        )
        if node >= 0:
            self.tree.count[node] = count
            self.tree.turn[node] = call.turn
        self.assistants[thread.name] = self.assistants.get(thread.name, 0) + 1

    def _call(
        self, record: dict[str, Json], id_: str | None, thread: Thread, line: int, model: str | None, when: Json
    ) -> Call | None:
        """The model call that a line belongs to: one per message id and request id, as far as stated. None for a
        replay of a main-thread response inside a helper."""
        request = _hash(record.get("requestId"))
        key = _hash(id_ if id_ is not None else record.get("uuid"))
        number = self._calls.get(key) if key else EMPTY
        if number != EMPTY and id_ is not None and request and self.requests[number] not in (NO_ID, request):
            if self.session.calls[number].thread == MAIN != thread.name:
                return None
            key = hash((id_, request))
            number = self._calls.get(key)
        if number != EMPTY:
            call = self.session.calls[number]
            call.line = line
            self.requests[number] = self.requests[number] or request
            return call
        stated = word(record, "requestId") or ""
        if self._before and thread.name == MAIN and (id_, stated) in self._before:
            return self._before[id_, stated]  # a response of before goes on
        if key:
            self._calls.put(key, len(self.session.calls))
        self.call_keys.append(key)
        self.requests.append(request)
        call = self.session.call(thread, line, model, when if isinstance(when, str) else None)
        if thread.name == MAIN and id_ is not None:
            self._recent.append((id_, stated, call.turn))
        # a copy that was written behind a compaction tells the window as it was before
        cut = self._newest_cut if thread.name == MAIN else None
        call.stale = call.time is not None and cut is not None and call.time < cut
        return call

    def _usage(self, call: Call, usage: dict[str, Json], line: int) -> None:
        if self._newest[0] is call and self._newest[1] == usage:
            return  # most lines of a response repeat the same figures
        self._newest = (call, usage)
        anthropic_usage(call, usage, line, self.diagnostics)

    def _client_error(self, record: dict[str, Json], message: dict[str, Json], line: int) -> None:
        """A record that the client itself wrote in place of an answer: never sent to a model."""
        self.errors += 1
        self._node(record, line, 0)
        text = " ".join(part.text for part in pieces(message.get("content"), "assistant"))
        if is_overflow(text):
            self.overflows.append(Overflow(self._thread(record).calls + 1, line, text[:200]))

    # -- system ----------------------------------------------------------------------------------------------------

    def _system(self, record: dict[str, Json], line: int) -> None:
        subtype, is_side = record.get("subtype"), record.get("isSidechain") is True
        is_boundary = subtype == "compact_boundary"
        node = self._node(record, line, tree.BOUNDARY if is_boundary else 0)
        if subtype not in NOT_COPIED:
            self._bare(node)
        if is_boundary:
            thread = self.session.threads[MAIN]
            if is_side:
                if node < 0:
                    return
                agent = record.get("agentId")
                thread = self.session.threads.get(agent if isinstance(agent, str) else self._sidechain, thread)
            elif node < 0:  # usage alone is read: the tree is not built
                node = -1 - len(self.boundaries)
            logical = record.get("logicalParentUuid")
            self.logical[node] = logical if isinstance(logical, str) else None
            boundary = boundary_of(record, node, line, self.diagnostics)
            self.boundary_turns[node] = thread.calls + 1
            self.snapshots.close(thread.name)
            if is_side:
                self.side_boundaries.append(boundary)
                return
            self.boundaries.append(boundary)
            self.saw_cut()
            self.results.clear()  # what is cleared later lies behind the boundary
            self._newest_cut = boundary.when
        elif subtype == "microcompact_boundary" and not is_side:
            data = record.get("microcompactMetadata")
            data = data if isinstance(data, dict) else {}
            # resolved now: a later compaction may keep what was cleared
            cleared = [self.results.get(hash(id_)) for id_ in words(data.get("compactedToolIds"))]
            turn = self.session.threads[MAIN].calls + 1
            self.micro.append((turn, self.session.blocks, line, data, node, [b for b in cleared if b is not None]))

    def finish(self) -> Transcript:
        transcript = build(self)
        self.behind = self.goes_on and self.tree.reaches_behind(self.leaf_hint)
        return transcript

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.claude_write import rewrite

        return rewrite(draft)


def _hash(value: Json) -> int:
    """A short stand-in for an id, NO_ID for none."""
    return hash(value) if isinstance(value, str) and value else NO_ID
