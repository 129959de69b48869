"""Codex rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, cold ones as `.jsonl.zst`.

Source: openai/codex `codex-rs/protocol/src/protocol.rs`, `rollout/src/{policy,recorder}.rs` and
`core/src/codex/rollout_reconstruction.rs`. The window is made of response items alone; events repeat them for the
screen. Usage stands in token_count events as a cumulative counter that is written again and again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.formats.base import FORMATS, Emit, Format, Json, word
from ctxctl.formats.codex_items import CALLS, DIGEST, ITEMS, OUTPUTS, is_injected, item_pieces, said, type_of
from ctxctl.formats.codex_usage import CodexUsage
from ctxctl.formats.content import Piece
from ctxctl.formats.overflow import is_overflow
from ctxctl.formats.session import Call, Session, epoch
from ctxctl.model.block import MAIN
from ctxctl.model.transcript import Compaction, MessageCounts, Overflow, Transcript

if TYPE_CHECKING:
    from ctxctl.formats.draft import Draft
    from ctxctl.formats.tail import Point

ENVELOPES = frozenset(
    (
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "token_usage_record",
    )
)
ANSWERS = frozenset(("reasoning", "agent_message")) | CALLS
COPIED_WITHIN = 1.0
"""A fork copies its parent's lines in one go, re-stamped within a second; no model call is that fast."""
SAID = 400
"""Newest messages in front of a point that are known where reading goes on: a replacement history repeats them."""


