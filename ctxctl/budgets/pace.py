"""How long turns took, by the time stamps of a session."""

from __future__ import annotations

from ctxctl.formats.session import epoch
from ctxctl.model.unit import ANSWER_KINDS, Trace


def seconds_of(trace: Trace) -> list[float]:
    """Seconds of each turn that tells them, in order: from the answer before to its own, so its tools and its model.

    In the first turn of an exchange from the user's message on: waiting for the user is no turn's time. Turns whose
    time stamps are missing or run backwards tell nothing.
    """
    found: list[float] = []
    exchange = 0
    before: float | None = None
    answered = _answered(trace)
    for turn in trace.turns:
        asked: float | None = None
        new = False
        for b in turn.arrivals:
            block = trace.blocks[b]
            if block.kind == "user_message" and block.exchange > exchange:
                exchange, new = block.exchange, True
                stamp = epoch(block.timestamp)
                asked = stamp if stamp is not None else asked
        now = answered.get(turn.index, turn.time)
        start = asked if new else before
        if now is not None and start is not None and now >= start:
            found.append(now - start)
        before = now
    return found


def _answered(trace: Trace) -> dict[int, float]:
    """When each call was answered: the newest time stamp of what it wrote."""
    found: dict[int, float] = {}
    for block in trace.blocks:
        if block.kind in ANSWER_KINDS and block.role == "assistant":
            stamp = epoch(block.timestamp)
            if stamp is not None:
                found[block.turn] = max(stamp, found.get(block.turn, stamp))
    return found
