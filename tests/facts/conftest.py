"""A session written call by call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import MAIN, Block, Source
from ctxctl.model.summary import SessionSummary


class Script:
    """Blocks of a session in order; `summary` feeds them to fresh facts."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.turn = 1
        self.exchange = 0

    def add(self, kind: str, role: str, text: str, **more: Any) -> int:
        number = len(self.blocks)
        where = Source(number + 1)
        self.blocks.append(Block(f"{number}.0", kind, role, text, self.turn, self.exchange, where, **more))
        return number

    def user(self, text: str) -> int:
        self.exchange += 1
        return self.add("user_message", "user", text)

    def said(self, text: str) -> int:
        self.turn += 1
        return self.add("assistant", "assistant", text)

    def call(
        self,
        name: str,
        given: Any,
        result: str | None = "",
        *,
        error: bool = False,
        thread: str = MAIN,
        target: str = "",
    ) -> int:
        """A call and its result (None: it has none). given: its arguments, or text as it stands."""
        self.turn += 1
        text = given if isinstance(given, str) else json.dumps(given)
        ids = {"tool_name": name, "call_id": f"c{len(self.blocks)}", "thread": thread, "target": target or None}
        number = self.add("tool_call", "assistant", f"{name} {text}", **ids)
        if result is not None:
            self.add("tool_result", "user", result, is_error=error, **ids)
        return number

    def bash(self, command: str, result: str = "", *, error: bool = False) -> int:
        return self.call("Bash", {"command": command}, result, error=error, target=command[:80])

    def summary(self, gone: frozenset[int] = frozenset()) -> SessionSummary:
        facts = SessionFacts()
        for number, block in enumerate(self.blocks):
            facts.see(block, number)
        return facts.summary(gone)


@pytest.fixture
def script() -> Script:
    return Script()
