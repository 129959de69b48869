"""Results without call ids belong to the answer in front of them."""

from __future__ import annotations

from ctxctl.model.block import Block, Source
from ctxctl.trace.answers import answer_of, is_reply


def block(n: int, kind: str, role: str, message: int, call: str | None = None) -> Block:
    return Block(str(n), kind, role, "text", 1, 1, Source(n), call_id=call, message=message)


BLOCKS = [
    block(0, "user_message", "user", 0),
    block(1, "thinking", "assistant", 1),
    block(2, "assistant", "assistant", 1),
    block(3, "tool_result", "user", 2),
    block(4, "tool_result", "user", 3),
    block(5, "user_message", "user", 4),
    block(6, "tool_result", "user", 5),
    block(7, "tool_call", "assistant", 6, "c"),
    block(8, "tool_result", "tool", 7, "c"),
]


def test_answer_of_a_result() -> None:
    assert [is_reply(b) for b in BLOCKS] == [n in (3, 4, 6) for n in range(9)]
    assert list(answer_of(BLOCKS, 3)) == list(answer_of(BLOCKS, 4)) == [1, 2]
    assert list(answer_of(BLOCKS, 6)) == []
