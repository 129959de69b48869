"""Ids of calls that stand twice in one window: providers want them unique on each side (rule V3), and models repeat
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxctl.formats.base import Json
from ctxctl.formats.codex_items import CALLS, OUTPUTS
from ctxctl.formats.content import Piece
from ctxctl.formats.draft import Draft
from ctxctl.model.transcript import Diagnostic

RENAMED = "renamed_ids"
"""Code of the note that says it."""
CALL_BLOCKS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
MEDIA = ("image", "document")


class FreshIds:
    """Gives ids that no other call has. taken: those that are in use."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def of(self, id_: str) -> str:
        """A new id for a further call of an id: `<id>_2` and on."""
        number = self._next.get(id_, 2)
        while (new := f"{id_}_{number}") in self._taken:
            number += 1
        self._next[id_] = number + 1
        self._taken.add(new)
        return new


def new_ids(draft: Draft) -> dict[tuple[int, int], str]:
    """New ids for the blocks of a draft whose call has the id of an earlier one, by their line and index in it: the
    draft's `renamed`. Noted in the draft too.

    A result belongs to the newest call of its id that has none; of several in one message, to the first.
    """
    outcome, blocks = draft.outcome, draft.blocks
    fresh = FreshIds(b.call_id for b in blocks.values() if b.call_id is not None)
    found = draft.renamed
    open_: dict[str, list[tuple[int, str]]] = {}
    answered: dict[str, tuple[int, str]] = {}
    renamed = 0
    for number in outcome.live:
        block = blocks[number]
        change = outcome.changed.get(number)
        if block.call_id is None or (change is not None and change.summary):
            continue
        old = new = block.call_id
        if block.kind == "tool_call":
            if old in open_:
                new = fresh.of(old)
                renamed += 1
            open_.setdefault(old, []).append((block.message, new))
        elif block.kind in ("tool_result", *MEDIA):
            waiting = open_.get(old, [])
            if block.kind in MEDIA and answered.get(old, (None, ""))[0] == block.message:
                new = answered[old][1]  # a picture goes with the text of its result
            elif waiting:
                at = next(i for i, call in enumerate(waiting) if call[0] == waiting[-1][0])
                new = waiting.pop(at)[1]
                answered[old] = (block.message, new)
            else:
                answered[old] = (block.message, new)
        if new != old:
            found[block.source.line, block.source.index] = new
    if renamed:
        text = f"calls with the id of an earlier call, and their results, have new ids: {renamed}"
        draft.notes.append(Diagnostic("info", RENAMED, text, count=renamed))
    return found


def with_ids(message: dict[str, Json], found: Sequence[Piece], names: Sequence[str | None]) -> dict[str, Json]:
    """A message, or an item of a response, with new ids. found: its pieces; names: for each the new id, None for one
    that keeps its own."""
    queues: dict[tuple[bool, str], list[str | None]] = {}
    for piece, name in zip(found, names, strict=True):
        if piece.call_id is not None:
            queue = queues.setdefault((piece.kind == "tool_call", piece.call_id), [])
            if piece.kind not in MEDIA or not queue:
                queue.append(name)

    def named(holder: dict[str, Json], key: str, is_call: bool) -> dict[str, Json]:
        old = holder.get(key)
        queue = queues.get((is_call, old)) if isinstance(old, str) else None
        new = queue.pop(0) if queue else None
        return {**holder, key: new} if new else holder

    def block(value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        if value.get("type") in CALL_BLOCKS:
            return named(value, "id", True)
        return named(value, "tool_use_id", False)

    made = named(message, "tool_call_id", False)
    if isinstance(message.get("content"), list):
        made = {**made, "content": [block(value) for value in message["content"]]}
    if isinstance(message.get("tool_calls"), list):
        calls = [named(call, "id", True) if isinstance(call, dict) else call for call in message["tool_calls"]]
        made = {**made, "tool_calls": calls}
    if message.get("type") in CALLS:
        return named(made, "call_id" if "call_id" in made else "id", True)
    return named(made, "call_id", False) if message.get("type") in OUTPUTS else made
