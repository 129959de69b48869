"""The goal: the message that states the task."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.model.block import Block
from ctxctl.model.text import shortened

LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class Goal:
    """block: number of the block that states it. text: its beginning, at most 4,000 characters."""

    block: int
    text: str


class GoalFinder:
    """The first message that a human typed in a thread states the task; the newest one is the current request.

    Readers count an exchange for each typed prompt, so what a client wrote in the user's place belongs to none or to
    an earlier one.
    """

    def __init__(self) -> None:
        self.goals: dict[str, Goal] = {}
        self.current: dict[str, Goal] = {}
        self._exchange: dict[str, int] = {}

    def exchange(self, thread: str) -> int:
        """The newest exchange of a thread in which something was typed."""
        return self._exchange.get(thread, 0)

    def go_on(self, thread: str, exchange: int) -> None:
        """What is typed in a thread up to an exchange was seen before."""
        self._exchange[thread] = exchange

    def see(self, block: Block, number: int) -> None:
        """Take a block; only user messages matter."""
        if block.kind != "user_message" or not block.text.strip():
            return
        if block.exchange <= self._exchange.get(block.thread, 0):
            return
        self._exchange[block.thread] = block.exchange
        goal = Goal(number, shortened(block.text, LONGEST))
        self.goals.setdefault(block.thread, goal)
        self.current[block.thread] = goal
