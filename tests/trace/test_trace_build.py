"""Traces: token sizes that match the bill, and which blocks are there at which call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxctl
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.result import Replay
from ctxctl.model.unit import Trace
from ctxctl.simulate.replay import replay
from ctxctl.trace.anchor import anchor, share_out
from ctxctl.trace.build import Traced, build_trace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = [p for p in sorted((ROOT / "sample_transcripts").glob("*.json*")) if p.is_file()]
GOLDEN = ROOT / "tests" / "formats" / "golden"
SESSIONS = [*SAMPLES, *sorted(GOLDEN.glob("claude-code/*.jsonl")), *sorted(GOLDEN.glob("codex/*.jsonl"))]


def traced(path: Path) -> Traced:
    return build_trace(str(path), ctxctl.load_models(), pins_of(EvictionOptions()))


def played(trace: Trace, policy: str) -> Replay:
    return replay(trace, ContextWindowManager(10**9, policy=policy, trace=trace))


# sizes


@given(st.integers(0, 10_000), st.lists(st.floats(0.01, 1000), min_size=1, max_size=20))
def test_growth_is_shared_out_to_the_token(growth: int, weights: list[float]) -> None:
    shares = share_out(growth, weights)
    assert sum(shares) == growth
    for share, weight in zip(shares, weights, strict=True):
        assert share >= 0 and abs(share - growth * weight / sum(weights)) <= 1.001


def test_nothing_to_share_out_by() -> None:
    assert share_out(5, []) == []
    assert share_out(5, [0.0, 0.0]) == [0, 0]
    assert share_out(10, [1.0, 1.0, 1.0]) == [3, 4, 3]


def test_the_first_prompt_gives_the_overhead_and_growth_the_sizes() -> None:
    tokens, overhead, unseen = anchor(
        [[0, 1], [2, 3], [4]], [30.2, 50.0, 30.0, 10.0, 5.0], [100, 140, 147], frozenset(), {}
    )
    assert (tokens, overhead, unseen) == ([30, 50, 30, 10, 7], 20, [0, 0, 0])


def test_a_first_prompt_below_what_was_counted_is_shared_out_too() -> None:
    assert anchor([[0, 1]], [60.0, 20.0], [40], frozenset(), {}) == ([30, 10], 0, [0])


def test_growth_that_no_block_explains_is_kept_apart() -> None:
    # nothing came, then the prompt shrank although something came
    assert anchor([[0], [], [1]], [10.0, 4.0], [10, 15, 12], frozenset(), {}) == ([10, 4], 0, [0, 5, -7])


def test_growth_over_calls_that_report_nothing_is_shared_out_over_all_that_came() -> None:
    assert anchor([[0], [1], [2]], [10.0, 5.0, 15.0], [10, None, 50], frozenset(), {}) == ([10, 10, 30], 0, [0, 0, 0])
    assert anchor([[0], [1]], [10.0, 5.0], [None, 50], frozenset(), {}) == ([10, 5], 35, [0, 0])


def test_what_the_client_took_back_explains_a_fall() -> None:
    tokens, _, unseen = anchor([[0], [1], [2]], [10.0, 20.0, 5.0], [10, 50, 16], frozenset(), {3: (1,)})
    assert (tokens, unseen) == ([10, 40, 6], [0, 0, 0])


def test_across_a_compaction_growth_says_nothing() -> None:
    tokens, _, unseen = anchor([[0], [1], [2]], [10.0, 7.0, 5.0], [10, 4, 14], frozenset({2}), {})
    assert (tokens, unseen) == ([10, 7, 10], [0, 0, 0])


# the window at each call


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_the_window_is_the_reported_prompt_at_every_call(path: Path) -> None:
    """What is not evicted adds up to the bill, until the agent itself compacts. A prompt that shrinks by more than all
    that never leaves, although nothing is known to have left, can't be followed."""
    made = traced(path)
    trace = made.trace
    first_cut = min(trace.recorded, default=len(trace.turns) + 1)
    window, overhead = 0, trace.overhead
    came: set[int] = set()
    prompts = played(trace, "unbounded").prompts
    assert len(prompts) == len(trace.turns)
    foreign = {b for cut in trace.recorded.values() for b in cut.summary}
    for turn, prompt in zip(trace.turns, prompts, strict=True):
        pinned = sum(trace.tokens[b] for b in came if trace.units[trace.unit_of[b]].pinned)
        lost = overhead + turn.unseen < -pinned
        overhead = max(-pinned, overhead + turn.unseen)
        came.update(turn.arrivals)
        window += sum(trace.tokens[b] for b in turn.arrivals if b not in foreign)
        window -= sum(trace.tokens[b] for b in turn.leaving)
        assert prompt == window + overhead
        if lost or turn.index >= first_cut:
            break
        if turn.prompt is not None:
            assert prompt == turn.prompt


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_nothing_is_missed_where_nothing_leaves(path: Path) -> None:
    trace = traced(path).trace
    done = played(trace, "unbounded")
    assert (done.misses, done.refetched, done.evictions) == (0, 0, 0)
    assert done.rmr in (None, 0.0)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_every_block_arrives_once_in_order_and_leaves_after_it_came(path: Path) -> None:
    trace = traced(path).trace
    came: set[int] = set()
    for turn in trace.turns:
        assert not came.intersection(turn.arrivals) and sorted(turn.arrivals) == list(turn.arrivals)
        assert came.issuperset(turn.leaving)
        came.difference_update(turn.leaving)
        came.update(turn.arrivals)
    assert [u.number for u in trace.units] == list(range(len(trace.units)))
    assert sorted(b for u in trace.units for b in u.blocks) == list(range(len(trace.blocks)))
    assert all(u.tokens == sum(trace.tokens[b] for b in u.blocks) for u in trace.units)


