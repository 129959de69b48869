"""The budget of a recorded session: components of the window now, how fast it fills, what it costs (requirements B1 to
B5).

Components come from what the file holds: each block's tokens, which match the provider's bill, go to the component of
its kind. What a client or a memory put in counts as memory_injection wherever it stands (`ctxctl.budgets.injected`).
System prompt and tool definitions are mostly not in the file. What the requests hold beyond all blocks is the residual:
the smaller of what the first request and the first one since the last compaction or change of model show. Where the
file holds one of the two, the residual is the other; where it holds neither, they get shares of it by their
allocations, so that both are as full as the two together; the source of each says so:

- `transcript`: blocks of the file
- `residual`: what the requests hold beyond the blocks
- `shared residual`: a share of that, by the allocations of system prompt and tool definitions
- `transcript and shared residual`: blocks of the file and such a share
- `recent answers`: mean of the last 5 (the reserve)

What no component explains (files that a client put back after a compaction without writing it down, reasoning that the
provider dropped) is told apart as unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ctxctl.budgets.components import COMPONENTS, RESERVE, SHARED, ComponentUse, component_of_block, limits_of, use_of
from ctxctl.budgets.forecast import (
    PlanForecast,
    burn_rate_of,
    minutes_of,
    pace_of,
    plan_forecast,
    turns_remaining_of,
)
from ctxctl.budgets.injected import note_share, remembering
from ctxctl.budgets.money import money_of
from ctxctl.budgets.options import BudgetOptions
from ctxctl.budgets.pace import seconds_of
from ctxctl.budgets.result import Budget, Note, Totals
from ctxctl.model.limits import ModelTable
from ctxctl.model.summary import SessionSummary
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import ANSWER_KINDS, CLEARED_TOKENS, Trace
from ctxctl.trace.anchor import share_out
from ctxctl.trace.residence import Stay

ANSWERS = 5
"""Newest answers whose mean is the expected output."""
TELLING = 0.05
"""Share of the window's tokens that must be unexplained to be noted."""


@dataclass(frozen=True, slots=True)
class WindowNow:
    """The window now, as pressure measured it. tokens: in it, None when nothing is known. held: tokens of each block of
    the trace in it. overhead: what the newest request that tells it holds beyond the blocks, None when none does."""

    tokens: int | None
    held: Mapping[int, int]
    overhead: int | None = None


def held_now(
    trace: Trace, stays: Sequence[Stay], at_turn: int | None, *, live: frozenset[str] | None, cleared: frozenset[str]
) -> dict[int, int]:
    """Tokens of each block in the window now. at_turn: the last call that reads them, None for all that are there.
    live: ids of the blocks in the window as the transcript tells it, None to go by the stays alone; cleared: ids of
    those whose content a placeholder stands for."""
    found = {}
    for b, stay in enumerate(stays):
        block = trace.blocks[b]
        there = stay.left is None if live is None else block.id in live
        if not there or (at_turn is not None and stay.came > at_turn):
            continue
        emptied = block.id in cleared or stay.cause == "cleared"
        found[b] = min(CLEARED_TOKENS, trace.tokens[b]) if emptied else trace.tokens[b]
    return found


def budget_of(
    trace: Trace,
    stays: Sequence[Stay],
    transcript: Transcript,
    summary: SessionSummary,
    now: WindowNow,
    window: int | None,
    table: ModelTable,
    options: BudgetOptions | None = None,
    *,
    path: str = "",
    added: Sequence[int] = (),
    recorded: float | None = None,
    totals: Totals | None = None,
) -> Budget:
    """The budget of a session.

    window: tokens of the model's window, None while unknown. added: tokens that each turn added, in their order, those
    that only lost some left out. recorded: USD that the transcript states. totals: what the session did as a whole.
    """
    options = options or BudgetOptions()
    used, sources, memory = _components(trace, now, options)
    expected = _expected_output(trace)
    used[RESERVE], sources[RESERVE] = expected, "recent answers" if expected is not None else None
    limits = limits_of(window, options) if window is not None else {}
    components = tuple(use_of(name, used[name], limits.get(name), sources[name]) for name in COMPONENTS)
    total = now.tokens
    explained = sum(c.used or 0 for c in components if c.component != RESERVE)
    unexplained = total - explained if total is not None else None
    burn = burn_rate_of(added[-options.burn_window :])
    pace = pace_of(seconds_of(trace)[-options.burn_window :])
    reserve = limits[RESERVE].hard if limits else 0
    turns = turns_remaining_of(window, reserve, total, burn)
    known = window is not None and total is not None and (turns == 0 or burn is not None)
    plan = _plan(summary, trace, turns, known=known)
    return Budget(
        path,
        transcript.id,
        transcript.format,
        transcript.model,
        window,
        components,
        total,
        total / window if total is not None and window else None,
        unexplained,
        burn,
        pace,
        turns,
        minutes_of(turns, pace),
        money_of(transcript, trace, stays, table, recorded),
        plan,
        totals or Totals(len(trace.turns)),
        memory,
        tuple(_notes(components, window, total, unexplained)),
    )


