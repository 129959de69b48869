"""What was loaded and never used (requirement O6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.budgets.cost import prices_of
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import listed
from ctxctl.health.signals.loads import Load, loads_of
from ctxctl.model.finding import Finding
from ctxctl.model.limits import ModelRow

SHARE = 0.05
"""Of the fullest request, from which on what was never used is worth a word."""
NAMED = 3
"""Loads that the message names."""


@DETECTORS.register("unused_load")
class UnusedLoad(Detector):
    """Signal: large results (2,000 tokens) of tools that look something up, held by at least 5 requests, of which no
    later turn used anything: no path, identifier, number or line of them, no word that was new with them in the answers
    right after, and their file never came up again. Together they are at least 5 % of the fullest request.

    An agent that read something and only found it to be fine leaves no trace of that, so the finding says what was seen
    and not that the load was in vain. Outputs of commands are judged by `whole_content`: it may be enough to know how
    they ended.
    """

    code = "unused_load"
    signal = "large results of which no later turn used a path, identifier, number or line"
    fix = "look at names, sizes or matching lines first (ls, grep -l, wc -l), and load what they show to be needed"

    def find(self, session: Session) -> Iterator[Finding]:
        unused = [load for load in loads_of(session) if load.call.kind == "read" and not load.used]
        tokens = sum(load.tokens for load in unused)
        peak = session.analysis.peak
        if not unused or (peak is not None and tokens < SHARE * peak.tokens):
            return
        unused.sort(key=lambda load: (-load.tokens, load.call.block))
        sent = sum(load.tokens * (load.held[1] - load.held[0] + 1) for load in unused)
        cost = carrying(session, unused)
        named = ", ".join(f"`{load.call.shown}` ({load.tokens:,})" for load in unused[:NAMED])
        more = f" and {len(unused) - NAMED:,} more" if len(unused) > NAMED else ""
        results = "1 large result" if len(unused) == 1 else f"{len(unused):,} large results"
        them = "it" if len(unused) == 1 else "them"
        paid = f", about ${cost:,.2f}" if cost is not None and cost >= 0.005 else ""
        turns = sorted(session.turn_number(load.call.turn) for load in unused)
        message = (
            f"no later turn used a path, identifier, number or line of {results} with {tokens:,} tokens "
            f"({listed(turns)}): {named}{more}; later requests carried {them} along, {sent:,} tokens sent{paid}"
        )
        blocks = session.trace.blocks
        quotes = [
            quote(blocks[load.call.result], session.turn_number(load.call.turn))
            for load in unused[:NAMED]
            if load.call.result is not None
        ]
        counts = {"results": len(unused), "tokens": tokens, "tokens_sent": sent}
        told = {**counts, "cost": round(cost, 4)} if cost is not None else counts
        line = blocks[unused[0].call.block].source.line
        yield self.finding(message, turns=turns, line=line, quotes=quotes, counts=told)


def carrying(session: Session, loads: Sequence[Load]) -> float | None:
    """USD of carrying results along: of each request that held one, its share of what the prompt cost at list prices.
    None when a request has no usage or no price."""
    per_token: list[float | None] = []
    rows: dict[str | None, ModelRow | None] = {}
    for turn in session.trace.turns:
        usage = turn.usage
        name = (usage.model if usage is not None else None) or session.transcript.model
        if name not in rows:
            rows[name] = session.table.find(name)
        row = rows[name]
        prices = prices_of(row, usage.prompt) if row is not None and usage is not None else None
        if prices is None or usage is None or not usage.prompt:
            per_token.append(None)
            continue
        prompt = usage.input * prices.input + usage.cache_read * prices.read + usage.cache_write * prices.write
        per_token.append(prompt / usage.prompt / 1e6)
    total = 0.0
    for load in loads:
        for price in per_token[load.held[0] - 1 : load.held[1]]:
            if price is None:
                return None
            total += price * load.tokens
    return total
