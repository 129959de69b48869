"""Why a turn added so much: the likely cause of a spike, from the calls themselves (requirement P3)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ctxctl.model.block import KINDS
from ctxctl.trace.tally import ANSWER, ERROR, Tally

LOOK_BACK = 5
"""Turns before the spike in which a repeated call counts as a retry."""


class Causes:
    """Finds causes at some turns of one thread. estimates: tokens per block; has_answer: whether the context of a call
    holds its own answer."""

    def __init__(
        self, tally: Tally, thread: int, estimates: array[float], turns: Iterable[int], *, has_answer: bool = False
    ) -> None:
        self._tally = tally
        self._has_answer = has_answer
        self._estimates = estimates
        wanted = {t for turn in turns for t in range(turn - LOOK_BACK, turn + 1)}
        self._blocks: dict[int, list[int]] = {}
        for number, turn in enumerate(tally.turn):
            if turn in wanted and tally.thread[number] == thread:
                self._blocks.setdefault(turn, []).append(number)

    def of(self, turn: int) -> str:
        """One line that names what most likely made the turn add so much: a retried failing call, an output that
        grows from call to call, long reasoning, or the largest thing that came in."""
        tally = self._tally
        # what a turn adds to the prompt is the previous answer and what came in after it
        answered = turn if self._has_answer else turn - 1
        entered = [b for b in self._blocks.get(answered, []) if tally.flags[b] & ANSWER]
        entered += [b for b in self._blocks.get(turn, []) if not tally.flags[b] & ANSWER]
        if not entered:
            return "unknown: the transcript holds nothing that came in at this turn"
        largest = max(entered, key=lambda b: self._size(b))
        kind = KINDS[tally.kind[largest]]
        if kind == "tool_result":
            return self._of_result(largest, turn)
        if kind == "thinking":
            return f"long reasoning: {round(self._size(largest)):,} tokens in the previous answer"
        if kind in ("user_message", "memory_injection", "summary", "image", "document"):
            what = {"user_message": "a long user message", "memory_injection": "injected context"}.get(
                kind, f"a {kind}"
            )
            return f"{what}: {round(self._size(largest)):,} tokens"
        what = {"assistant": "answer", "tool_call": "tool call"}.get(kind, kind)
        name = self._tally.names[self._tally.tool[largest]]
        return f"a long {what}{f' of {name}' if name else ''}: {round(self._size(largest)):,} tokens"

    def _of_result(self, result: int, turn: int) -> str:
        tally = self._tally
        name = tally.names[tally.tool[result]] or "a tool"
        call = tally.same[result]
        target = tally.names[tally.target[result]]
        shown = f"{name} `{target}`" if target else name
        results = self._earlier(result, turn, same_call=True)
        failed = [b for b in results if tally.flags[b] & ERROR]
        if len(failed) >= 2:
            return f"the same failing call retried {len(failed)} times: {shown}"
        if call >= 0 and len(results) >= 3:
            sizes = [round(self._size(b)) for b in results[-3:]]
            if sizes == sorted(sizes) and sizes[0] < sizes[-1]:
                return (
                    f"the same call returns ever larger output ({' → '.join(f'{s:,}' for s in sizes)} tokens): {shown}"
                )
            return f"the same call repeated {len(results)} times: {shown}"
        similar = [round(self._size(b)) for b in self._earlier(result, turn, same_call=False)][-3:]
        if len(similar) == 3 and similar == sorted(similar) and similar[0] * 2 < similar[-1]:
            return (
                f"{name} returns ever larger output ({' → '.join(f'{s:,}' for s in similar)} tokens), last for {shown}"
            )
        return f"one large result of {shown}: {round(self._size(result)):,} tokens"

    def _earlier(self, result: int, turn: int, *, same_call: bool) -> list[int]:
        """Results of the same call (or of the same tool) in the last turns, up to this one."""
        tally = self._tally
        mine = self._key(result)
        return [
            b
            for t in range(turn - LOOK_BACK, turn + 1)
            for b in self._blocks.get(t, [])
            if KINDS[tally.kind[b]] == "tool_result"
            and b <= result
            and tally.tool[b] == tally.tool[result]
            and (not same_call or self._key(b) == mine)
        ]

    def _key(self, result: int) -> int:
        call = self._tally.same[result]
        return self._tally.same[call] if call >= 0 else -result - 2

    def _size(self, block: int) -> float:
        return self._estimates[block]