def _components(
    trace: Trace, now: WindowNow, options: BudgetOptions
) -> tuple[dict[str, int | None], dict[str, str | None], dict[str, int]]:
    """Tokens and source of each component, and of memory by where it stands."""
    sums: dict[str, int] = dict.fromkeys(COMPONENTS, 0)
    memory = dict.fromkeys(("injected", "reminders", "instructions", "tool"), 0)
    calls = remembering(trace.blocks)
    prompts = 0
    for b, tokens in now.held.items():
        block = trace.blocks[b]
        home = component_of_block(block)
        if home == "memory_injection":
            memory["injected"] += tokens
        elif home == "tool_results" and block.call_id in calls:
            memory[calls[block.call_id]] += tokens
            home = "memory_injection"
        elif share := note_share(block):
            notes = round(tokens * share)
            memory["reminders"] += notes
            sums["memory_injection"] += notes
            tokens -= notes
        # what a developer role adds to it is not the prompt itself
        prompts += block.kind == "system" and block.role != "developer"
        sums[home] += tokens
    used: dict[str, int | None] = dict(sums)
    sources: dict[str, str | None] = dict.fromkeys(COMPONENTS, "transcript")
    residual = _residual(trace, now)
    tools = any(trace.blocks[b].kind == "tool_definitions" for b in now.held)
    system, definitions = "system_prompt", "tool_definitions"
    if prompts and tools:
        return used, sources, memory
    if prompts or tools:
        missing = definitions if prompts else system
        used[missing] = None if residual is None else sums[missing] + residual
        sources[missing] = None if residual is None else "residual"
        return used, sources, memory
    if residual is None:
        for name in (system, definitions):
            used[name] = sums[name] or None
            sources[name] = "transcript" if sums[name] else None
        return used, sources, memory
    shares = [options.allocations.system_prompt, options.allocations.tool_definitions]
    parts = share_out(residual + sums[system], shares if sum(shares) else [1, 1])
    if parts[0] < sums[system]:  # the file alone holds more of the prompt than its share
        parts = [sums[system], residual]
    used[system], used[definitions] = parts
    sources[system] = f"transcript and {SHARED}" if sums[system] else SHARED
    sources[definitions] = SHARED
    return used, sources, memory


def _residual(trace: Trace, now: WindowNow) -> int | None:
    """What the requests hold beyond the blocks, None when nothing was reported that tells it."""
    first = trace.overhead if any(turn.prompt is not None for turn in trace.turns) else None
    known = [tokens for tokens in (first, now.overhead) if tokens is not None]
    return min(known) if known else None


def _expected_output(trace: Trace) -> int | None:
    """Mean of the newest answers. Some clients write down what was reported when an answer began, so it counts as what
    its blocks hold where that is more."""
    counted: dict[int, int] = {}
    for b, block in enumerate(trace.blocks):
        if block.kind in ANSWER_KINDS and block.role == "assistant":
            counted[block.turn] = counted.get(block.turn, 0) + trace.tokens[b]
    answers = [max(t.usage.output if t.usage is not None else 0, counted.get(t.index, 0)) for t in trace.turns]
    answers = [tokens for tokens in answers if tokens]
    return round(fmean(answers[-ANSWERS:])) if answers else None


def _plan(summary: SessionSummary, trace: Trace, turns: int | None, *, known: bool) -> PlanForecast | None:
    """The forecast of the agent's own plan, None without one."""
    steps = [todo for todo in summary.todos if todo.agent == "main"]
    if not steps:
        return None
    done = sum(todo.status == "done" for todo in steps)
    pace = len(trace.turns) / done if done and trace.turns else 1.0
    return plan_forecast(len(steps) - done, pace, turns, known=known or len(steps) == done, done=done)


def _notes(
    components: Sequence[ComponentUse], window: int | None, total: int | None, unexplained: int | None
) -> Iterator[Note]:
    if window is None:
        yield Note(
            "window_unknown", "the window is unknown, so nothing is held against limits", "--window 200k sets it"
        )
    missing = [c.component for c in components if c.used is None and c.component != RESERVE]
    if missing:
        said = f"{' and '.join(missing)}: not in the file, and no usage is reported that shows it"
        yield Note("not_measured", said)
    if any(c.source is not None and c.source.endswith(SHARED) for c in components):
        said = "system_prompt and tool_definitions are not in the file: what requests hold beyond it is shared out"
        yield Note("shared_residual", said, "the sum of the two is measured, each of them is not")
    if unexplained and total and abs(unexplained) > TELLING * total:
        if unexplained > 0:
            said = f"{unexplained:,} tokens were sent that the file does not tell of"
            yield Note("unexplained", said, "files that were put back after a compaction, hidden reasoning")
        else:
            said = f"blocks of the file hold {-unexplained:,} tokens more than were sent"
            yield Note("unexplained", said, "reasoning or results that the provider or the client dropped")
