"""Writing compacted Codex rollouts: a new one, or the old one with a `compacted` line behind it.

Source: openai/codex `codex-rs/rollout/src/policy.rs` (what is persisted), `core/src/codex/rollout_reconstruction.rs` (a
replacement history takes the place of all items before it) and formats.md 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ctxctl.formats.base import Json
from ctxctl.formats.call_ids import RENAMED
from ctxctl.formats.codex_edit import edit_item, user_item
from ctxctl.formats.codex_items import item_pieces
from ctxctl.formats.codex_trace import Item, Place, Rollout
from ctxctl.formats.draft import Draft
from ctxctl.formats.fates import Fate, Fates
from ctxctl.formats.lines import compact, editable, ended, write_as_it_was

STATEMENT = "Earlier context was compacted by ctxctl."
"""What a `compacted` line says where no summary was made."""
FORKED = ("forked_from_id", "parent_thread_id", "subagent_history_start_ordinal", "thread_source", "history_mode")
"""Fields of a session's head that tie it to another session, or to lines that are no longer all there."""


def rewrite_rollout(draft: Draft) -> Iterator[bytes]:
    """The bytes of a rollout after its compaction."""
    if not draft.outcome:
        yield from write_as_it_was(draft)
        return
    rollout = Rollout(draft)
    fates = Fates(draft)
    kept = _kept(draft, rollout, fates)
    write = _appended if draft.in_place or draft.keep_history else _new
    yield from write(draft, rollout, kept, fates)


Kept = list[tuple[Item, list[Fate]] | str]
"""Items that stay with the fates of their blocks, and between them the texts of summaries."""


def _kept(draft: Draft, rollout: Rollout, fates: Fates) -> Kept:
    """What the window holds now, in its order; summaries never between a call and its output."""
    kept: Kept = []
    held: list[str] = []
    taken = [
        (item, fates.take(item.at[0], item.offset, item.kinds), fates.summaries, fates.behind)
        for item in _order(draft, rollout)
    ]
    stays = {item.order for item, own, _, _ in taken if any(fate is not False for fate in own)}
    for item, own, summaries, behind in taken:
        held += [] if behind else summaries
        if item.order in stays and not _alone(item, rollout, stays):
            if not item.output:
                kept += held
                held = []
            kept.append((item, own))
        held += summaries if behind else []
    return kept + held


def _order(draft: Draft, rollout: Rollout) -> Iterator[Item]:
    """The items of the window as it was. One that left gives the place of its summary."""
    seen: set[int] = set()
    for number in draft.transcript.live:
        order = rollout.item_of.get(number) if number in draft.blocks else None
        if order is not None and order not in seen:
            seen.add(order)
            yield rollout.items[order]


def _alone(item: Item, rollout: Rollout, stays: set[int]) -> bool:
    """Whether reasoning lost what it led to, the next item of its answer: the API refuses it then."""
    if not item.reasoning:
        return False
    order = item.order + 1
    while order < len(rollout.items) and rollout.items[order].reasoning:
        order += 1
    return order < len(rollout.items) and rollout.items[order].answer and order not in stays


def _edited(payload: Json, item: Item, own: list[Fate], fates: Fates) -> Json:
    """An item after its blocks met their fates, with a new id where it needs one."""
    if fates.renames(item.at[0], item.offset, len(item.kinds)):
        payload = fates.named(payload, item.at[0], item.offset, list(item_pieces(payload)))
    return edit_item(payload, own)


def _payload(rollout: Rollout, item: Item, own: list[Fate], fates: Fates) -> Json:
    """An item as it is now, without its envelope."""
    record = editable(rollout.part(item.at))
    payload = record["payload"] if isinstance(record.get("payload"), dict) else record
    if item.origin == "summary":
        payload = user_item(payload["message"])
    elif item.origin == "history":
        payload = payload["replacement_history"][item.position]
    return _edited(payload, item, own, fates)


def _appended(draft: Draft, rollout: Rollout, kept: Kept, fates: Fates) -> Iterator[bytes]:
    """All lines as they are, then a compaction as Codex writes one. The instructions are no part of a history."""
    summary = next((entry for entry in kept if isinstance(entry, str)), STATEMENT)
    history = [
        user_item(entry) if isinstance(entry, str) else _payload(rollout, *entry, fates)
        for entry in kept
        if isinstance(entry, str) or entry[0].origin != "meta"
    ]
    draft.notes[:] = [said for said in draft.notes if said.code == RENAMED]
    draft.normalised.bom = draft.normalised.crlf = draft.normalised.surrogates = 0
    yield from write_as_it_was(draft)
    yield _line(draft, "compacted", {"message": summary, "replacement_history": history})
    yield _line(draft, "event_msg", {"type": "context_compacted"})


