"""Errors: the newest failed calls that were not seen to succeed later."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from ctxctl.model.block import Block
from ctxctl.model.text import shortened

MOST = 10
"""Errors that are told."""
LONGEST = 200
RECENT = 30
"""Turns after which a failure that was never tried again counts as left behind."""
CARRIED = 40
"""Failures that are carried to the next reading."""
_SIGN = re.compile(
    r"error|exception|fatal|failed|not found|no such|denied|cannot|undefined|panic|invalid", re.IGNORECASE
)
_EMPTY = re.compile(r"^(?:Exit code:? \d+|</?\w+>|<returncode>.*|Traceback \(most recent call last\):|)$")


class ErrorLog:
    """Collects failures by tool and target; a later success of the same solves it."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, int, tuple[str, str], str, bool]] = []
        self._failing: set[tuple[str, str]] = set()
        self._carried: list[tuple[int, int, tuple[str, ...]]] = []

    def carry(self, number: int, turn: int, lines: tuple[str, ...]) -> None:
        """Take the errors of an earlier summary."""
        if lines:
            self._carried.append((number, turn, lines))

    def add(self, number: int, block: Block, text: str, failed: bool, *, shrunk: bool = False) -> None:
        """Take a result. text: what it printed. shrunk: or what is left of that, so that it solves nothing which was
        told before, nor tells it in other words."""
        key = (block.tool_name or "tool", block.target or "")
        if failed:
            self._failing.add(key)
            if text.strip() or not shrunk:
                self._seen.append((number, block.turn, key, told(text), shrunk))
        elif key in self._failing or (self._carried and not shrunk):  # every time: a rewind may leave one behind
            self._seen.append((number, block.turn, key, "", shrunk))

    def fold(self, gone: Container[int], last: int) -> tuple[str, ...]:
        """What is unsolved, oldest first, what earlier summaries told among it. last: the newest turn."""
        carried, newest = self._unsolved(gone, last)
        return (*carried, *(f"{_name(key)}: {line}" for key, (_, line) in newest.items()))[-MOST:]

    def go_on(self, carried: dict[str, Any]) -> None:
        """Go on where `carry_on` was asked, before the first result."""
        self._carried = [(-1, turn, (line,)) for turn, line in carried["told"]]
        for turn, tool, target, line in carried["failing"]:
            self._failing.add((tool, target))
            self._seen.append((-1, turn, (tool, target), line, False))

    def carry_on(self, gone: Container[int], last: int) -> dict[str, Any]:
        """What `go_on` needs: what is unsolved. last: the newest turn."""
        carried, newest = self._unsolved(gone, last)
        return {
            "told": [[turn, line] for line, turn in carried.items()][-CARRIED:],
            "failing": [[turn, *key, line] for key, (turn, line) in newest.items()][-CARRIED:],
        }

    def _unsolved(
        self, gone: Container[int], last: int
    ) -> tuple[dict[str, int], dict[tuple[str, str], tuple[int, str]]]:
        """What earlier summaries told, with their turn, and what failed since, with the turn and what it said."""
        before = [(n, turn, lines) for n, turn, lines in self._carried if n not in gone and turn > last - RECENT]
        carried: dict[str, int] = {}
        for _, turn, lines in before:
            for line in lines:
                carried.setdefault(line, turn)
        since = before[-1][0] if before else -1
        newest: dict[tuple[str, str], tuple[int, str]] = {}
        for number, turn, key, line, shrunk in self._seen:
            if number in gone or turn <= last - RECENT:
                continue
            known = [text for text in carried if text.startswith(f"{_name(key)}: ")] if carried else []
            if number > since and not shrunk:
                for text in known:
                    del carried[text]
            elif known:
                continue
            newest.pop(key, None)
            if line:
                newest[key] = (turn, line)
        return carried, newest


def _name(key: tuple[str, str]) -> str:
    return " ".join(part for part in key if part)


def told(text: str) -> str:
    """The line of an output that tells the failure: the last of a traceback, else the first with a sign of one."""
    lines = [line.strip() for line in text[-8_000:].split("\n")]
    lines = [line for line in lines if not _EMPTY.match(line)]
    if not lines:
        return ""
    if "Traceback (most recent call last)" in text:
        lines.reverse()
    line = next((line for line in lines if _SIGN.search(line)), lines[0])
    return shortened(" ".join(line.split()), LONGEST)
