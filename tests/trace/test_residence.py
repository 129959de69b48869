"""How long blocks stayed in the window of a recording."""

from __future__ import annotations

from ctxctl.model.block import Block, Source
from ctxctl.model.unit import RecordedCut, Trace, Turn
from ctxctl.trace.residence import Stay, stays_of


def block(number: int, kind: str, turn: int) -> Block:
    return Block(f"{number}.0", kind, "user", f"text {number}", turn, 1, Source(number + 1))


def trace(turns: list[Turn], recorded: dict[int, RecordedCut], blocks: int) -> Trace:
    made = [block(n, "system" if n == 0 else "tool_result", 1) for n in range(blocks)]
    return Trace("t", "t.jsonl", None, made, [10] * blocks, [], [], turns, recorded=recorded)


def test_blocks_stay_until_they_are_compacted_cleared_or_taken_back() -> None:
    turns = [
        Turn(1, (0, 1, 2)),
        Turn(2, (3,)),
        Turn(3, (4,), leaving=(3,)),
        Turn(4, (5,)),
        Turn(5, (6, 7)),
        Turn(6, ()),
    ]
    cuts = {
        4: RecordedCut(4, None, (1,), ()),
        5: RecordedCut(5, frozenset((4,)), (), (6,)),
    }
    stays = stays_of(trace(turns, cuts, 9))
    assert stays[0] == Stay(1)  # a system prompt outlives a compaction
    assert stays[1] == Stay(1, 4, "cleared")
    assert stays[2] == Stay(1, 5, "compacted")
    assert stays[3] == Stay(2, 3, "taken back")
    assert stays[4] == Stay(3)
    assert stays[5] == Stay(4, 5, "compacted")
    assert stays[6] == stays[7] == Stay(5)  # the summary, and what came behind it
    assert stays[8] == Stay(7)  # nothing has read it yet
    behind = stays_of(trace(turns, {**cuts, 7: RecordedCut(7, frozenset(), (), (8,))}, 9))
    assert behind[7] == Stay(5, 7, "compacted") and behind[8] == Stay(7)  # a compaction that no call followed
    assert [stays[1].holds(turn) for turn in (1, 3, 4)] == [True, True, False]
