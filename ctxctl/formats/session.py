"""Bookkeeping that every reader needs: threads, turns, exchanges, calls, and the blocks that leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from sys import intern
from typing import TYPE_CHECKING

from ctxctl.formats.base import Diagnostics, Emit, Json
from ctxctl.formats.content import Piece
from ctxctl.model.block import MAIN, Block, Source
from ctxctl.model.usage import Usage

if TYPE_CHECKING:
    from ctxctl.formats.tail import Point

LARGEST_COUNT = (1 << 40) - 1
"""No request has a trillion tokens: larger counts are taken for damage."""

WAITING = 32
"""Calls without a result that are known where reading goes on."""


@dataclass(slots=True)
class Call:
    """One model call while it is read: usage fields grow to their maximum over the lines that state them. damaged: a
    bit for each field of the prompt that was stated wrongly and never rightly. stale: of a window that was compacted
    since."""

    turn: int
    thread: str
    line: int
    model: str | None = None
    time: float | None = None
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    context: int | None = None
    cost: float | None = None
    reported: bool = False
    damaged: int = 0
    cache_write_1h: int = 0
    stale: bool = False

    def usage(self) -> Usage:
        """The frozen value. The context is unknown where a part of the prompt was stated wrongly."""
        context = self.context
        if context is None and self.reported and not self.damaged and not self.stale:
            context = self.input + self.cache_read + self.cache_write
        return Usage(
            self.turn,
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.reasoning,
            context,
            self.line,
            self.thread,
            self.model,
            self.cost,
            self.time,
            self.cache_write_1h,
            self.reported,
        )


@dataclass(slots=True)
class Thread:
    """Where a thread stands. calls: model calls so far; exchange: user prompts so far; open_calls: tool calls without a
    result by id, with name and target; answered: the newest that got one."""

    name: str
    calls: int = 0
    exchange: int = 0
    open_calls: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    answered: tuple[str | None, str | None, str | None] = (None, None, None)


class Session:
    """What a reader accumulates. Blocks are numbered in the order in which they are emitted. newest: the line of the
    newest call of the main thread, or where reading began, and the calls, prompts and blocks before it."""

    def __init__(self, emit: Emit, on_model: Callable[[str], None] | None = None) -> None:
        self._emit = emit
        self._on_model = on_model
        self.blocks = 0
        self.messages = 0
        self.calls: list[Call] = []
        self.threads: dict[str, Thread] = {MAIN: Thread(MAIN)}
        self.models: dict[str, int] = {}
        self.prefix = ""
        self.newest = (1, 0, 0, 0)
        self._line = self._index = 0

    def go_on(self, point: Point) -> None:
        """Begin at a point within a file."""
        main = self.threads[MAIN]
        main.calls, main.exchange = point.turn, point.exchange
        self.newest = (point.line + 1, point.turn, point.exchange, 0)
        main.open_calls.update((id_, (name, target)) for id_, name, target in point.more.get("open", ()))

    def point(self, leaves: tuple[str, ...] = (), **more: Json) -> Point:
        """The beginning of the newest call of the main thread, or of the file without one. more: what the format
        needs there."""
        from ctxctl.formats.tail import Point

        line, turn, exchange, blocks = self.newest
        waiting = [[id_, name, target] for id_, (name, target) in self.threads[MAIN].open_calls.items()]
        return Point(line - 1, turn, exchange, blocks, leaves, {"open": waiting[-WAITING:], **more})

    def thread(self, name: str) -> Thread:
        """The thread of that name, new when not seen before."""
        found = self.threads.get(name)
        if found is None:
            found = self.threads[name] = Thread(name)
        return found

    def call(self, thread: Thread, line: int, model: str | None, timestamp: str | None) -> Call:
        """A new model call on a thread: its turn is the next one."""
        if thread.name == MAIN:
            self.newest = (line, thread.calls, thread.exchange, self.blocks)
        thread.calls += 1
        model = intern(model) if model else model
        call = Call(thread.calls, thread.name, line, model, epoch(timestamp))
        self.calls.append(call)
        if model:
            if model not in self.models and self._on_model is not None:
                self._on_model(model)
            self.models[model] = self.models.get(model, 0) + 1
        return call

    def place(
        self,
        items: Iterable[Piece],
        role: str,
        thread: Thread,
        line: int,
        timestamp: str | None,
        *,
        turn: int | None = None,
        response_id: str | None = None,
    ) -> int:
        """Emit the pieces of one message; returns how many blocks they gave.

        turn: of the call that wrote them; by default the next call of the thread, which reads them first.
        """
        number = thread.calls + 1 if turn is None else turn
        self.messages += 1
        first = self.blocks
        if line != self._line:
            self._line, self._index = line, 0
        index = self._index  # goes on where several messages stand on one line
        for item in items:
            kind, text, name, call_id, is_error, media, target = item
            if call_id is not None:
                if kind == "tool_call":
                    thread.open_calls[call_id] = (name or "unknown", target)
                elif name is None:
                    if call_id in thread.open_calls:
                        thread.answered = (call_id, *thread.open_calls.pop(call_id))
                    if call_id == thread.answered[0]:  # pictures follow the text of their result
                        _, name, target = thread.answered
            self._emit(
                Block(
                    f"{self.prefix}{line}.{index}",
                    kind,
                    role,
                    text,
                    number,
                    thread.exchange,
                    Source(line, index),
                    name,
                    call_id,
                    response_id,
                    is_error,
                    media,
                    timestamp,
                    thread.name,
                    False,
                    target,
                    self.messages,
                )
            )
            index += 1
            self.blocks += 1
        self._index = index
        return self.blocks - first

    def main_model(self) -> str | None:
        """The model that most calls of the session used, the newest of equals."""
        best: str | None = None
        for name, n in self.models.items():
            if best is None or n >= self.models[best]:
                best = name
        return best

    def usage(self) -> tuple[Usage, ...]:
        """All calls as frozen values, in file order. The calls themselves are given up: a long session has many."""
        self.calls.reverse()
        found = []
        while self.calls:
            found.append(self.calls.pop().usage())
        return tuple(found)


def epoch(timestamp: str | None) -> float | None:
    """Seconds since 1970 of an ISO 8601 time stamp, None when it is none."""
    if timestamp is None:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None


def tokens_of(value: Json, name: str, line: int, diagnostics: Diagnostics) -> int | None:
    """A token count as a transcript states it. None when it is absent (null counts as absent), and -1 when it is
    stated but unusable (negative, NaN, infinite, absurd, not a number), which is reported and ignored."""
    if value is None:
        return None
    if type(value) is int and 0 <= value <= LARGEST_COUNT:
        return value
    if isinstance(value, float) and isfinite(value) and value == int(value) and 0 <= value <= LARGEST_COUNT:
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 14:
        number = int(value)
        if number <= LARGEST_COUNT:
            return number
    diagnostics.add("warning", "invalid_usage", f"{name} is {str(value)[:40]!r}: this field is ignored", line)
    return -1


def calibration_of(data: dict[str, Json]) -> float | None:
    """The ratio of reported to counted tokens that a compaction states, None when it states none that can be."""
    value = data.get("calibration")
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.05 <= value <= 20:
        return float(value)
    return None


ANTHROPIC_FIELDS = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)


def anthropic_usage(call: Call, usage: dict[str, Json], line: int, diagnostics: Diagnostics) -> None:
    """Merge a usage object of the Anthropic API into a call, per field the maximum. Input excludes the cache."""
    kept_long = usage.get("cache_creation")
    if type(kept_long) is dict and kept_long.get("ephemeral_1h_input_tokens"):
        value = tokens_of(kept_long["ephemeral_1h_input_tokens"], "ephemeral_1h_input_tokens", line, diagnostics)
        call.cache_write_1h = max(call.cache_write_1h, value or 0)
    new, output = usage.get("input_tokens"), usage.get("output_tokens")
    read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    if type(new) is type(output) is type(read) is type(write) is int and (
        0 <= (new | output | read | write) <= LARGEST_COUNT  # of all four at once: the bound is a power of two
    ):
        call.reported, call.damaged = True, 0
        call.input = max(new, call.input)
        call.output = max(output, call.output)
        call.cache_read = max(read, call.cache_read)
        call.cache_write = max(write, call.cache_write)
        return
    for bit, (attribute, name) in enumerate(ANTHROPIC_FIELDS):
        value = tokens_of(usage.get(name), name, line, diagnostics)
        if value is None:
            continue
        call.reported = True
        if value < 0:
            call.damaged |= 1 << bit if attribute != "output" else 0
        else:
            call.damaged &= ~(1 << bit)
            setattr(call, attribute, max(value, getattr(call, attribute)))
