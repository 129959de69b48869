"""The manager compacts in an agent loop as its settings say, and as the replay of the same session does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.decision import Decision
from ctxctl.model.unit import Trace
from ctxctl.settings.load import load, model_table
from ctxctl.simulate.replay import ReplayOptions, replay
from ctxctl.tokens.estimate import counter_for
from ctxctl.trace.build import build_trace

SAMPLES = Path(__file__).parents[2] / "sample_transcripts"
SIZE = 40_000
STEPS = {
    "an answered output shrinks to its key findings": "tool-results",
    "turns old": "progressive",
    "conversation": "conversation",
    "delegate": "delegate",
}


def output(n: int, tokens: int) -> str:
    """An output of about so many tokens, at 4 characters each, in lines that name things."""
    return "\n".join(f"src/part_{n}/file_{k}.py: value_{n}_{k} = {k}" for k in range(tokens * 4 // 42))[: tokens * 4]


def filled(utilization: float, **more: Any) -> tuple[ContextWindowManager, Decision]:
    """A session whose window is exactly so full before a call, and what is done before that call."""
    more.setdefault("policy", "cascade:to=0.02")
    manager = ContextWindowManager(SIZE, trigger=1.0, **more)
    wanted = int(utilization * SIZE)
    manager.add("user_message", "Find out why the parser is slow.")
    for n in range(12):
        text = f"Part {n} reads the file twice, and so does its parser. " * 9
        manager.turn_end(text, calls=[(f"c{n}", "Read", f'{{"file_path": "f{n}"}}')])
        left = (wanted - manager.window.tokens - 400) // (12 - n)
        manager.tool_result(output(n, left), call_id=f"c{n}")
    manager.turn_end("Now I know all of it.")
    manager.add("user_message", "x" * 4 * (wanted - manager.window.tokens))
    assert manager.window.tokens == wanted
    decision = manager.turn_start()
    manager.window.check()
    return manager, decision


def steps_of(decision: Decision) -> set[str]:
    reasons = [change.reason for change in decision.edits.replaces]
    return {name for part, name in STEPS.items() if any(part in reason for reason in reasons)}


@pytest.mark.parametrize(
    ("utilization", "steps"),
    [
        (0.74, set()),
        (0.75, {"tool-results"}),
        (0.85, {"tool-results", "progressive"}),
        (0.90, {"tool-results", "progressive"}),
        (0.92, {"tool-results", "progressive", "conversation"}),
        (0.95, {"tool-results", "progressive", "conversation", "delegate"}),
    ],
)
def test_utilization_sets_the_highest_step(utilization: float, steps: set[str]) -> None:
    """Down to a target that no step reaches, so that each one that is allowed has something to do; what a later one
    replaced again is not told twice, and behind a summary no subtask is left."""
    _, decision = filled(utilization, compaction=CompactionOptions(minimum_saving=0))
    done = steps_of(decision)
    highest = {0: None, 1: "tool-results", 2: "progressive", 3: "conversation", 4: "conversation"}[len(steps)]
    assert done <= steps and (highest in done if highest else not done)


def test_the_settings_of_compaction_hold() -> None:
    early = CompactionOptions(cascade={0.5: "progressive"}, mark="[摘要]")
    manager, decision = filled(0.6, compaction=early)
    assert steps_of(decision) == {"progressive"}
    texts = [manager.window.text(change.block) for change in decision.edits.replaces]
    assert texts and all(text.startswith("[摘要] ") for text in texts)
    assert not filled(0.6)[1].edits
    long = CompactionOptions(summarization_threshold_tokens=10**6)
    assert not filled(0.75, policy="tool-results:to=0.02", compaction=long)[1].edits


def test_a_model_writes_where_one_is_given() -> None:
    class Model:
        def write(self, task: str, goal: str, material: str, most: int) -> str | None:
            return f"the model on {task}"

    manager, decision = filled(0.75, helper=Model())
    texts = [manager.window.text(change.block) for change in decision.edits.replaces]
    assert texts and all(text.endswith(": the model on tool-results") for text in texts)


def test_extractive_keeps_to_its_own_budget() -> None:
    """floor(40,000 x 0.8 / 1.2) = 26,666 tokens (requirement C10)."""
    assert not filled(26_666 / SIZE, policy="extractive")[1].edits
    _, decision = filled(26_668 / SIZE, policy="extractive")
    assert decision.edits and decision.after <= 26_666


@pytest.fixture(scope="module", params=["axios-to-fetch.jsonl", "support-chat.jsonl"])
def trace(request: pytest.FixtureRequest) -> Trace:
    settings = load(None).settings
    return build_trace(str(SAMPLES / request.param), model_table(load(None)), pins_of(settings.eviction)).trace


def live(trace: Trace, manager: ContextWindowManager, foreign: set[int]) -> list[Decision]:
    """What an agent loop that has the session would tell the manager, call by call."""
    decisions = []
    for at, turn in enumerate(trace.turns):
        for number in turn.arrivals:
            block = trace.blocks[number]
            if number in foreign or (block.role == "assistant" and at):
                continue  # summaries of the agent's own; what a call wrote came in behind it
            manager.add(
                block.kind,
                block.text,
                role=block.role,
                tool_name=block.tool_name,
                call_id=block.call_id,
                target=block.target,
                is_error=block.is_error,
            )
        decisions.append(manager.turn_start())
        after = trace.turns[at + 1].arrivals if at + 1 < len(trace.turns) else ()
        said = [trace.blocks[n] for n in after if trace.blocks[n].role == "assistant" and n not in foreign]
        parts = {kind: "\n".join(b.text for b in said if b.kind == kind) for kind in ("assistant", "thinking")}
        calls = [
            (b.call_id or "", b.tool_name or "", b.text.removeprefix(f"{b.tool_name} "))
            for b in said
            if b.kind == "tool_call"
        ]
        manager.turn_end(parts["assistant"], thinking=parts["thinking"], calls=calls)
    return decisions


@pytest.mark.parametrize("policy", ["cascade", "tool-results", "conversation", "extractive", "hybrid"])
def test_live_and_replayed_alike(trace: Trace, policy: str) -> None:
    """The same session, fed by an agent loop and replayed: the same compactions at the same calls."""
    known = {(trace.blocks[n].text, trace.blocks[n].kind): tokens for n, tokens in enumerate(trace.tokens)}
    # the same text, the same count; a live manager is not told which blocks were one message
    blocks = [replace(block, message=n) for n, block in enumerate(trace.blocks)]
    trace = replace(trace, blocks=blocks, tokens=[known[b.text, b.kind] for b in blocks])
    counter = counter_for(trace.model, trace.counter, trace.ratio)

    def count(text: str, kind: str) -> int:
        return known.get((text, kind)) or counter(text, kind)

    compaction = CompactionOptions(minimum_saving=100)
    size = max(trace.overhead + sum(trace.tokens[:4]), (trace.overhead + sum(trace.tokens)) * 6 // 10)
    more: dict[str, Any] = {"policy": policy, "compaction": compaction, "count": count}
    foreign = {b for cut in trace.recorded.values() for b in cut.summary}
    decisions = live(trace, ContextWindowManager(size, overhead=trace.overhead, **more), foreign)
    manager = ContextWindowManager(size, trace=trace, **more)
    replayed = replay(trace, manager, ReplayOptions(refetch=False, steps=True))
    # what the agent's own compaction then brings in, no loop tells its manager
    until = min(trace.recorded, default=len(trace.turns) + 1) - 1
    decisions, steps = decisions[:until], replayed.steps[:until]
    assert [(d.turn, d.after) for d in decisions] == [(s.turn, s.prompt) for s in steps]
    dropped = [sum(drop.tokens for drop in d.edits.drops) for d in decisions]
    assert dropped == [s.dropped for s in steps]
    assert [d.tokens - d.after - gone for d, gone in zip(decisions, dropped, strict=True)] == [s.shrunk for s in steps]
    assert sum(bool(d.edits) for d in decisions) >= 3
