"""`ctxctl watch`: follow a session while its agent writes it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import InputError, UsageError

LEVELS = ("info", "warning", "critical", "yellow", "orange", "red")
WHOLE = frozenset(("low_fidelity", "weak_compression", "token_drift", "resume_success", "eviction_frequency"))
"""Alerts that need the text of the whole session: a watch does not know of them."""


def watch(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[PATH]", help="A session, or a folder: the newest session in it.", show_default=False),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="claude-code",
            help="Instead of a PATH: the newest session of this working folder, where that agent keeps it.",
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="Between two looks at the file's size.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show the session as it is, and end.")] = False,
    until_idle: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="End when the session was not written for so long."),
    ] = None,
    exit_on: Annotated[
        list[str] | None,
        typer.Option(
            "--exit-on",
            metavar="LEVEL|CODE",
            help="End with status 1 at an alert of this level or above (info, warning, critical), at an alert's code, "
            "or at a pressure level (yellow, orange, red); several with commas.",
            show_default=False,
        ),
    ] = None,
    from_: opt.From = None,
    window: opt.Window = None,
    subagents: Annotated[
        bool, typer.Option("--subagents/--no-subagents", help="Count what the session's sub-agents cost.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per change.")] = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
) -> int:
    """Follow a session that is being written: how full its window is, how fast it fills, what it costs, alerts.

    On a terminal the picture is redrawn; elsewhere it is a line per change. Only what is appended is read, nothing is
    written, and Ctrl-C is the normal end (status 0). Tokens are those that the provider reports, and an estimate of
    what waits behind the newest answer.

    Examples:

      ctxctl watch SESSION.jsonl

      ctxctl watch --agent claude-code

      ctxctl watch --exit-on critical --until-idle 600 runs/ || echo "split the task"

      ctxctl watch --json SESSION.jsonl | jq --unbuffered .result.utilization
    """
    from ctxctl.cli.newest import folder_of_agent
    from ctxctl.cli.watching import Asked, Watching
    from ctxctl.health.codes import ALERTS
    from ctxctl.health.session import Examining
    from ctxctl.pressure.result import AnalysisOptions
    from ctxctl.settings.load import load, model_table

    if (path is None) == (agent is None):
        raise UsageError(
            "give one PATH, or --agent", hint="`ctxctl watch ~/.claude/projects` follows the newest session"
        )
    if path == "-":
        raise UsageError("a pipe can't be followed", hint="give the file that the agent writes")
    where = path if path is not None else folder_of_agent(str(agent))
    if not os.path.isdir(where) and not os.path.isfile(where):
        raise InputError("no such file" if not os.path.exists(where) else "this is no file", path=where)
    codes = (rule.code for rule in ALERTS if rule.code not in WHOLE)
    words = opt.words_option(exit_on, "--exit-on", (*LEVELS, *codes))
    loaded = load(config, overrides={"max_context_tokens": opt.tokens_option(window, "--window")})
    if from_ is not None:
        from ctxctl.formats import FORMATS

        FORMATS.get(from_)
    settings = loaded.settings
    analysis = AnalysisOptions(
        window=settings.max_context_tokens,
        thresholds=settings.pressure_thresholds,
        pressure=settings.pressure,
        format_name=from_,
        companions=subagents,
    )
    options = Examining(analysis, settings.eviction, settings.budget, settings.health_monitoring)
    asked = Asked(where, interval, once, until_idle, frozenset(words), as_json)
    return Watching(asked, model_table(loaded), options, Streams(colour=color.value)).go()
