"""Sessions by hand, the scene that a strategy is told, and what must hold of all edits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ctxctl.compaction.base import Scene, Strategy
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.model.block import Block, Source
from ctxctl.model.edits import SUMMARY, Edits
from ctxctl.model.summary import SessionSummary
from ctxctl.model.unit import Grouper
from ctxctl.model.window import Window


def count(text: str, kind: str) -> int:
    """A token for every 4 characters."""
    return -(-len(text) // 4)


class Session:
    """A session as an agent writes it: `user`, `say`, `call`, each a message; `scene` is what a strategy is told."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.tokens: list[int] = []
        self.pinned = pins_of(EvictionOptions())
        self.grouper = Grouper()
        self.turn = 1
        self.exchange = 0
        self.messages = 0
        self.facts = SessionSummary(goal="Make the parser fast", constraints=("Never touch the public API.",))

    def add(self, kind: str, text: str, message: int, **more: Any) -> int:
        number = len(self.blocks)
        role = "assistant" if kind in ("assistant", "thinking", "tool_call") else "tool" if "result" in kind else "user"
        stamp = f"2026-01-01T00:{self.turn // 60:02d}:{self.turn % 60:02d}Z"
        block = Block(
            f"{number + 1}.0",
            kind,
            role,
            text,
            self.turn,
            self.exchange,
            Source(number + 1),
            timestamp=stamp,
            message=message,
            **more,
        )
        self.blocks.append(block)
        self.tokens.append(count(text, kind))
        self.grouper.add(block, self.tokens[-1], self.turn, self.pinned(block))
        return number

    def message(self) -> int:
        self.messages += 1
        return self.messages

    def user(self, text: str) -> None:
        self.exchange += 1
        self.add("user_message", text, self.message())

    def say(self, text: str, *calls: tuple[str, dict[str, Any], str], thinking: str = "", error: bool = False) -> None:
        """An answer: (tool, arguments, result) for each call."""
        response, message = f"r{self.turn}", self.message()
        if thinking:
            self.add("thinking", thinking, message, response_id=response)
        if text:
            self.add("assistant", text, message, response_id=response)
        made = []
        for at, (tool, arguments, result) in enumerate(calls):
            name = f"{response}.{at}"
            target = next((str(v) for v in arguments.values()), None)
            made.append((name, tool, target, result))
            self.add(
                "tool_call",
                f"{tool} {json.dumps(arguments)}",
                message,
                response_id=response,
                tool_name=tool,
                call_id=name,
                target=target,
            )
        self.turn += 1
        for name, tool, target, result in made:
            self.add("tool_result", result, self.message(), tool_name=tool, call_id=name, target=target, is_error=error)

    def window(self) -> Window:
        window = Window(self.blocks, self.grouper.unit_of, self.grouper.units, 50)
        for number, block in enumerate(self.blocks):
            window.turn = max(window.turn, block.turn)
            window.enter(number, self.tokens[number])
        window.turn = self.turn
        window.fresh.clear()
        if self.blocks[-1].kind == "tool_result":
            window.fresh.add(window.unit_of[len(self.blocks) - 1])
        return window

    def scene(self, target: float = 0.3, options: CompactionOptions | None = None, **more: Any) -> Scene:
        """target: tokens, or up to 1 a share of what is there."""
        window = self.window()
        goal = int(target * window.tokens) if target <= 1 else int(target)
        return Scene(window, goal, 128_000, count, lambda: self.facts, options or CompactionOptions(), **more)


def carried_out(strategy: Strategy, scene: Scene) -> Edits:
    """Plan and apply, and hold what must hold of all edits; returns them."""
    window = scene.window
    before, protected = window.tokens, window.protected().difference(window.summaries)
    there = {u: tuple(window.present(u)) for u in (*window.resident, *window.fixed)}
    texts = {b: window.text(b) for b in window.entries}
    fixed = set(window.fixed)
    edits = strategy.plan(scene)
    dropped = [b for drop in edits.drops for b in drop.blocks]
    changed = {c.block: c for c in edits.replaces}
    assert len(dropped) == len(set(dropped)) and not set(dropped) & set(changed)
    assert len(changed) == len(edits.replaces)
    for drop in edits.drops:
        assert drop.tokens == sum(window.entries[b].tokens for b in drop.blocks)
    for change in edits.replaces:
        assert change.text and change.tokens == count(change.text, "")
        if change.kind != SUMMARY:
            assert change.tokens < window.entries[change.block].tokens
    window.apply(edits)
    window.check()
    assert window.tokens <= before
    may_shrink = window.fresh - fixed - window.kept if strategy.group == "last resort" else set()
    for unit in fixed | protected:  # as they were, but for results in the last resort
        assert tuple(window.present(unit)) == there[unit]
        for b in there[unit]:
            if unit in may_shrink and window.block(b).kind == "tool_result" and b in changed:
                assert changed[b].kind != SUMMARY and "characters left out" in window.text(b)
            else:
                assert window.text(b) == texts[b]
    if strategy.group == "last resort":
        assert not dropped and {window.unit_of[b] for b in changed} <= may_shrink
    for unit, blocks in there.items():  # whole units: all there, all gone, or one block that carries a summary
        left = tuple(window.present(unit))
        carrier = [b for b in left if b in changed and changed[b].kind == SUMMARY]
        assert left in ((), blocks) or left == tuple(carrier)
    return edits


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture(scope="session")
def sessions() -> type[Session]:
    return Session


@pytest.fixture(scope="session")
def carry_out() -> Callable[[Strategy, Scene], Edits]:
    return carried_out


@pytest.fixture(scope="session")
def with_target() -> Callable[[Scene, int], Scene]:
    return lambda scene, target: replace(scene, target=target)
