"""The replay: feed the manager a recorded trace, and keep count of what it would have cost and lost."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.edits import Drop
from ctxctl.model.result import Evicted, Floor, Replay, Step
from ctxctl.model.unit import Trace
from ctxctl.simulate.residence import Residence


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """cache_life: seconds that a cache entry lives; cache_minimum: shortest prefix that is cached, tokens. refetch:
    whether a missed unit comes back into the window. steps: keep a row per turn; evicted: and each unit that left."""

    cache_life: float = 300.0
    cache_minimum: int = 1024
    refetch: bool = True
    steps: bool = False


def replay(trace: Trace, manager: ContextWindowManager, options: ReplayOptions | None = None) -> Replay:
    """Drive a manager over a trace; raises AssertionError when its sums do not add up."""
    options = options or ReplayOptions()
    policy, window = manager.policy, manager.window
    policy.prepare(trace)
    residence = Residence(trace, window)
    # the recording holds what it fetched again itself, and its prompts are known
    own = policy.name == "recorded"
    foreign = set() if own else {b for cut in trace.recorded.values() for b in cut.summary}
    prompts: list[int] = []
    cached: list[int] = []
    outputs: list[int] = []
    helper: list[tuple[int, int, int]] = []
    breaks: list[tuple[int, int]] = []
    steps: list[Step] = []
    evicted: list[Evicted] = []
    evictions = evicted_tokens = compactions = compacted = edits = overflows = came = taken_back = refetched_before = 0
    floor: Floor | None = None
    last_time: float | None = None
    drift = 0
    # what the first call read from a cache was stored before the recording began
    begun = trace.turns[0].usage if trace.turns else None
    sent = begun.cache_read if begun is not None else 0
    last = trace.turns[-1] if trace.turns else None
    for turn in trace.turns:
        if turn.leaving:
            taken_back += manager.leave(turn.leaving)
            residence.gone(turn.leaving)
        window.time = turn.time
        if turn.unseen:
            drift += window.grow(turn.unseen) - turn.unseen
        arrivals = [b for b in turn.arrivals if b not in foreign] if foreign else turn.arrivals
        for block in arrivals:
            manager.enter(block)
            came += trace.tokens[block]
        residence.arrived(arrivals)
        decision = manager.turn_start()
        dropped = shrunk = 0
        if decision.edits:
            dropped = sum(d.tokens for d in decision.edits.drops)
            shrunk = decision.tokens - decision.after - dropped
            evictions += len(decision.edits.drops)
            evicted_tokens += dropped
            compactions += bool(decision.edits.replaces or decision.edits.inserts)
            compacted += shrunk
            residence.edited(decision.edits)
            if options.steps:
                evicted += [_evicted(trace, turn.index, d) for d in decision.edits.drops]
        if own and turn.index in trace.recorded:
            drift += window.grow(trace.recorded[turn.index].unseen)
        prompt = window.tokens
        prefix = window.stable_prefix(sent)
        if decision.edits and prefix < sent:
            edits += 1
            breaks.append((prompt - prefix, dropped + shrunk))
        expired = turn.time is not None and last_time is not None and turn.time - last_time > options.cache_life
        if decision.edits:
            for size, output, shares in decision.edits.helper:
                common = min(size, sent) if shares and not expired else 0
                helper.append((size, common if common >= options.cache_minimum else 0, output))
        if expired or prefix < options.cache_minimum:
            prefix = 0
        prompts.append(prompt)
        cached.append(prefix)
        outputs.append(turn.output)
        sent, last_time = prompt, turn.time if turn.time is not None else last_time
        if prompt > manager.size:
            overflows += 1
            if manager.evicts and (floor is None or prompt > floor.tokens):
                floor = Floor(turn.index, prompt, manager.causes())
        missed = residence.judge(turn)
        manager.turn_end(credits=turn.credits, output=turn.output)
        again = 0
        if options.refetch and not own and turn is not last:  # after the last call nothing is sent any more
            for unit in missed.units:
                again += manager.restore(unit)
                residence.restored(unit)
        refetched_before += again
        if options.steps:
            steps.append(
                Step(
                    turn.index,
                    prompt,
                    prefix,
                    dropped,
                    shrunk,
                    missed.references,
                    missed.misses,
                    missed.tokens,
                    decision.level,
                    decision.action,
                )
            )
    window.check()
    start = trace.overhead + sum(t.unseen for t in trace.turns) + drift
    expected = start + came + refetched_before - evicted_tokens - compacted - taken_back
    if expected != window.tokens:
        raise AssertionError(f"{policy.name}: {window.tokens} tokens are resident, the flows leave {expected}")
    return Replay(
        policy.name,
        manager.size,
        manager.trigger,
        manager.target,
        prompts,
        cached,
        outputs,
        helper,
        evictions,
        evicted_tokens,
        compactions,
        compacted,
        edits,
        overflows,
        residence.hits,
        residence.misses,
        residence.weight,
        residence.missed_weight,
        residence.used_turns,
        residence.missed_turns,
        residence.first_uses,
        residence.first_misses,
        residence.demand,
        residence.refetched,
        residence.refetches,
        residence.excess,
        breaks,
        floor,
        steps,
        evicted,
    )


def _evicted(trace: Trace, turn: int, drop: Drop) -> Evicted:
    """What a drop is about, for people; what the engine itself had put in has no unit."""
    if drop.unit < 0:
        return Evicted(turn, None, "summary", None, None, None, drop.tokens, drop.score, drop.parts, drop.reason)
    unit = trace.units[drop.unit]
    line = trace.blocks[unit.blocks[0]].source.line
    return Evicted(
        turn, unit.id, unit.kind, unit.tool_name, unit.target, line, drop.tokens, drop.score, drop.parts, drop.reason
    )
