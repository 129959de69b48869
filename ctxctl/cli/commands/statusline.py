"""`ctxctl statusline`: one short line for an agent's status line. `ctxctl.cli.statusline` answers it; this is its help
and its errors."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.cli.status_text import DEFAULT
from ctxctl.errors import UsageError


def statusline(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[PATH]", help="A session; without it the agent's JSON is read on stdin."),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="TEMPLATE",
            help="Text with {fields}: model, bar, percent, tokens, window, left, level, turns, velocity, cost. "
            "What stands in [brackets] is left out when a field in it is not known.",
        ),
    ] = DEFAULT,
    width: Annotated[
        int | None,
        typer.Option(min=1, metavar="COLUMNS", help="Widest line; by default $COLUMNS.", show_default=False),
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Plain ASCII characters.")] = False,
    window: opt.Window = None,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
) -> int:
    """Print one short line on how full a session's window is, from the end of its file.

    For Claude Code, put this into your settings.json (ctxctl writes no settings):

      "statusLine": {"type": "command", "command": "ctxctl statusline"}

    Claude Code hands over its status JSON on stdin: what that states is used, the rest comes from the end of the
    session's file. Then the status is always 0 and there is always a line. With a PATH, errors are errors.

    Examples:

      ctxctl statusline SESSION.jsonl

      ctxctl statusline --format '{percent} of {window}[, {turns} turns]' SESSION.jsonl
    """
    from ctxctl.cli.status_text import GivenError, check, line_of
    from ctxctl.cli.statusline import Given, shown_of_path

    try:
        check(template)
    except GivenError as error:
        raise UsageError(str(error), hint="`ctxctl statusline -h` explains templates") from None
    if path in (None, "-"):
        raise UsageError(
            "no PATH given, and no agent's JSON is piped in", hint="give a session file, or see `ctxctl statusline -h`"
        )
    opt.tokens_option(window, "--window")
    given = Given(path=path, window=window, config=str(config) if config is not None else None)
    streams = Streams(colour=color.value)
    import sys

    line = line_of(
        shown_of_path(given),
        template,
        width=width,
        ascii_only=ascii_only,
        ansi=sys.stdout is not None and streams.use_colour(sys.stdout),
    )
    streams.payload((line + "\n").encode(getattr(sys.stdout, "encoding", None) or "utf-8", "replace"))
    return 0
