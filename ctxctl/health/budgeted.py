"""The budget of a session that was examined."""

from __future__ import annotations

from ctxctl.budgets.measure import WindowNow, budget_of, held_now
from ctxctl.budgets.result import Budget, Totals
from ctxctl.health.session import Session


def budget_of_session(session: Session) -> Budget:
    """What its components hold against their limits, how long the window lasts, and what it cost."""
    analysis, transcript, trace = session.analysis, session.transcript, session.trace
    context = analysis.context
    several = bool(transcript.conversations)
    live = None if several else frozenset(session.everything[n].id for n in transcript.live)
    cleared = frozenset(session.everything[n].id for n in transcript.cleared)
    # the newest request as reported holds its own answer only where the format says so
    whole = context.reported is None or bool(context.pending) or transcript.context_has_answer
    at_turn = None if whole or context.at_turn is None else context.at_turn - session.first + 1
    held = held_now(trace, session.stays, at_turn, live=live, cleared=cleared)
    first, last = session.first, session.turn_number(len(trace.turns))
    readings = [r for r in analysis.pressure if not several or first <= r.turn <= last]
    added = [r.added for r in readings[1:] if r.added is not None]  # the first request brings what is always there
    peak = analysis.peak
    usage = analysis.usage
    return budget_of(
        trace,
        session.stays,
        transcript,
        session.summary,
        WindowNow(context.tokens, held, context.overhead),
        session.window,
        session.table,
        session.options.budget,
        path=session.path,
        added=added,
        recorded=usage.cost,
        totals=Totals(
            analysis.turns,
            usage.requests,
            peak.tokens if peak is not None else None,
            usage.total if usage.requests else None,
            transcript.full_compactions,
            len(transcript.overflows),
        ),
    )
