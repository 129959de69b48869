"""The placebo rate, by hand."""

from __future__ import annotations

import pytest

from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper, Trace, Turn
from ctxctl.simulate.placebo import placebo
from ctxctl.trace.references import find_references


def made(rows: list[tuple[str, str, int]], pinned: int | None = None) -> tuple[Trace, dict[int, set[str]]]:
    """rows: kind, text, call that reads or wrote it."""
    blocks, enters = [], []
    grouper = Grouper()
    for n, (kind, text, turn) in enumerate(rows):
        block = Block(f"{n}.0", kind, "assistant" if kind == "assistant" else "user", text, turn, 1, Source(1))
        blocks.append(block)
        enters.append(turn + (kind == "assistant"))
        grouper.add(block, 10, enters[-1], "task" if n == pinned else None)
    found = find_references(blocks, enters, grouper.unit_of, grouper.units)
    turns = [
        Turn(k, tuple(n for n, e in enumerate(enters) if e == k), references=tuple(found.references.get(k, ())))
        for k in range(1, max(turn for _, _, turn in rows) + 1)
    ]
    trace = Trace(None, "-", None, blocks, [10] * len(blocks), grouper.unit_of, grouper.units, turns)
    return trace, found.written


OWN = [
    ("user_message", "mend the_task in src/app/task.py", 1),
    ("tool_result", "load_config save_config 4711 ValueError", 1),
    ("assistant", "load_config, save_config, 4711, ValueError, the_task", 1),
    ("tool_result", "nothing", 2),
    ("assistant", "load_config", 2),
    ("tool_result", "nothing", 3),
    ("tool_result", "nothing", 3),
]
FILLER = [("tool_result", "nothing", 3)] * 4


def test_references_to_the_other_run_per_reference_to_the_own() -> None:
    own, written = made(OWN, pinned=0)
    # its own: three at call 1 (the error is no headline, the task is pinned) and one at call 2
    assert [len([r for r in t.references if r.kind != "error"]) for t in own.turns] == [3, 1, 0]
    other, _ = made([("tool_result", "save_config ValueError the_task", 1), ("tool_result", "load_config", 2), *FILLER])
    # save_config at call 1; load_config is there at call 2 only
    assert placebo(written, own, other) == 2 / 4


def test_the_own_run_is_its_own_placebo() -> None:
    own, written = made(OWN, pinned=0)
    assert placebo(written, own, own) == 1.0


def test_pinned_or_common_atoms_of_the_other_run_count_for_nothing() -> None:
    own, written = made(OWN, pinned=0)
    task, _ = made([("tool_result", "load_config", 1), ("user_message", "load_config", 1), *FILLER], pinned=1)
    assert placebo(written, own, task) == 0.0
    common, _ = made([("tool_result", "load_config", 1)] * 3)
    assert placebo(written, own, common) == 0.0


@pytest.mark.parametrize("rows", [[("assistant", "load_config", 1)], [("tool_result", "4711", 2)]])
def test_without_references_there_is_no_rate(rows: list[tuple[str, str, int]]) -> None:
    own, written = made(rows)
    other, _ = made(OWN)
    assert placebo(written, own, other) is None
