"""Summaries of the whole window do what clearing old tool results could have done (requirement O2)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding
from ctxctl.model.unit import CLEARED_TOKENS

LEAST = 2
PER_HUNDRED = 1.0
"""Full compactions per 100 turns from which on they fire often: a window of 200,000 tokens that is filled at 2,000 per
turn is full after 100."""
RECENT = 5
"""Turns within which a tool result is still in use."""
CLEARABLE = 0.3
"""Share of what the summaries replaced that old tool results were; with so much cleared the window would have been
below its mark for a long time yet."""
CLEARED = 0.2
"""Share of all that left which clearing took; above it the cheap layer does its work."""


@DETECTORS.register("heavy_compaction")
class HeavyCompaction(Detector):
    """Signal: full compactions fire at least twice and once per 100 turns, clearing took next to nothing, and much of
    what the summaries replaced were tool results that had been answered turns before."""

    code = "heavy_compaction"
    signal = (
        "full compactions fire at least once per 100 turns, old tool results were 30 % or more of what they replaced, "
        "and clearing took less than 20 % of what left"
    )
    fix = (
        "clear old tool results before the window is summarized (compaction.cascade, step tool-results; or the "
        "provider's context editing): it costs no model call and keeps what was said word for word"
    )

    def find(self, session: Session) -> Iterator[Finding]:
        trace = session.trace
        gone = {c.turn for c in session.transcript.compactions if c.abandoned}
        cuts = [c for c in session.transcript.compactions if c.kind == "full" and c.turn not in gone]
        turns = len(trace.turns)
        if len(cuts) < LEAST or not turns or 100 * len(cuts) / turns < PER_HUNDRED:
            return
        replaced = cleared = clearable = results = 0
        tools: dict[str, int] = {}
        for number, stay in enumerate(session.stays):
            if stay.left is None or session.turn_number(stay.left) in gone:
                continue
            tokens = trace.tokens[number]
            if stay.cause == "cleared":
                cleared += tokens
            elif stay.cause == "compacted":
                replaced += tokens
                block = trace.blocks[number]
                if block.kind == "tool_result" and stay.left - stay.came > RECENT and tokens > CLEARED_TOKENS:
                    clearable += tokens - CLEARED_TOKENS
                    results += 1
                    name = block.tool_name or "tools"
                    tools[name] = tools.get(name, 0) + tokens
        if not replaced or clearable < CLEARABLE * replaced or cleared >= CLEARED * (cleared + replaced):
            return
        top = max(tools, key=lambda name: tools[name])
        rate = 100 * len(cuts) / turns
        said = (
            f"{len(cuts)} summaries in {turns} turns ({rate:.1f} per 100) replaced {replaced:,} tokens, of which "
            f"{clearable:,} ({clearable / replaced:.0%}) were {results} tool results that had been answered more than "
            f"{RECENT} turns before (most by {top}); clearing took {cleared:,}"
        )
        counts = {
            "full_per_100_turns": rate,
            "replaced_tokens": replaced,
            "clearable_tokens": clearable,
            "clearable_results": results,
            "cleared_tokens": cleared,
        }
        yield self.finding(said, turns=[c.turn for c in cuts], line=cuts[0].line, counts=counts)