# what leaves, what was compacted, what is not there


def test_a_rollback_takes_back_what_came_since_the_prompt() -> None:
    trace = traced(GOLDEN / "codex" / "rollback.jsonl").trace
    (turn,) = [t for t in trace.turns if t.leaving]
    assert {trace.blocks[b].exchange for b in turn.leaving} == {2}
    # the answer that was taken back with its prompt was read by no call
    read = {b for t in trace.turns for b in t.arrivals}
    unread = [b for b, block in enumerate(trace.blocks) if b not in read and block.turn < turn.index]
    assert [trace.blocks[b].kind for b in unread] == ["assistant"]


def test_reasoning_of_the_last_exchange_leaves_with_the_next_prompt() -> None:
    trace = traced(GOLDEN / "codex" / "encrypted_reasoning.jsonl").trace
    left = [trace.blocks[b].kind for t in trace.turns for b in t.leaving]
    assert set(left) <= {"thinking"}


def test_a_rewind_takes_back_the_old_path() -> None:
    trace = traced(GOLDEN / "claude-code" / "rewound_branch.jsonl").trace
    transcript = ctxctl.read(str(GOLDEN / "claude-code" / "rewound_branch.jsonl"))
    there: set[str] = set()
    for turn in trace.turns:
        there.difference_update(trace.blocks[b].id for b in turn.leaving)
        there.update(trace.blocks[b].id for b in turn.arrivals)
    live = {transcript.blocks[b].id for b in transcript.live}
    assert there <= live
    # the last answer was read by no call
    last = max(b.turn for b in transcript.blocks)
    assert {b.turn for b in transcript.blocks if b.id in live - there} <= {last}


def test_the_agents_own_compaction_is_that_of_the_recording_alone() -> None:
    trace = traced(ROOT / "sample_transcripts" / "axios-to-fetch.jsonl").trace
    (cut,) = trace.recorded.values()
    assert cut.summary and all(trace.blocks[b].kind in ("summary", "memory_injection") for b in cut.summary)
    own, unbounded = played(trace, "recorded"), played(trace, "unbounded")
    before = cut.turn - 1
    assert own.prompts[:before] == unbounded.prompts[:before]
    assert own.prompts[before] < unbounded.prompts[before]
    summary = sum(trace.tokens[b] for b in cut.summary)
    arrived = sum(trace.tokens[b] for b in trace.turns[before].arrivals)
    assert unbounded.prompts[before] - unbounded.prompts[before - 1] == arrived - summary + trace.turns[before].unseen
    assert unbounded.compactions == 0 and own.evictions > 0


@pytest.mark.parametrize("name", ["sidechain_inline", "subagents_new", "subagents_old"])
def test_sub_agents_are_left_out(name: str) -> None:
    path = GOLDEN / "claude-code" / f"{name}.jsonl"
    transcript = ctxctl.read(str(path))
    assert {b.thread for b in transcript.blocks} > {"main"}
    trace = traced(path).trace
    assert {b.thread for b in trace.blocks} == {"main"}
    assert len(trace.turns) == len([u for u in transcript.usage if u.thread == "main"])


def conversation(words: int, answers: int) -> dict[str, object]:
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be kind."}]
    for n in range(answers):
        messages.append({"role": "user", "content": f"question {n} " + "word " * words})
        messages.append({"role": "assistant", "content": f"answer {n}"})
    return {"messages": messages}


@pytest.mark.parametrize("largest", [0, 1, 2])
def test_of_several_conversations_the_largest_is_taken(tmp_path: Path, largest: int) -> None:
    chats = [conversation(200 if n == largest else 5, 2 + n) for n in range(3)]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(chat) + "\n" for chat in chats), encoding="utf-8")
    trace = traced(path).trace
    assert len(trace.turns) == 2 + largest
    assert len(trace.blocks) == 1 + 2 * (2 + largest)
    assert [len(t.arrivals) for t in trace.turns] == [2] + [2] * (1 + largest)
    assert [b.turn for b in trace.blocks if b.kind == "assistant"] == list(range(1, 3 + largest))


def test_the_answers_words_are_kept_for_the_placebo() -> None:
    made = traced(ROOT / "sample_transcripts" / "mini-swe-agent.traj.json")
    assert set(made.written) <= {t.index for t in made.trace.turns}
    used = {(t.index, made.trace.names[r.atom]) for t in made.trace.turns for r in t.references}
    assert used <= {(turn, atom) for turn, atoms in made.written.items() for atom in atoms}
