"""The end of a session: how full its window is now, without reading the whole file.

What is read is read by the session's own reader, from the last 256 KiB on; further back only where these do not tell.
Known too late for this are a rewind to before them, and a long window that only an earlier call proves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ctxctl.errors import InputError, NotATranscriptError, NothingFoundError
from ctxctl.formats.base import Diagnostics, Format, Json
from ctxctl.formats.jsonlines import parse_line
from ctxctl.formats.read import feed_lines
from ctxctl.formats.streams import Stream, open_stream
from ctxctl.formats.tail import HEAD, Point, next_line
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.pressure.result import AnalysisOptions, ContextState
from ctxctl.pressure.turns import forecast_of, newest_call, pressure_of
from ctxctl.pressure.window import WindowSize, window_of

STEPS = (1 << 18, 1 << 20, 1 << 22, 1 << 23)
"""Bytes at the end that are read: the next number where the one before was not enough."""
BLOCKS_TO = 1 << 20
"""Bytes up to which whole records are read, so that rewinds show; beyond, usage alone."""
FIGURES_TO = 1 << 22
"""Bytes up to which it is read further back only for the velocity, and behind a compaction for the model."""
CUTS_WITHIN = 1 << 22
BOUNDARY = b'"subtype":"compact_boundary"'


@dataclass(frozen=True, slots=True)
class Ending:
    """A session's window now. tokens: as the provider reported them at the newest call; where the agent compacted the
    window since, as it states them (`source`: `reported` or `stated`), None where neither is known. velocity, turns:
    of the forecast. read: bytes that were read of `size`."""

    model: str | None
    tokens: int | None
    source: str | None
    window: WindowSize
    level: str | None
    velocity: float | None
    turns: int | None
    read: int
    size: int

    @property
    def utilization(self) -> float | None:
        """Share of the window that is used."""
        return self.tokens / self.window.tokens if self.tokens is not None and self.window.tokens else None


def ending_of(
    path: str,
    rows: Callable[[Iterable[str | None]], ModelTable],
    *,
    window: int | None = None,
    thresholds: PressureThresholds | None = None,
    pressure: PressureOptions | None = None,
    steps: Sequence[int] = STEPS,
) -> Ending:
    """The window at the end of a session's file. rows: gives a table of the models that are named. window: in tokens,
    where it is known better.

    steps: bytes at the end that are read, one after the other. Raises InputError for what is no file of JSON lines that
    an agent appends to, and NothingFoundError for an empty one.
    """
    if not os.path.isfile(path):  # opening a named pipe would wait for ever
        there = os.path.exists(path)
        raise InputError("this is no file" if there else "no such file", path=path, hint="give a session's file")
    options = AnalysisOptions(
        window, thresholds=thresholds or PressureThresholds(), pressure=pressure or PressureOptions()
    )
    with open_stream(path) as stream:
        size = stream.size if stream.plain else None
        if size is None:
            raise InputError(
                "only a plain file can be read from its end", path=path, hint=f"`ctxctl watch --once {path}`"
            )
        if not size:
            raise NothingFoundError("the file is empty", path=path)
        head = _head(stream)
    chosen = _format(head, path)
    for step in steps:
        start = next_line(path, size - step)
        transcript = _read(path, chosen, head, start, usage_only=step > BLOCKS_TO)
        newest = newest_call(transcript)
        if not start or (
            _is_certain(transcript, newest)
            and (step >= FIGURES_TO or _has_figures(transcript, newest, options.pressure.velocity_window))
        ):
            break
    if start and newest is not None and (cut := _cut_before(path, start, newest)) is not None:
        # what was written behind a compaction may be copies from in front of it
        start = cut
        transcript = _read(path, chosen, head, start, usage_only=True)
    return _ending(transcript, rows, options, size - start, size)


def _ending(
    transcript: Transcript,
    rows: Callable[[Iterable[str | None]], ModelTable],
    options: AnalysisOptions,
    read: int,
    size: int,
) -> Ending:
    table = rows({transcript.model, *transcript.models})
    window = window_of(options.window, transcript, table)
    pressure, _, _ = pressure_of(transcript, window, options)
    newest = newest_call(transcript)
    tokens, source = (newest.context, "reported") if newest is not None else (_stated(transcript), "stated")
    turn = newest.turn if newest is not None else None
    context = ContextState(tokens, None, None, None, None, turn, None, None)
    forecast = forecast_of(pressure, context, window, options, frozenset())
    used = tokens / window.tokens if tokens is not None and window.tokens else None
    return Ending(
        transcript.model,
        tokens,
        source if tokens is not None else None,
        window,
        options.thresholds.level(used) if used is not None else None,
        forecast.velocity if forecast is not None else None,
        forecast.turns if forecast is not None else None,
        read,
        size,
    )


def _stated(transcript: Transcript) -> int | None:
    """Tokens that the newest compaction says it left."""
    full = [c for c in transcript.compactions if c.kind == "full" and not c.abandoned]
    return full[-1].after if full else None


def _head(stream: Stream) -> list[dict[str, Json]]:
    """The first records of a file."""
    records: list[dict[str, Json]] = []
    for number, data in enumerate(stream.lines(), 1):
        records += [value for value in parse_line(data, number, Diagnostics()) if isinstance(value, dict)]
        if number >= HEAD or stream.position() > STEPS[0]:
            break
    return records


def _format(head: list[dict[str, Json]], path: str) -> type[Format]:
    """The format of the first records. The two that agents' status lines are for are known without loading the rest."""
    from ctxctl.formats.claude_code import ClaudeCode

    whole = f"`ctxctl watch --once {path}` reads it as a whole"
    if any("payload" in record for record in head):
        from ctxctl.formats.codex import Codex

        if Codex.sniff(head, path):
            return Codex
    if ClaudeCode.sniff(head, path):
        return ClaudeCode
    from ctxctl.formats.detect import detect

    try:
        chosen = detect(head, path)
    except NotATranscriptError:
        if head:
            raise
        # a document of one value, or a blank file: neither has an end that tells anything
        raise InputError("it holds no lines that could be read from their end", path=path, hint=whole) from None
    if not chosen.appends:
        raise InputError("this format can't be read from its end", path=path, hint=whole)
    return chosen


