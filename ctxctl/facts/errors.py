"""Errors: the newest failed calls that were not seen to succeed later."""

from __future__ import annotations

import re
from collections.abc import Container

from ctxctl.model.block import Block

MOST = 10
"""Errors that are told."""
LONGEST = 200
RECENT = 30
"""Turns after which a failure that was never tried again counts as left behind."""
_SIGN = re.compile(
    r"error|exception|fatal|failed|not found|no such|denied|cannot|undefined|panic|invalid", re.IGNORECASE
)
_EMPTY = re.compile(r"^(?:Exit code:? \d+|</?\w+>|<returncode>.*|Traceback \(most recent call last\):|)$")


class ErrorLog:
    """Collects failures by tool and target; a later success of the same solves it."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, int, tuple[str, str], str]] = []
        self._failing: set[tuple[str, str]] = set()

    def add(self, number: int, block: Block, text: str, failed: bool) -> None:
        """Take a result. text: what it printed."""
        key = (block.tool_name or "tool", block.target or "")
        if failed:
            self._failing.add(key)
            self._seen.append((number, block.turn, key, told(text)))
        elif key in self._failing:
            self._failing.discard(key)
            self._seen.append((number, block.turn, key, ""))

    def fold(self, gone: Container[int], last: int) -> tuple[str, ...]:
        """What is unsolved, oldest first. last: the newest turn."""
        newest: dict[tuple[str, str], str] = {}
        for number, turn, key, line in self._seen:
            if number not in gone and turn > last - RECENT:
                newest.pop(key, None)
                if line:
                    newest[key] = line
        lines = [f"{tool} {target}: {line}" if target else f"{tool}: {line}" for (tool, target), line in newest.items()]
        return tuple(lines[-MOST:])


def told(text: str) -> str:
    """The line of an output that tells the failure: the last of a traceback, else the first with a sign of one."""
    lines = [line.strip() for line in text[-8_000:].split("\n")]
    lines = [line for line in lines if not _EMPTY.match(line)]
    if not lines:
        return ""
    if "Traceback (most recent call last)" in text:
        lines.reverse()
    line = next((line for line in lines if _SIGN.search(line)), lines[0])
    return " ".join(line.split())[:LONGEST]
