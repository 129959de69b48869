"""`ctxctl health`: metrics, alerts and failure modes of sessions, for people, CI and monitoring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import inputs_for
from ctxctl.cli.io import Streams
from ctxctl.errors import UsageError


def health(
    paths: opt.Paths = None,
    from_: opt.From = None,
    window: opt.Window = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="LEVEL|CODE",
            help="Exit 1 on findings of this level or above (info, warning, critical), of a code "
            "(`ctxctl list detectors`), on `regression` or `damage`; several with commas.",
            show_default=False,
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Exit 1 when a session cost more.")
    ] = None,
    max_total_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Exit 1 when all sessions together cost more.")
    ] = None,
    max_peak: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when the fullest turn held more (150k).")
    ] = None,
    max_peak_utilization: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when the window was fuller at any turn (0.8, 80%).")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(metavar="N", help="Exit 1 when the main thread made more model calls.")
    ] = None,
    max_compactions: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Exit 1 when a session was compacted more often.")
    ] = None,
    max_overflow_turns: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Exit 1 when more requests were refused as too long.")
    ] = None,
    min_hit_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when the cache served less of the prompts.")
    ] = None,
    min_fidelity: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when compactions kept less of what could be answered.")
    ] = None,
    max_drift: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when counted and reported tokens differ by more.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODE", help="Alerts and detectors that are left out.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="SQLite file that this run is added to.")
    ] = None,
    ref: Annotated[
        str | None,
        typer.Option("--ref", metavar="NAME", help="Branch to record the run under; by default git's."),
    ] = None,
    compare_to: Annotated[
        str | None,
        typer.Option(
            "--compare-to",
            metavar="REF|FILE",
            help="What got worse since a run in --history (branch, tag, commit), or since a JSON report of health.",
        ),
    ] = None,
    turns: Annotated[bool, typer.Option("--turns", help="A row per turn in the JSON.")] = False,
    state_dir: opt.StateDir = None,
    subagents: Annotated[
        bool, typer.Option("--subagents/--no-subagents", help="Read the sub-agent files of a session with it.")
    ] = True,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="[HOST]:PORT", help="Serve /metrics to Prometheus until stopped (:9464)."),
    ] = None,
    otlp: Annotated[
        str | None, typer.Option("--otlp", metavar="URL", help="Send the metrics to an OpenTelemetry collector.")
    ] = None,
    series: Annotated[
        int, typer.Option("--series", min=0, metavar="N", help="Newest sessions that get time series of their own.")
    ] = 50,
    output_format: opt.CheckForm = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Say how healthy sessions are: metrics, alerts, failure modes with evidence, and what to do.

    In CI: limits that fail the job, annotations, SARIF, JUnit, and what got worse since the base branch. For
    monitoring: Prometheus and OpenTelemetry.

    Examples:

      ctxctl health SESSION.jsonl

      ctxctl health --fail-on critical --max-cost 5 --min-hit-rate 70% 'runs/**/*.jsonl'

      ctxctl health --history ctxctl.db --compare-to main runs/

      ctxctl health --output-format github --fail-on warning runs/

      ctxctl health --listen :9464 ~/.claude/projects/my-app
    """
    from ctxctl.cli.examining import Asked, Run

    form = opt.check_form_of(output_format, as_json, output)
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    given: dict[str, Any] = {
        "max_cost": max_cost,
        "max_total_cost": max_total_cost,
        "max_peak": opt.tokens_option(max_peak, "--max-peak"),
        "max_peak_utilization": opt.share_option(max_peak_utilization, "--max-peak-utilization"),
        "max_turns": max_turns,
        "max_compactions": max_compactions,
        "max_overflow_turns": max_overflow_turns,
        "min_hit_rate": opt.share_option(min_hit_rate, "--min-hit-rate"),
        "min_fidelity": opt.share_option(min_fidelity, "--min-fidelity"),
        "max_drift": opt.share_option(max_drift, "--max-drift"),
    }
    limits = {name: value for name, value in given.items() if value is not None}
    if listen is not None and (limits or fail_on or turns):
        raise UsageError("--listen fails no job and has no JSON", hint="leave out --fail-on, the limits and --turns")
    if listen is not None and (output is not None or form is not opt.CheckFormat.text or compare_to or history or otlp):
        raise UsageError("--listen serves metrics and writes nothing else", hint="leave out -o, --json and the like")
    asked = Asked(
        from_=from_,
        window=opt.tokens_option(window, "--window"),
        fail_on=tuple(fail_on or ()),
        limits=limits,
        ignore=tuple(ignore or ()),
        history=history,
        ref=ref,
        compare_to=compare_to,
        turns=turns,
        state_dir=state_dir,
        subagents=subagents,
        otlp=otlp,
        series=series,
        form=form,
        output=output,
        force=force,
        config=config,
    )
    if listen is not None:
        from ctxctl.cli.listening import listen as serve

        return serve(listen, paths, asked, streams)
    inputs = inputs_for(paths, output, force, streams)
    return Run(asked, inputs, streams).go()