def _read(path: str, chosen: type[Format], head: list[dict[str, Json]], start: int, *, usage_only: bool) -> Transcript:
    """The transcript from an offset on, its calls numbered from there."""
    reader = chosen(path, lambda block: None, usage_only=usage_only)
    if start:
        reader.go_on(Point())
        if head and head[0].get("type") == "session_meta":  # says whether what follows was copied from a parent
            reader.feed(head[0], 1)
    with open_stream(path) as stream:
        stream.seek(start)
        feed_lines(reader, stream, stream.lines(), 0, usage_only)
    transcript = reader.finish()
    calls = [u.thread for u in transcript.usage]
    if start and calls and transcript.main not in calls and head and head[0].get("isSidechain") is True:
        # a sub-agent's own file: the window is that of the helper
        return replace(transcript, main=max(sorted(set(calls)), key=calls.count))
    return transcript


def _has_figures(transcript: Transcript, newest: Usage | None, turns: int) -> bool:
    """Whether there are calls enough for the velocity, of so many turns; behind a compaction, whether the model is
    known."""
    if newest is None:
        return transcript.model is not None
    return sum(u.thread == transcript.main and bool(u.context) for u in transcript.usage) > turns + 1


def _is_certain(transcript: Transcript, newest: Usage | None) -> bool:
    """Whether what was read tells the window now: the newest call, or the compaction behind it. A record behind the
    newest call that hangs on something earlier may be a rewind to there."""
    if newest is None:
        return any(c.kind == "full" and not c.abandoned for c in transcript.compactions)
    return not any(d.code == "dangling_parent" and (d.line or 0) > newest.line for d in transcript.diagnostics)


def _cut_before(path: str, start: int, newest: Usage) -> int | None:
    """Where a compaction begins that lies in front of what was read and is newer than the newest call in it."""
    from ctxctl.formats.session import epoch

    first = max(0, start - CUTS_WITHIN)
    with open_stream(path) as stream:
        stream.seek(first)
        data = stream.read(start - first)
    at = data.rfind(BOUNDARY)
    if at < 0 or newest.time is None:
        return None
    begin = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    for record in parse_line(data[begin : end + 1], 0, Diagnostics()):
        when = record.get("timestamp") if isinstance(record, dict) else None
        seconds = epoch(when) if isinstance(when, str) else None
        if seconds is not None and seconds > newest.time:
            return first + begin
    return None
