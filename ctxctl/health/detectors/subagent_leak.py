"""A sub-agent that returns its trace instead of its conclusion (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import listed
from ctxctl.health.signals.returned import Returned, returned
from ctxctl.model.finding import Finding

MOST = 2_000
"""Tokens that a sub-agent should return at most (requirement C6)."""
LEAST = 100
"""Tokens below which a result is an acknowledgement; without a step in it, five times as many."""
TRACE = 0.25
"""Share of what it returned that tells its steps. On real sessions reports have none, traces a quarter and more."""
COPIED = 0.40
"""Share that stands in what it read itself: a report quotes, but not that much."""
NAMED = 5
"""Sub-agents that a message names."""


@DETECTORS.register("subagent_leak")
class SubagentLeak(Detector):
    """Signal: a sub-agent put more than 2,000 tokens into the main thread, and at least a quarter of that are its
    calls, commands, dumped files or announced steps, or two fifths stand word for word in what it read itself. A long
    report alone is none. Sub-agents whose longest results come together are one finding."""

    code = "subagent_leak"
    signal = (
        "a sub-agent returned over 2,000 tokens, a quarter of them steps of its work or 40 % copied from what it read"
    )
    fix = "ask the sub-agent for its conclusion in at most 1,000 tokens, without its steps, and give it a shorter brief"

    def find(self, session: Session) -> Iterator[Finding]:
        tokens = session.trace.tokens
        every: dict[str, list[Returned]] = {}
        for one in returned(session, LEAST):
            if one.trace or tokens[one.block] >= 5 * LEAST:
                every.setdefault(one.name, []).append(one)
        together: dict[int, list[list[Returned]]] = {}
        for found in every.values():
            if _leaks(session, found):
                worst = max(found, key=lambda one: tokens[one.block])
                together.setdefault(session.stays[worst.block].came, []).append(found)
        for turn in sorted(together):
            yield self._told(session, turn, together[turn])

    def _told(self, session: Session, turn: int, leaks: list[list[Returned]]) -> Finding:
        blocks = session.trace.blocks
        leaks = sorted(leaks, key=lambda found: -_sum(session, found)[0])
        sums = [_sum(session, found) for found in leaks]
        tokens, steps, copied = (sum(one[n] for one in sums) for n in range(3))
        names = [repr(found[0].name) for found in leaks]
        shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        who = f"the sub-agent {shown}" if len(names) == 1 else f"{len(names)} sub-agents ({shown})"
        every = [one for found in leaks for one in found]
        turns = sorted({session.turn_number(session.stays[one.block].came) for one in every})
        if steps >= copied:
            what = f"{steps:,} of them ({steps / tokens:.0%}) tell steps of the work instead of its conclusion"
        else:
            what = f"{copied:,} of them ({copied / tokens:.0%}) stand word for word in what was read"
        message = f"{who} put {tokens:,} tokens into the main thread ({listed(turns)}); {what}"
        hint = (
            f"end the brief of {names[0] if len(names) == 1 else 'each'} with a return contract: the conclusion with "
            "file:line in at most 1,000 tokens, no calls, no file contents; details go into a file that it names"
        )
        quotes = []
        for found in leaks[:NAMED]:
            worst = max(found, key=lambda one: session.trace.tokens[one.block])
            at = session.turn_number(session.stays[worst.block].came)
            quotes.append(quote(blocks[worst.block], at, worst.first or None))
        counts = {"subagents": len(leaks), "tokens": tokens, "step_tokens": steps}
        if any(one.copied is not None for one in every):
            counts["copied_tokens"] = copied
        at, line = session.turn_number(turn), quotes[0].line
        return self.finding(message, turn=at, line=line, turns=turns, quotes=quotes, counts=counts, hint=hint)


def _sum(session: Session, found: list[Returned]) -> tuple[int, int, int]:
    """Tokens of a sub-agent's results, of those in steps, of those copied."""
    tokens = session.trace.tokens
    return (
        sum(tokens[one.block] for one in found),
        round(sum(one.trace * tokens[one.block] for one in found)),
        round(sum((one.copied or 0.0) * tokens[one.block] for one in found)),
    )


def _leaks(session: Session, found: list[Returned]) -> bool:
    tokens, steps, copied = _sum(session, found)
    return tokens > MOST and (steps >= TRACE * tokens or copied >= COPIED * tokens)