def _new(draft: Draft, rollout: Rollout, kept: Kept, fates: Fates) -> Iterator[bytes]:
    """A rollout of its own: the lines of what stays, with the lines that belong to them."""
    yield from _head(draft, rollout)
    companions = _companions(rollout, kept)
    for entry in kept:
        if isinstance(entry, str):
            yield _item_line(draft, rollout, user_item(entry))
            continue
        item, own = entry
        before, after = companions.get(item.order, ([], []))
        for at in before:
            yield rollout.data(at)
        if item.origin == "item":
            if all(fate is True for fate in own) and not fates.renames(item.at[0], item.offset, len(item.kinds)):
                yield rollout.data(item.at)
            else:
                record = editable(rollout.part(item.at))
                new = _edited(record["payload"] if rollout.enveloped else record, item, own, fates)
                yield ended(compact({**record, "payload": new} if rollout.enveloped else new))
        elif item.origin != "meta":
            yield _item_line(draft, rollout, _payload(rollout, item, own, fates))
        for at in after:
            yield rollout.data(at)
    for at in companions.get(-1, ([], []))[0]:
        yield rollout.data(at)


def _head(draft: Draft, rollout: Rollout) -> Iterator[bytes]:
    """The session's own head under its new name, tied to no other session."""
    if rollout.head is None:
        if rollout.enveloped:
            meta = {"cwd": draft.transcript.cwd or "", "originator": "ctxctl", "cli_version": "0.0.0"}
            yield _line(draft, "session_meta", {"id": draft.new_id, "timestamp": draft.now, **meta})
        return
    record = editable(rollout.part(rollout.head))
    payload = record["payload"] if isinstance(record.get("payload"), dict) else record
    own = {key: value for key, value in payload.items() if key not in FORKED}
    own |= {"id": draft.new_id, "timestamp": draft.now}
    if "session_id" in own:
        own["session_id"] = draft.new_id
    if isinstance(own.get("source"), dict) and "subagent" in own["source"]:
        own["source"] = "cli"
    yield ended(compact({**record, "timestamp": draft.now, "payload": own} if payload is not record else own))


def _companions(rollout: Rollout, kept: Kept) -> dict[int, tuple[list[Place], list[Place]]]:
    """Lines that go with items, by the item's order: those in front of it and those behind; -1: at the end.

    What is shown of an item goes with it where it is unchanged. What begins a turn goes with the first item that stays
    of that turn, where something stays that was done in it; the newest is in force whatever stays.
    """
    found: dict[int, tuple[list[Place], list[Place]]] = {}
    stays = [entry for entry in kept if not isinstance(entry, str)]
    items = sorted((item.at, item.order) for item, _ in stays if item.origin != "meta")
    places = [at for at, _ in items]
    worked = sorted(item.at for item, _ in stays if item.answer or item.output)

    def put(at: Place, order: int, behind: bool = False) -> None:
        found.setdefault(order, ([], []))[behind].append(at)

    for place in rollout.others:
        nearest = bisect_right(places, place)
        put(place, items[nearest][1] if nearest < len(items) else -1)
    for kind in {kind for _, kind in rollout.turns}:
        starts = [at for at, other in rollout.turns if other == kind]
        for n, place in enumerate(starts):
            nearest = bisect_right(places, place)
            if n + 1 == len(starts):
                put(place, items[nearest][1] if nearest < len(items) else -1)
            elif bisect_right(worked, place) < bisect_right(worked, starts[n + 1]):
                put(place, items[nearest][1])
    whole = {item.order for item, fates in stays if all(fate is True for fate in fates)}
    for place, item in _shown(rollout):
        if item.order in whole:
            put(place, item.order, place > item.at)
    for before, after in found.values():
        before.sort()
        after.sort()
    return found


def _shown(rollout: Rollout) -> Iterator[tuple[Place, Item]]:
    """Each event that repeats an item, with that item: the nearest one of its turn that says the same."""
    turns = [at for at, kind in rollout.turns if kind == "context"]
    saying: dict[int, list[Item]] = {}
    for item in rollout.items:
        for said in item.shown:
            saying.setdefault(said, []).append(item)
    for place, said in rollout.events:
        turn = bisect_right(turns, place)
        same = [item for item in saying.get(said, ()) if bisect_right(turns, item.at) == turn]
        if same:
            line = place[0]
            yield place, min(same, key=lambda item: abs(item.at[0] - line))


def _item_line(draft: Draft, rollout: Rollout, item: Json) -> bytes:
    return _line(draft, "response_item", item) if rollout.enveloped else ended(compact(item))


def _line(draft: Draft, type_: str, payload: Json) -> bytes:
    return ended(compact({"timestamp": draft.now, "type": type_, "payload": payload}))
