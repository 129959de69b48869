"""What a compacted Claude Code session consists of, in the order of its window: records that stay, with the blocks that
stay of them, summaries, and results that must be made up so that every call is answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxctl.formats.draft import Draft
from ctxctl.formats.fates import LEFT_OUT
from ctxctl.model.block import Block
from ctxctl.model.edits import Outcome
from ctxctl.model.transcript import Diagnostic

NOTE = "memory_injection"
"""Kind of what the client adds on its own: it opens no conversation and answers no call."""

RESULTS = ("tool_result", "image", "document")


@dataclass(slots=True)
class Kept:
    """A record of the input. live: its blocks that stay, by their index within its line. base: index of the record's
    first block, more than 0 where records stand on one line. group: the response that it belongs to."""

    line: int
    message: int
    live: dict[int, Block] = field(default_factory=dict)
    group: str | None = None


class Made(NamedTuple):
    """A record of its own for a summary."""

    text: str


class Stub(NamedTuple):
    """A result that is made up for a call. group: the call's response."""

    call_id: str
    group: str | None


Item = Kept | Made | Stub


@dataclass(frozen=True, slots=True)
class Plan:
    """summary: what stands right behind the boundary. texts: what stands for blocks, by their id."""

    summary: str | None
    items: list[Item]
    texts: dict[str, str]


def plan(draft: Draft) -> Plan:
    """The records to write. Results without their call are left out, and noted."""
    outcome, blocks = draft.outcome, draft.blocks
    texts: dict[str, str] = {}
    summary: str | None = None
    items: list[Item] = []
    newest: Kept | None = None
    calls = {b.call_id: b for b in map(blocks.__getitem__, _own(outcome)) if b.kind == "tool_call" and b.call_id}
    answered: set[str | None] = set()
    for number in outcome.live:
        block, change = blocks[number], outcome.changed.get(number)
        if change is not None and change.summary:
            if summary is None:
                summary = change.text
            else:
                items.append(Made(change.text))
            continue
        if block.kind in RESULTS and block.call_id is not None:
            if block.call_id not in calls:
                draft.notes.append(
                    Diagnostic("warning", "orphan_result", "a result without its call is left out", block.source.line)
                )
                continue
            if block.kind == "tool_result":
                answered.add(block.call_id)
        if change is not None:
            texts[block.id] = change.text
        elif number in draft.transcript.cleared:
            texts[block.id] = block.text
        if newest is None or (newest.line, newest.message) != (block.source.line, block.message):
            newest = Kept(block.source.line, block.message)
            items.append(newest)
        newest.live[block.source.index] = block
        newest.group = newest.group or _response(block, calls)
    open_calls = _open_calls(blocks[n] for n in reversed(list(_own(outcome))))
    speaks = (block.role for i in items if isinstance(i, Kept) for block in i.live.values() if block.kind != NOTE)
    if summary is None and next(speaks, None) == "assistant" != _first_role(draft):
        summary = LEFT_OUT
        draft.notes.append(
            Diagnostic("info", "first_message", "the user's first message left: a line says so in its place")
        )
    return Plan(summary, _answered(draft, items, answered | open_calls), texts)


def _first_role(draft: Draft) -> str | None:
    """Who spoke first in the window as it was."""
    before = (draft.blocks[n] for n in draft.transcript.live if n in draft.blocks)
    return next((block.role for block in before if block.kind != NOTE), None)


def _own(outcome: Outcome) -> Iterable[int]:
    """Numbers of blocks that stay in some form of their own."""
    return (n for n in outcome.live if (change := outcome.changed.get(n)) is None or not change.summary)


def _response(block: Block, calls: dict[str, Block]) -> str | None:
    if block.role == "assistant":
        return block.response_id
    call = calls.get(block.call_id) if block.call_id is not None else None
    return call.response_id if call is not None else None


def _open_calls(newest_first: Iterable[Block]) -> set[str | None]:
    """Ids of the calls of the newest answer, which may still get their results."""
    found: set[str | None] = set()
    response: str | None = None
    for block in newest_first:
        if block.role == "assistant":
            own = block.response_id or f"line {block.source.line}"
            if response not in (None, own):
                break
            response = own
            if block.kind == "tool_call":
                found.add(block.call_id)
        elif block.kind != NOTE and not (block.kind in RESULTS and block.call_id is not None):
            break
    return found


def _answered(draft: Draft, items: list[Item], known: set[str | None]) -> list[Item]:
    """The records with a made-up result behind each call that has none and won't get one."""
    found: list[Item] = []
    for item in items:
        found.append(item)
        if isinstance(item, Kept):
            for block in item.live.values():
                if block.kind == "tool_call" and block.call_id is not None and block.call_id not in known:
                    found.append(Stub(block.call_id, item.group))
                    draft.notes.append(
                        Diagnostic("info", "made_result", "a call without a result gets one", block.source.line)
                    )
    return found
