"""Calls that lead nowhere: the same failure, ever more output, ever longer reasoning, round and round (H8, P3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import costliest, listed
from ctxctl.health.signals.calls import calls_of
from ctxctl.health.signals.loops import Loop, loops_of
from ctxctl.model.block import Block
from ctxctl.model.finding import Finding

LONGER = 5
"""Answers in a row with ever longer reasoning."""
GROWTH, LARGE = 4.0, 2_000
"""How much it grew in all, and tokens of the last."""


@DETECTORS.register("runaway_loop")
class RunawayLoop(Detector):
    """Signal, within one exchange: a call fails at least 3 times with the same error and nothing was changed in between
    (a file tool 4 times at one file, with whatever arguments); a call returns ever larger output, 4 times, twice as
    much in the end; 2 or 3 calls alternate at least 3 times with the same outcomes; or reasoning grows over 5 answers
    to the fourfold while nothing is changed.

    A second try is common sense, and one after a real change or after the user came in is another try.
    """

    code = "runaway_loop"
    signal = "a failing call retried, output or reasoning that only grows, or calls that alternate without progress"
    fix = "stop after the second identical failure and put the error into the next prompt as something to be solved"

    def find(self, session: Session) -> Iterator[Finding]:
        found = [(_tokens(session, loop), partial(self._told, session, loop)) for loop in loops_of(session)]
        yield from costliest([*found, *self._reasoning(session)])

    def _told(self, session: Session, loop: Loop) -> Finding:
        calls, blocks = loop.calls, session.trace.blocks
        turns = list(dict.fromkeys(session.turn_number(call.turn) for call in calls))
        tokens = _tokens(session, loop)
        first, last = calls[0], calls[-1]
        hint = None
        if loop.kind == "retry":
            same = len({call.key for call in calls}) == 1
            what = f"`{first.shown}`" if same else f"{first.name} on {', '.join(first.changes)}"
            message = (
                f"{what} failed {len(calls):,} times with the same error and nothing changed in between "
                f"({listed(turns)}), {tokens:,} tokens{f': {loop.error}' if loop.error else ''}"
            )
        elif loop.kind == "growing":
            sizes = " → ".join(f"{call.tokens:,}" for call in calls[-4:])
            failing = "failed each time and " if all(call.failed for call in calls) else ""
            message = f"`{first.shown}` {failing}returned ever larger output ({sizes} tokens; {listed(turns)})"
            hint = "ask for what is new alone: tail -n, an offset, a filter, or a summary of the output"
        else:
            names = " and ".join(f"`{call.shown}`" for call in calls[: loop.period])
            message = (
                f"{names} were called in turn, {len(calls) // loop.period:,} times with the same outcomes "
                f"({listed(turns)}), {tokens:,} tokens"
            )
            hint = "stop when a round repeats the one before: say what was tried, and change the plan or ask the user"
        quotes = [quote(blocks[last.block], turns[-1], last.shown)]
        if last.result is not None:
            quotes.append(quote(blocks[last.result], turns[-1], loop.error or None))
        counts = {"calls": len(calls), "tokens": tokens}
        line = blocks[last.block].source.line
        return self.finding(message, turns=turns, turn=turns[-1], line=line, quotes=quotes, counts=counts, hint=hint)

    def _reasoning(self, session: Session) -> Iterator[tuple[float, Callable[[], Finding]]]:
        """Runs of answers, each with longer reasoning than the one before."""
        thought, told, exchange = _thought(session)
        progress = {call.turn for call in calls_of(session) if call.alters and not call.failed}
        runs: list[list[int]] = [[]]
        for before, turn in pairwise([0, *sorted(thought)]):
            run = runs[-1]
            goes_on = run and before == turn - 1 and exchange[before] == exchange[turn] and before not in progress
            if goes_on and thought[turn] > thought[before]:
                run.append(turn)
            else:
                runs.append([turn])
        for run in runs:
            if len(run) >= LONGER and thought[run[-1]] >= max(LARGE, GROWTH * thought[run[0]]):
                sizes = [thought[turn] for turn in run]
                yield sum(sizes), partial(self._grown, session, run, sizes, told.get(run[-1]))

    def _grown(self, session: Session, run: list[int], sizes: list[int], last: Block | None) -> Finding:
        turns = [session.turn_number(turn) for turn in run]
        shown = " → ".join(f"{size:,}" for size in sizes[-5:])
        return self.finding(
            f"reasoning grew with each of {len(run):,} answers ({shown} tokens; {listed(turns)})",
            turns=turns,
            turn=turns[-1],
            line=last.source.line if last is not None else None,
            quotes=[quote(last, turns[-1])] if last is not None and last.text.strip() else [],
            counts={"answers": len(run), "tokens": sum(sizes)},
            hint="limit the thinking budget, or give the agent the missing fact that it keeps reasoning about",
        )


def _tokens(session: Session, loop: Loop) -> int:
    """Tokens of the calls of a loop and their results."""
    return sum(call.tokens + session.trace.tokens[call.block] for call in loop.calls)


def _thought(session: Session) -> tuple[dict[int, int], dict[int, Block], dict[int, int]]:
    """Of each turn that reasoned the tokens of it, a block of it, and its exchange."""
    thought: dict[int, int] = {}
    told: dict[int, Block] = {}
    exchange: dict[int, int] = {}
    for block, tokens in zip(session.trace.blocks, session.trace.tokens, strict=True):
        if block.kind == "thinking":
            thought[block.turn] = thought.get(block.turn, 0) + tokens
            told[block.turn] = block
        if block.kind == "thinking" or block.role == "assistant":  # thinking may stand in a message of another role
            exchange[block.turn] = block.exchange
    for turn in session.trace.turns:
        if turn.usage is not None and turn.usage.reasoning and turn.index in exchange:
            thought[turn.index] = turn.usage.reasoning
    return {turn: tokens for turn, tokens in thought.items() if tokens > 0}, told, exchange
