"""What commands over several transcripts share: each input once, errors by file, output whole, and the status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ctxctl.cli.inputs import Inputs, is_same, resolve
from ctxctl.cli.io import Streams, error_text, say, write_file
from ctxctl.errors import CtxctlError, ExitCode, NotATranscriptError, NothingFoundError, UsageError

T = TypeVar("T")
Skipped = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """One input and what became of it."""

    path: str
    value: T | None = None
    error: CtxctlError | None = None


def inputs_for(paths: list[str] | None, output: Path | None, force: bool, streams: Streams) -> Inputs:
    """The inputs of a command; UsageError where its output would replace one of them, or a file without --force."""
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} exists", hint="--force replaces it")
    inputs = resolve(paths, streams.note)
    if output is not None and output.exists() and any(is_same(item.path, output) for item in inputs.items):
        raise UsageError(f"{output} is an input", hint="name another file: a report never replaces a transcript")
    return inputs


def each(inputs: Inputs, work: Callable[[str], T]) -> tuple[list[Done[T]], Skipped]:
    """Do the work for every input. A single one raises its error; of several each keeps its own, told on stderr as it
    comes. What a folder holds besides transcripts is skipped, with the reason."""
    done: list[Done[T]] = []
    skipped: Skipped = []
    for item in inputs.items:
        try:
            done.append(Done(item.path, work(item.path)))
        except CtxctlError as error:
            if inputs.single:
                raise
            if item.found and isinstance(error, (NotATranscriptError, NothingFoundError)):
                skipped.append((item.path, error.message))
                continue
            done.append(Done(item.path, error=error))
            say(error_text(error))
    return done, skipped


def tell_skipped(done: list[Done[T]], skipped: Skipped, streams: Streams) -> None:
    """Say what was passed over; NothingFoundError when that was all."""
    if not done:
        if skipped:
            streams.note(f"files looked at: {len(skipped)} (-v lists them)")
        raise NothingFoundError("no transcript found", hint="`ctxctl list formats` shows what ctxctl reads")
    if skipped:
        streams.note(f"skipped, no transcripts that ctxctl reads: {len(skipped)} (-v lists them)")
        for path, reason in skipped:
            streams.note(f"skipped: {path}: {reason}", level=1)


def deliver(
    data: bytes | Iterator[bytes], output: Path | None, force: bool, sources: Iterable[str], streams: Streams
) -> None:
    """To the file that was named, or to stdout."""
    if output is None or str(output) == "-":
        streams.payload(data)
        return
    write_file(output, data if isinstance(data, bytes) else b"".join(data), force=force, modes_of=sources)
    streams.note(f"wrote {output}")


def failed_status(done: list[Done[T]]) -> ExitCode | None:
    """The status when inputs failed, None when none did."""
    errors = [d.error for d in done if d.error is not None]
    if not errors:
        return None
    empty = all(isinstance(e, NothingFoundError) for e in errors) and len(errors) == len(done)
    return ExitCode.NOTHING if empty else ExitCode.INPUT
