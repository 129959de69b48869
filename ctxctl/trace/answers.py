"""Which answer a result belongs to where calls have no ids: agents that write their commands as text."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.model.block import Block


def is_reply(block: Block) -> bool:
    """Whether a block is a result that names no call."""
    return block.kind == "tool_result" and block.call_id is None


def answer_of(blocks: Sequence[Block], number: int) -> range:
    """The blocks of the answer that a result without a call id replies to: the message of the model in front of it.
    Empty where there is none."""
    last = number - 1
    while last >= 0 and is_reply(blocks[last]):
        last -= 1
    if last < 0 or blocks[last].role != "assistant":
        return range(0)
    first = last
    while first > 0 and blocks[first - 1].role == "assistant" and blocks[first - 1].message == blocks[last].message:
        first -= 1
    return range(first, last + 1)
