"""Presets over sessions that nobody wrote by hand: pairs stay whole, sums close, system prompts stay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.eviction.base import Setting
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper, Reference, Trace, Turn
from ctxctl.settings.presets import load_presets
from ctxctl.simulate.presets import preset_policy
from ctxctl.simulate.replay import replay

PRESETS = {i: p for i, p in load_presets().items() if p.unsupported is None}
UNPROTECTED = {"none", "removed_range_ends_on_assistant", "snap_forward_non_observation"}
"""Boundary rules under which a runtime itself parts calls from results: nothing looks at pairs, results are plain text
to it, or only results in front are looked at."""
LINE = "abc def\n"

calls = st.tuples(st.sampled_from(("bash", "read_file", "browser")), st.integers(0, 4000))
rounds = st.fixed_dictionaries(
    {
        "user": st.booleans(),
        "text": st.integers(0, 900),
        "thinking": st.booleans(),
        "calls": st.lists(
            st.tuples(st.sampled_from(("bash", "read_file", "browser")), st.integers(0, 4000)), max_size=3
        ),
        "answered": st.integers(0, 9),
        "again": st.integers(0, 30),
        "hours": st.integers(0, 2),
    }
)


def session(told: list[dict[str, Any]], overhead: int) -> Trace:
    """A trace of rounds of a user, an assistant and its tools; `again` refers to an earlier block by its number."""
    blocks: list[Block] = []
    turns: list[Turn] = []
    arrivals: list[int] = []
    clock, exchange = 0.0, 0

    def add(kind: str, role: str, text: str, message: int, **more: Any) -> None:
        arrivals.append(len(blocks))
        turn = len(turns) + 1
        blocks.append(Block(str(len(blocks)), kind, role, text, turn, exchange, Source(0), message=message, **more))

    if not overhead:
        add("system", "system", "You are good.", 0)
    for place, part in enumerate(told):
        if part["user"] or not place:
            exchange += 1
            add("user_message", "user", f"please do {place} " * 9, 4 * place + 1)
        clock += 3600 * part["hours"] + 1
        wanted = part["again"]
        references: tuple[Reference, ...] = ()
        if wanted < len(blocks):
            references = (Reference(len(turns) + 1, wanted, "line", 1.0, -wanted - 1, True, ""),)
        turns.append(Turn(len(turns) + 1, tuple(arrivals), output=9, time=clock, references=references))
        arrivals.clear()
        response = f"response {place}"
        if part["thinking"]:
            add("thinking", "assistant", "well then", 4 * place + 2, response_id=response)
        if part["text"] or not part["calls"]:
            add("assistant", "assistant", "a" * (part["text"] + 1), 4 * place + 2, response_id=response)
        made = [(f"call {place} {n}", tool, size) for n, (tool, size) in enumerate(part["calls"])]
        for call, tool, _ in made:
            more = {"tool_name": tool, "call_id": call, "response_id": response}
            add("tool_call", "assistant", f'{tool} {{"path":"f{place % 3}.py"}}', 4 * place + 2, **more)
        if part["answered"]:
            for call, tool, size in made:
                text = LINE * (size // len(LINE))
                add("tool_result", "tool", text, 4 * place + 3, tool_name=tool, call_id=call)
    turns.append(Turn(len(turns) + 1, tuple(arrivals), time=clock))
    tokens = [-(-len(b.text) // 4) for b in blocks]
    grouper = Grouper()
    for block, size in zip(blocks, tokens, strict=True):
        grouper.add(block, size, block.turn, "system" if block.kind == "system" else None)
    real = [
        Turn(
            t.index,
            t.arrivals,
            output=t.output,
            time=t.time,
            references=tuple(
                Reference(r.turn, r.atom, r.kind, r.weight, grouper.unit_of[-r.smallest - 1], True, "")
                for r in t.references
            ),
        )
        for t in turns
    ]
    atoms = [(n,) for n in range(len(blocks))]
    names = [f"atom {n}" for n in range(len(blocks))]
    return Trace(None, "made", None, blocks, tokens, grouper.unit_of, grouper.units, real, overhead, atoms, names)


def parted(manager: ContextWindowManager, turned: set[int], newest: int) -> list[int]:
    """Units of which the call or the result alone is in the window, though both have come in."""
    window = manager.window
    found = []
    for unit in window.units:
        kinds = {
            "tool_call": [b for b in unit.blocks if window.blocks[b].kind == "tool_call"],
            "tool_result": [b for b in unit.blocks if window.blocks[b].kind == "tool_result"],
        }
        if not kinds["tool_call"] or not kinds["tool_result"]:
            continue
        if any(b > newest for b in unit.blocks):
            continue
        there = [any(b in window.entries and b not in turned for b in blocks) for blocks in kinds.values()]
        if there[0] != there[1]:
            found.append(unit.number)
    return found


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    told=st.lists(rounds, min_size=1, max_size=14),
    window=st.sampled_from((400, 1500, 6000)),
    overhead=st.sampled_from((0, 90)),
    size=st.sampled_from(("low", "typ", "high")),
)
def test_pairs_stay_whole_and_sums_close(
    name: str, told: list[dict[str, Any]], window: int, overhead: int, size: Any
) -> None:
    preset = PRESETS[name]
    trace = session(told, overhead)
    output = window // 10
    replay(
        trace,
        ContextWindowManager(window, policy=preset_policy(preset, Setting(window, output=output), size), trace=trace),
    )

    policy = preset_policy(preset, Setting(window, output=output), size)
    manager = ContextWindowManager(window, policy=policy, trace=trace, explain=False)
    turned: set[int] = set()
    newest = -1
    for turn in trace.turns:
        manager.window.time = turn.time
        for block in turn.arrivals:
            manager.enter(block)
            newest = max(newest, block)
        edits = manager.turn_start().edits
        turned |= {r.block for r in edits.replaces if r.kind is not None}
        manager.window.check()
        if preset.pair not in UNPROTECTED:
            assert not parted(manager, turned, newest)
        if name != "langchain-trim-last":
            assert all(b in manager.window.entries for b in range(newest + 1) if trace.blocks[b].kind == "system")
        manager.turn_end(credits=(), output=turn.output)
        for reference in turn.references:
            unit = trace.units[reference.smallest]
            manager.restore(unit.number)
            turned -= set(unit.blocks)
        assert [i.number for i in policy.items.list if i.number not in manager.window.entries] == []
        assert sum(i.tokens for i in policy.items.list) + manager.window.overhead == manager.window.tokens


SUMMARIES = [i for i, p in PRESETS.items() if p.summary is not None and i != "langchain-summarization"]


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_takes_the_place_of_the_one_before(name: str) -> None:
    part = {"user": True, "text": 800, "thinking": False, "answered": 1, "again": 10**6, "hours": 0}
    tools = [("bash", 40), ("read_file", 3000)]
    trace = session([{**part, "user": n % 3 == 0, "calls": tools if n % 3 else []} for n in range(1000)], 0)
    policy = preset_policy(PRESETS[name], Setting(32_000, output=4000))
    manager = ContextWindowManager(32_000, policy=policy, trace=trace, explain=False)
    found = replay(trace, manager)
    assert len(found.helper) >= 3 or name == "claude-code-session-memory"  # its notes are written all along
    assert found.edits >= 3
    there = [i for i in policy.items.list if i.kind == "summary"]
    assert len(there) <= 1 + (PRESETS[name].summary.tail_as_text is not None)  # type: ignore[union-attr]
