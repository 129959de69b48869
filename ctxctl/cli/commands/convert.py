"""`ctxctl convert`: a transcript in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import deliver, inputs_for
from ctxctl.cli.io import Progress, Streams
from ctxctl.cli.session_names import hint_name, session_of
from ctxctl.errors import ExitCode, UsageError


def convert(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="A transcript; `-` or nothing with a pipe reads stdin.", show_default=False
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="anthropic-messages, openai-chat, openai-chat-message, claude-code, codex or mini-swe-agent.",
            show_default=False,
        ),
    ] = None,
    conversation: Annotated[
        int | None,
        typer.Option("--conversation", metavar="N", min=1, help="Which conversation of a file with several."),
    ] = None,
    from_: opt.From = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done and lost; the transcript goes to -o, or nowhere.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where it goes instead of stdout.", show_default=False),
    ] = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Write the live window of a transcript in another format, as a chat that may be sent.

    What the other format can't carry is listed on stderr, and in the JSON as losses.

    Examples:

      ctxctl convert SESSION.jsonl --to openai-chat > chat.jsonl

      ctxctl convert rollout.jsonl --to claude-code -o 6f1c2a9e-5b7d-4c3e-8f10-2d4b6a8c0e12.jsonl

      ctxctl convert SESSION.jsonl --to codex --json | jq .result.losses
    """
    from datetime import UTC, datetime

    from ctxctl.formats import FORMATS
    from ctxctl.formats.convert.base import TARGETS
    from ctxctl.formats.convert.run import convert as run

    streams = Streams(verbosity=-1 if quiet else int(verbose))
    if to is None:
        names = ", ".join(sorted(name for name, _ in TARGETS))
        raise UsageError("--to names no format", hint=f"known: {names}")
    TARGETS.get(to)
    if from_ is not None:
        FORMATS.get(from_)
    inputs = inputs_for([path] if path is not None else None, output, force, streams)
    if not inputs.single:
        raise UsageError(f"{path} is not one transcript", hint="convert takes one file at a time")
    source = inputs.items[0].path
    with Progress(streams, source) as progress:
        done = run(
            source,
            to,
            now=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            session=session_of(to, output),
            cwd=str(Path.cwd()),
            format_name=from_,
            conversation=conversation,
            progress=progress,
        )
    for what, count in done.losses.items():
        streams.note(f"not carried: {what}: {count:,}")
    if output is not None:
        deliver(done.data, output, force, [source], streams)
        hint_name(to, done.session, output, streams)
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        streams.payload(dumps(envelope("convert", {"to": to, "conversation": conversation}, _data(done, output))))
    elif output is None:
        streams.payload(done.data)
    return ExitCode.OK


def _data(done: Any, output: Path | None) -> dict[str, Any]:
    transcript = done.transcript
    return {
        "path": transcript.path,
        "format": transcript.format,
        "id": transcript.id,
        "to": done.target,
        "session": done.session,
        "conversations": done.conversations,
        "messages": done.messages,
        "bytes": len(done.data),
        "losses": [{"what": what, "count": count} for what, count in done.losses.items()],
        "output": str(output) if output is not None else None,
        "written": [str(output)] if output is not None else [],
    }