@FORMATS.register("codex")
class Codex(Format):
    """One rollout."""

    name = "codex"
    title = "Codex rollout (.jsonl, .jsonl.zst)"
    priority = 10
    appends = True

    def __init__(self, path: str, emit: Emit, *, usage_only: bool = False) -> None:
        super().__init__(path, emit, usage_only=usage_only)
        self.session = Session(emit, self.saw_model)
        self.thread = self.session.threads[MAIN]
        self.counter = CodexUsage()
        self.id: str | None = None
        self.cwd: str | None = None
        self.model: str | None = None
        self.live: list[int] = []
        self.prompts: list[int] = []
        self.order: dict[int, str] = {}
        self.compactions: list[Compaction] = []
        self.overflows: list[Overflow] = []
        self.known: dict[bytes, list[range]] = {}
        self.encrypted: dict[int, Call] = {}
        self._reasoned: list[int] = []
        self._copied_calls = 0
        self._base: range = range(0)
        self.dropped: list[tuple[int, tuple[int, ...]]] = []
        self.users = 0
        self.assistants = 0
        self._open: Call | None = None
        self._forked_at: float | None = None
        self._goes_on = False
        self._said: list[bytes] = []
        self._forgotten = False
        self._at: dict[str, Any] = {}
        self._at_said = 0

    @classmethod
    def sniff(cls, records: Sequence[Json], path: str) -> bool:
        for record in records:
            if not isinstance(record, dict):
                continue
            if word(record, "type") in ENVELOPES and isinstance(record.get("payload"), dict):
                return True
            if record.get("record_type") == "state" or (
                "instructions" in record and "id" in record and "type" not in record
            ):
                return True
            if (
                word(record, "type") in ("function_call", "function_call_output", "reasoning")
                and "payload" not in record
            ):
                return True
        return False

    def wanted(self, line: bytes) -> bool:
        head = line[:400]
        return b'"token_count"' in head or any(
            word in head for word in (b'"session_meta"', b'"turn_context"', b'"compacted"', b'"thread_rolled_back"')
        )

    @classmethod
    def rewrite(cls, draft: Draft) -> Iterator[bytes]:
        from ctxctl.formats.codex_write import rewrite_rollout

        return rewrite_rollout(draft)

    def go_on(self, point: Point) -> None:
        more = point.more
        self.session.go_on(point)
        self._goes_on = True
        self.cwd, self.model, self._forked_at = more.get("cwd"), more.get("model"), more.get("forked")
        self._forgotten = bool(more.get("forgotten"))
        if "counter" in more:
            self.counter.go_on(more["counter"])
        self._at = {key: more[key] for key in ("model", "forked", "counter") if key in more}
        known = base64.b85decode(more.get("said", ""))
        self._said = [known[at : at + DIGEST] for at in range(0, len(known), DIGEST)]
        self._at_said = len(self._said)
        for key in self._said:  # the message stays the blocks that it was, and none is placed for it
            self.known.setdefault(key, []).append(range(0))

    def point(self) -> Point:
        before = self._said[: self._at_said]
        kept = base64.b85encode(b"".join(before[-SAID:])).decode()
        forgotten = self._forgotten or len(before) > SAID
        return self.session.point(**self._at, cwd=self.cwd, said=kept, forgotten=forgotten)

    def feed(self, record: Json, line: int) -> None:
        payload = record.get("payload")
        type_ = record.get("type")
        when = record.get("timestamp")
        when = when if isinstance(when, str) else None
        if not isinstance(payload, dict):
            self._legacy(record, line, when)
        elif type_ == "response_item":
            self._item(payload, line, when)
        elif type_ == "event_msg":
            self._event(payload, line, when)
        elif type_ == "turn_context":
            model = payload.get("model")
            self.model = model if isinstance(model, str) and model else self.model
            self._open = None
        elif type_ == "session_meta":
            self._meta(payload, line, when)
        elif type_ == "compacted":
            self._compacted(payload, line, when)

    def _meta(self, payload: dict[str, Json], line: int, when: str | None) -> None:
        """The first one is the session's own; further ones were copied from the parents of a fork."""
        if self.id is not None:
            self._forked_at = self._forked_at or epoch(when)
            return
        id_ = payload.get("id", payload.get("session_id"))
        self.id = id_ if isinstance(id_, str) else ""
        cwd = payload.get("cwd")
        self.cwd = cwd if isinstance(cwd, str) else None
        source = payload.get("source")
        spawned = isinstance(source, dict) and "subagent" in source
        if payload.get("forked_from_id") or payload.get("parent_thread_id") or spawned:
            self._forked_at = epoch(when)
        base = payload.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else payload.get("instructions")
        if isinstance(text, str) and text and not self.usage_only:
            self._base = self._place([Piece("system", text)], "system", line, when)

    def _legacy(self, record: dict[str, Json], line: int, when: str | None) -> None:
        """Rollouts of before September 2025: bare items behind a header."""
        if word(record, "type") in ITEMS:
            self._item(record, line, when)
        elif "instructions" in record or "id" in record:
            self._meta(record, line, when)
        elif record.get("record_type") is None:
            self.diagnostics.add("warning", "odd_shape", f"a {record.get('type')} record without a payload", line)

    # -- items -----------------------------------------------------------------------------------------------------

    def _item(self, item: dict[str, Json], line: int, when: str | None) -> None:
        if self.usage_only:
            return
        type_ = type_of(item)
        parts = list(item_pieces(item))
        if not parts:
            if type_ not in ("ghost_snapshot", "message", "reasoning", None):
                self.diagnostics.add("info", "unknown_item", f"an item of type {type_!r}; kept, not counted", line)
            return
        role = word(item, "role")
        answer = type_ in ANSWERS or role == "assistant"
        turn = None
        if answer:
            if self._open is None:
                self._open = self._call(line, when)
            turn = self._open.turn
            if type_ == "reasoning" and item.get("encrypted_content"):
                self.encrypted[self.session.blocks] = self._open
                self._reasoned.append(self.session.blocks)
        elif type_ in OUTPUTS or role == "user":
            self._open = None  # what comes in after an answer belongs to the next call
        first = self.session.blocks
        if type_ in ("message", None) and role == "user" and not is_injected(item) and parts[0].kind != "summary":
            self.thread.exchange += 1
            self.users += 1
            self.prompts.append(first)
            self._drop_reasoning()
        elif type_ == "message" and role == "assistant":
            self.assistants += 1
        self._place(parts, str(role or ("assistant" if answer else "tool")), line, when, turn)
        self.order[first] = str(line)
        if self._is_copied(when):
            self._copied_calls = len(self.session.calls)
        if type_ == "message" or type_ is None:
            self._said.append(key := said(role, parts))
            self.known.setdefault(key, []).append(range(first, self.session.blocks))

    def _drop_reasoning(self) -> None:
        """The provider drops the reasoning of earlier turns when the user speaks again (OpenAI's guide on reasoning
        models; the reported tokens of recorded sessions fall by just that)."""
        gone = set(self._reasoned)
        if gone:
            # they lie at the end of the window: nothing in front of the first of them changes
            start = len(self.live)
            while start and self.live[start - 1] >= self._reasoned[0]:
                start -= 1
            self.live[start:] = [b for b in self.live[start:] if b not in gone]
            self.dropped.append((self.session.blocks, tuple(self._reasoned)))
            self._reasoned = []

    def _place(self, parts: list[Piece], role: str, line: int, when: str | None, turn: int | None = None) -> range:
        first = self.session.blocks
        response = f"call-{turn}" if turn is not None else None
        n = self.session.place(parts, role, self.thread, line, when, turn=turn, response_id=response)
        self.live.extend(range(first, first + n))
        return range(first, first + n)

    def _call(self, line: int, when: str | None, counter: list[Any] | None = None) -> Call:
        self._at_said = len(self._said)
        counter = counter or self.counter.state()
        self._at = {"model": self.model, "forked": self._forked_at, "counter": counter}
        call = self.session.call(self.thread, line, self.model, when)
        call.reported = False
        return call

    def _compacted(self, payload: dict[str, Json], line: int, when: str | None) -> None:
        """The replacement history takes the place of everything before; older versions keep the user's messages."""
        self.saw_cut()
        at = self.session.blocks
        history = payload.get("replacement_history")
        summary = payload.get("message")
        # the instructions are no part of the history: each request states them
        base = [b for b in self._base if b in self.live]
        before, self.live, self._reasoned = self.live, list(base), []
        kept: list[int] = list(base)
        if self.usage_only:
            pass
        elif isinstance(history, list):
            known = {key: list(blocks) for key, blocks in self.known.items()}
            for item in history:
                if isinstance(item, dict):
                    kept.extend(self._replaced(item, line, when, known))
        else:
            prompts = set(self.prompts)
            start = self.prompts[0] if self.prompts else 0
            kept = [b for b in before if b in prompts or b in base or b < start]
            self.live = list(kept)
            if isinstance(summary, str) and summary:
                self._place([Piece("summary", summary)], "user", line, when)
        window = set(self.live)
        self.prompts = [p for p in self.prompts if p in window]
        self._open = None
        tokens = self.counter.context
        self.compactions.append(
            Compaction(self.thread.calls + 1, at, "full", line, "auto", before=tokens, kept=tuple(kept))
        )
        self.counter.context = None

    def _replaced(
        self, item: dict[str, Json], line: int, when: str | None, known: dict[bytes, list[range]]
    ) -> Sequence[int]:
        """One item of a replacement history: an earlier message stays the block that it was, a new one is a summary.

        known: earlier messages by what they say; of several equal ones each stands for one item.
        """
        parts = list(item_pieces(item))
        role = word(item, "role")
        earlier = known.get(said(role, parts))
        if earlier:
            kept = earlier.pop(0)
            self.live.extend(kept)
            return kept
        if role in ("user", "assistant") and not is_injected(item):
            self.behind |= self._forgotten  # it may be an old message rather than a summary
            parts = [p._replace(kind="summary") if p.kind in ("user_message", "assistant") else p for p in parts]
        first = self.session.blocks
        self._place(parts, str(role or "user"), line, when)
        self.order[first] = f"{line}.{first}"
        return ()

    # -- events ----------------------------------------------------------------------------------------------------

    def _event(self, payload: dict[str, Json], line: int, when: str | None) -> None:
        type_ = payload.get("type")
        if type_ == "token_count":
            self._token_count(payload.get("info"), line, when)
        elif type_ == "task_started":
            self.counter.window_of(payload)
        elif type_ in ("error", "stream_error"):
            text = word(payload, "message") or ""
            if is_overflow(text):
                self.overflows.append(Overflow(self.thread.calls + 1, line, text[:200]))
        elif type_ == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"), line)

    def _token_count(self, info: Json, line: int, when: str | None) -> None:
        if not isinstance(info, dict):
            return
        copied = self._is_copied(when)
        before = self.counter.state()
        spent = self.counter.step(info, line, self.diagnostics, inherited=copied)
        if isinstance(info.get("model"), str):
            self.model = info["model"]
        if spent is None or copied:
            return
        # since late 2025 the count follows the items of its call; before, it stood in front of them
        last = self.session.calls[-1] if self.session.calls else None
        own = len(self.session.calls) > self._copied_calls
        behind = own and last is not None and not last.reported and last.context is None
        call = last if last is not None and behind else self._call(line, when, before)
        spent.fill(call, line)
        call.model = call.model or self.model
        if spent.overflow:
            self.overflows.append(Overflow(call.turn, line, "the window was declared full after an overflow"))
        self._open = None if behind else call

    def _is_copied(self, when: str | None) -> bool:
        """Whether a line of a fork was copied from its parent: stamped before the fork, or within a second of it."""
        if self._forked_at is None:
            return False
        at = epoch(when)
        return at is not None and at <= self._forked_at + COPIED_WITHIN

    def _roll_back(self, turns: Json, line: int) -> None:
        """The user took back their last prompts: everything from the first of them on leaves the window."""
        if not isinstance(turns, int) or isinstance(turns, bool) or turns <= 0:
            return
        at, start = self.session.blocks, None
        self.behind |= self._goes_on and turns > len(self.prompts)
        if self.prompts:
            start = self.prompts[-turns] if turns <= len(self.prompts) else self.prompts[0]
            position = self.live.index(start) if start in self.live else 0
            self.live = self.live[:position]
            self._reasoned = [block for block in self._reasoned if block < start]
            self.prompts = self.prompts[: -turns or None]
        self._open = None
        self.compactions.append(
            Compaction(self.thread.calls + 1, at, "rollback", line, f"{turns} turns", back_to=start)
        )

    def _reasoning(self) -> dict[int, int]:
        """Tokens of encrypted reasoning, as the provider counted them; shared out where a call has several items."""
        shares: dict[int, list[int]] = {}
        for block, call in self.encrypted.items():
            if call.reported:
                shares.setdefault(call.turn, []).append(block)
        return {b: self.encrypted[b].reasoning // len(blocks) for blocks in shares.values() for b in blocks}

    def finish(self) -> Transcript:
        window = set(self.live)
        stated = self._reasoning()
        usage = self.session.usage()
        return Transcript(
            id=self.id or None,
            format=self.name,
            path=self.path,
            model=self.model or self.session.main_model(),
            models=tuple(self.session.models),
            live=tuple(self.live),
            order=tuple(name for block, name in self.order.items() if block in window),
            usage=usage,
            call_keys=[hash((self.id, call.turn)) for call in usage] if self.id else (),
            inherited=self.counter.inherited,
            compactions=tuple(self.compactions),
            overflows=tuple(self.overflows),
            threads=(MAIN,),
            records=self.records,
            exchanges=self.thread.exchange,
            messages=MessageCounts(self.users, self.assistants, 0),
            complete=self.complete,
            window=self.counter.window,
            context_has_answer=True,
            stated=stated,
            dropped=tuple(self.dropped),
            cwd=self.cwd,
            diagnostics=self.diagnostics.items(),
        )
