"""What the audit trail says of evictions, compactions and refusals (requirement G5)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ctxctl.errors import CtxctlError, InputError
from ctxctl.model.decision import Decision
from ctxctl.model.edits import Drop
from ctxctl.model.window import Window
from ctxctl.state.audit import AuditTrail, Event

if TYPE_CHECKING:
    from ctxctl.manager.result import Compaction
    from ctxctl.manager.session import Goal
    from ctxctl.trace.live import LiveWindow

NAMED = 100
"""Units that a record names; all are counted."""
CAUSES = 8


def decision_events(decision: Decision, window: Window, policy: str, size: int, target: int) -> Iterator[Event]:
    """What a decision of the live manager did. policy: its name. size: tokens of the model's window; target: tokens
    down to which it evicts."""
    edits, turn = decision.edits, decision.turn
    measured = {
        "policy": policy,
        "action": decision.action,
        "level": decision.level,
        "before_tokens": decision.tokens,
        "after_tokens": decision.after,
        "window": size,
    }
    if edits.replaces or edits.inserts:
        blocks = [str(window.block(change.block).id) for change in edits.replaces[:NAMED]]
        reasons = sorted({*(c.reason for c in edits.replaces), *(c.reason for c in edits.inserts)})
        done = {"replaced": len(edits.replaces), "inserted": len(edits.inserts), "blocks": blocks, "reasons": reasons}
        yield Event("compaction", {**measured, **done}, turn)
    if edits.drops:
        yield Event("eviction", {**measured, **_left(edits.drops, window), "reasons": decision.reasons}, turn)
    if decision.floor is not None:
        yield Event("budget_refusal", {**measured, **_refused("target", target, decision.floor, decision.causes)}, turn)


def overflow_event(decision: Decision, size: int) -> Event:
    """The provider refused a request as too long."""
    data = {"by": "provider", "tokens": decision.tokens, "window": size}
    return Event("budget_refusal", data, decision.turn)


def recorded(trail: AuditTrail, events: Iterator[Event], decision: Decision) -> Decision:
    """Write events; the decision that they are of, with a reason more where they could not be written. They wait then,
    and the next ones are written with them: what was done to the window is done, and the loop must know of it."""
    for event in events:
        trail.add(event.type, event.data, turn=event.turn)
    try:
        trail.flush()
    except InputError as error:
        said = f"{trail.waiting} events are not in the audit trail: {error}"
        return replace(decision, reasons=(*decision.reasons, said))
    return decision


def compaction_events(result: Compaction, *, in_place: bool, digest: str | None = None) -> list[Event]:
    """A recorded session that was compacted, and what was evicted beside. digest: SHA-256 of the output."""
    compacted, live = result.done.compacted, result.done.live
    files = {
        "source": _whole(result.path),
        "output": _whole(result.output),
        "output_sha256": digest,
        "backup": _whole(result.backup),
        "in_place": in_place,
        "recall_id": result.recall_id,
        "session_id": result.session_id,
    }
    steps = [
        {
            "strategy": step.strategy,
            "before_tokens": step.before,
            "after_tokens": step.after,
            "units": step.units,
            "fallback": step.fallback,
        }
        for step in compacted.steps
    ]
    turn = live.window.turn - 1
    tokens = {"before_tokens": compacted.before, "after_tokens": result.after, "target_tokens": result.goal.tokens}
    format_ = live.transcript.format
    events = [Event("compaction", {**files, "format": format_, **tokens, "steps": steps}, turn, live.transcript.id)]
    if compacted.evicted:
        left = _left(compacted.evicted, live.window)
        reasons = sorted({drop.reason for drop in compacted.evicted})
        events.append(Event("eviction", {**files, **left, "reasons": reasons}, turn, live.transcript.id))
    return events


def refusal_event(result: Compaction, *, in_place: bool) -> Event | None:
    """A session that was not compacted although it is above its target: nothing more could leave, or what came out
    breaks the contract. None for one that was."""
    done = result.done.compacted
    if not result.met:
        said = _refused("target", result.goal.tokens, done.floor, done.causes)
    elif result.broken:
        names = [f"{o.kind} {o.name}" for o in result.contract if not o.ok and o.required]
        said = {**_refused("contract", result.goal.tokens, None, ()), "broken": names[:NAMED]}
    else:
        return None
    about = {"in_place": in_place, "after_tokens": result.after, **said}
    return _not_compacted(result.path, result.done.live, result.goal, about)


def failed_event(path: str, live: LiveWindow, goal: Goal, error: CtxctlError, *, in_place: bool) -> Event:
    """A session that could not be compacted at all, for an error that says so."""
    about = {"in_place": in_place, **_refused(error.code, goal.tokens, None, ()), "why": error.message}
    return _not_compacted(path, live, goal, about)


def _not_compacted(path: str, live: LiveWindow, goal: Goal, about: Mapping[str, Any]) -> Event:
    before = {"source": _whole(path), "format": live.transcript.format, "before_tokens": live.window.tokens}
    return Event("budget_refusal", {**before, "window": goal.size, **about}, live.window.turn - 1, live.transcript.id)


def _whole(path: str | None) -> str | None:
    """A path that says the same wherever it is read; `-` is a stream."""
    return path if path in (None, "-") else os.path.abspath(path)


def _left(drops: Sequence[Drop], window: Window) -> dict[str, Any]:
    """Units that left, the first ones by their id."""
    return {
        "count": len(drops),
        "tokens": sum(drop.tokens for drop in drops),
        "units": [window.units[drop.unit].id for drop in drops[:NAMED]],
    }


def _refused(by: str, target: int, floor: int | None, causes: Sequence[tuple[str, int]]) -> dict[str, Any]:
    return {
        "by": by,
        "target_tokens": target,
        "floor_tokens": floor,
        "causes": [{"cause": cause, "tokens": tokens} for cause, tokens in causes[:CAUSES]],
    }
