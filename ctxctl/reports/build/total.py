"""Sums over several analyzed transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxctl.budgets.cost import session_cost
from ctxctl.model.limits import ModelTable
from ctxctl.model.usage import UsageTotals, merge_copies, total_usage
from ctxctl.pressure.analysis import Analysis


@dataclass(frozen=True, slots=True)
class Total:
    """usage: of every call once, also of those that stand in several files; copies: how many more times they stand
    there. cost: USD at list prices of all calls that have one. recorded, listed: what was paid, as the transcripts
    record it, and at list prices where they record nothing. unpriced: transcripts with calls of no known price;
    unpaid: those of them that record no cost either. turns, compactions (full ones), spikes: of all."""

    usage: UsageTotals
    copies: int
    cost: float | None
    recorded: float
    listed: float
    unpriced: int
    unpaid: int
    turns: int
    compactions: int
    spikes: int


def total_of(analyses: Sequence[Analysis], table: ModelTable) -> Total:
    """The sums over transcripts."""
    transcripts = [a.transcript for a in analyses]
    merged, copies = merge_copies((t.usage, t.call_keys) for t in transcripts)
    usage, costs = UsageTotals(), []
    recorded, listed, unpriced, unpaid = 0.0, 0.0, 0, 0
    for transcript, calls in zip(transcripts, merged, strict=True):
        own = total_usage(calls, transcript.inherited)
        usage = usage + own
        cost = session_cost(calls, table, transcript.model)
        if cost is not None:
            costs.append(cost)
        elif own.requests:
            unpriced += 1
        if own.cost is not None:
            recorded += own.cost
        elif cost is not None:
            listed += cost
        elif own.requests:
            unpaid += 1
    return Total(
        usage,
        copies,
        sum(costs) if costs else None,
        recorded,
        listed,
        unpriced,
        unpaid,
        sum(a.turns for a in analyses),
        sum(t.full_compactions for t in transcripts),
        sum(len(a.spikes) for a in analyses),
    )
