"""The state of the window now."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.model.transcript import Transcript
from ctxctl.pressure.result import ContextState
from ctxctl.pressure.turns import main_calls, newest_call, with_output
from ctxctl.trace.curve import CountedCurve
from ctxctl.trace.tally import ANSWER, NEW_MESSAGE, Tally


def context_of(
    transcript: Transcript, tally: Tally, curve: CountedCurve, live: tuple[int, ...], chosen: int | None
) -> ContextState:
    """The window now. live: its blocks. chosen: index of the conversation that they belong to, of several in a file."""
    newest = newest_call(transcript)
    if chosen is not None and newest is not None:
        last = _last_turn(tally, live)
        newest = next((u for u in main_calls(transcript) if u.context and u.turn == last), None)
    reported = newest.context if newest is not None else None
    at_turn = newest.turn if newest is not None else (max((tally.turn[b] for b in live), default=0) or None)
    drift = None
    if newest is not None and reported:
        drift = (curve.at_call[newest.turn - 1] + (curve.overhead or 0)) / reported - 1
    pending = None
    if newest is not None:
        waiting = [b for b in live if tally.turn[b] > newest.turn]
        pending = round(sum(curve.estimates[b] for b in waiting)) + _frames(tally, waiting)
    order = transcript.order if chosen is None else ()
    return ContextState(
        reported,
        with_output(transcript, newest),
        round(sum(curve.estimates[b] for b in live)),
        drift,
        curve.overhead,
        at_turn,
        len(order) or sum(1 for b in live if tally.flags[b] & NEW_MESSAGE),
        order,
        None if chosen is None else transcript.conversations[chosen].line,
        pending,
        _frames(tally, live),
    )


def _frames(tally: Tally, blocks: Sequence[int]) -> int:
    return tally.family.per_message * sum(1 for b in blocks if tally.flags[b] & NEW_MESSAGE)


def _last_turn(tally: Tally, live: tuple[int, ...]) -> int:
    return max((tally.turn[b] for b in live if tally.flags[b] & ANSWER), default=0)
