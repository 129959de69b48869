"""Each preset against cases that were worked out by hand from what is known of its runtime: one file per case.

A case names its preset, window and messages, and lists everything that is in the window at the last call: blocks as
they were, blocks with another content, and blocks that came in. A call is made before each assistant message, and one
at the end. Tokens of a block are a quarter of its characters, rounded up. helper: prompt, cached and output tokens of
each call that a summary took.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctxctl.eviction.base import Setting
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.unit import Grouper, Trace, Turn
from ctxctl.settings.presets import load_presets
from ctxctl.simulate.presets import preset_policy
from ctxctl.simulate.replay import replay

CASES = sorted((Path(__file__).parent / "presets" / "cases").glob("*.yaml"))
MOST_MESSAGES = 12


def words(told: Any) -> str:
    """The text of a case: literal, a piece so many times, or numbered lines of some width."""
    if isinstance(told, dict) and "repeat" in told:
        return told["repeat"] * told["times"]
    if isinstance(told, dict):
        return "\n".join(str(n).ljust(told["width"], ".") for n in range(1, told["lines"] + 1))
    return str(told)


def names(told: list[str]) -> list[str]:
    """`c[2-4].result` stands for c2.result, c3.result, c4.result."""
    found: list[str] = []
    for name in told:
        span = re.search(r"\[(\d+)-(\d+)\]", name)
        if span is None:
            found.append(name)
        else:
            found += [name[: span.start()] + str(n) + name[span.end() :] for n in range(int(span[1]), int(span[2]) + 1)]
    return found


class Session:
    """The blocks of a case by name, and its trace."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.blocks: list[Block] = []
        self.names: list[str] = []
        self.turns: list[Turn] = []
        self._tools: dict[str, tuple[str, str | None]] = {}
        self._arrivals: list[int] = []
        self._exchange = 0
        self._minute = 0.0
        for place, message in enumerate(messages):
            self._minute = message.get("minute", self._minute)
            if "assistant" in message:
                self._call(sum(-(-len(b.text) // 4) for b in self._answer(place, message)))
                self._arrivals = [n for n, b in enumerate(self.blocks) if b.message == place]
            else:
                self._heard(place, message)
        self._call(0)
        grouper = Grouper()
        tokens = [-(-len(b.text) // 4) for b in self.blocks]
        for block, size in zip(self.blocks, tokens, strict=True):
            grouper.add(block, size, block.turn, "system" if block.kind == "system" else None)
        self.trace = Trace(
            None, "case", None, self.blocks, tokens, grouper.unit_of, grouper.units, self.turns, 0, [()] * len(tokens)
        )

    def _call(self, output: int) -> None:
        number = len(self.turns) + 1
        self.turns.append(Turn(number, tuple(self._arrivals), output=output, time=60 * self._minute))
        self._arrivals = []

    def _block(self, place: int, name: str, kind: str, role: str, text: str, **more: Any) -> Block:
        block = Block(name, kind, role, text, len(self.turns) + 1, self._exchange, Source(place), message=place, **more)
        self._arrivals.append(len(self.blocks))
        self.blocks.append(block)
        self.names.append(name)
        return block

    def _answer(self, place: int, message: dict[str, Any]) -> list[Block]:
        waiting, self._arrivals = self._arrivals, []
        name = message["assistant"]
        response = f"response-{place}"
        found = []
        for kind, key in (("thinking", "thinking"), ("assistant", "text")):
            if key in message:
                told = f"{name}.thinking" if kind == "thinking" else name
                found.append(self._block(place, told, kind, "assistant", words(message[key]), response_id=response))
        for call in message.get("calls", []):
            for number in range(1, call.get("count", 1) + 1):
                mine = f"{call['id']}{number}" if "count" in call else call["id"]
                tool, target = call.get("tool", "bash"), call.get("target")
                told = {k: words(v) for k, v in call.get("args", {"command": "ls"}).items()}
                text = f"{tool} {json.dumps(told, separators=(',', ':'))}"
                self._tools[mine] = (tool, target)
                more = {"tool_name": tool, "call_id": mine, "response_id": response, "target": target}
                found.append(self._block(place, mine, "tool_call", "assistant", text, **more))
        self._arrivals = waiting
        return found

    def _heard(self, place: int, message: dict[str, Any]) -> None:
        if "system" in message:
            self._block(place, message["system"], "system", "system", words(message["text"]))
        elif "user" in message:
            self._exchange += 1
            self._block(place, message["user"], "user_message", "user", words(message["text"]))
        else:
            for mine in names(message["results"]):
                tool, target = self._tools[mine]
                more = {"tool_name": tool, "call_id": mine, "target": target}
                self._block(place, f"{mine}.result", "tool_result", "tool", words(message["text"]), **more)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_a_preset_does_what_its_runtime_does(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert len(case["messages"]) <= MOST_MESSAGES
    session = Session(case["messages"])
    setting = Setting(case["window"], output=case.get("output", 8192), model=case.get("model"))
    policy = preset_policy(load_presets()[case["preset"]], setting, case.get("summary_size", "typ"))
    manager = ContextWindowManager(case["window"], policy=policy, trace=session.trace, explain=False)
    found = replay(session.trace, manager)
    if "helper" in case:
        assert [list(call) for call in found.helper] == case["helper"]
    window = manager.window
    whole, changed, made = [], {}, []
    for entry in sorted(window.entries.values(), key=lambda e: e.place):
        if entry.number < 0:
            made.append((window.block(entry.number).text, entry.tokens))
        elif entry.replaced:
            changed[session.names[entry.number]] = (entry.text, entry.tokens)
        else:
            whole.append(session.names[entry.number])
    assert whole == [n for n in session.names if n in set(names(case["kept"]))]
    assert set(names(case["kept"])) <= set(session.names)
    assert set(changed) == set(names(list(case.get("changed", {}))))
    for told, expected in case.get("changed", {}).items():
        for name in names([told]):
            holds(changed[name], expected)
    assert len(made) == len(case.get("made", []))
    for found, expected in zip(made, case.get("made", []), strict=True):
        holds(found, expected)


def holds(found: tuple[str | None, int], expected: dict[str, Any]) -> None:
    """What stands for a block is what the case says of it."""
    text, tokens = found
    if expected.get("unknown"):
        assert not text
    else:
        assert text is not None
        for key, value in expected.items():
            if key == "text":
                assert text == words(value)
            elif key == "starts":
                assert text.startswith(words(value))
            elif key == "ends":
                assert text.endswith(words(value))
            elif key == "contains":
                assert words(value) in text
            elif key == "length":
                assert len(text) == value
            else:
                assert key == "tokens"
    if "tokens" in expected:
        assert tokens == expected["tokens"]


def test_every_deterministic_preset_has_a_case() -> None:
    named = {yaml.safe_load(path.read_text(encoding="utf-8"))["preset"] for path in CASES}
    wanted = {i for i, p in load_presets().items() if p.class_ == "deterministic" and p.unsupported is None}
    assert wanted <= named


def test_every_boundary_rule_of_summaries_has_a_case() -> None:
    presets = load_presets()
    named = set()
    for path in CASES:
        preset = presets[yaml.safe_load(path.read_text(encoding="utf-8"))["preset"]]
        if preset.class_ == "summary":
            named.add(preset.pair)
    wanted = {p.pair for p in presets.values() if p.class_ == "summary" and p.unsupported is None}
    assert wanted <= named
