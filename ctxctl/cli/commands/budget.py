"""`ctxctl budget`: what each component of the window holds, how long it lasts, and what it costs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import inputs_for
from ctxctl.cli.io import Streams
from ctxctl.errors import UsageError

FAIL_ON = ("soft", "hard", "forecast")
"""As in `ctxctl.budgets.gates`; loading that takes longer than showing the help."""


def budget(
    paths: opt.Paths = None,
    from_: opt.From = None,
    window: opt.Window = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="|".join(FAIL_ON),
            help="Exit 1 when a component is at its soft limit or above, at its hard limit, or when the plan needs "
            "more turns than remain; several with commas.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="COMPONENT=SIZE",
            help="Exit 1 when a component holds more: tool_results=20k tokens, message_history=0.5 of the window.",
            show_default=False,
        ),
    ] = None,
    max_total: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when all calls together took more (5m).")
    ] = None,
    max_tokens: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when the window now holds more (150k).")
    ] = None,
    max_peak: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when the fullest turn held more.")
    ] = None,
    max_peak_utilization: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when the window was fuller at any turn (0.8, 80%).")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Exit 1 when the main thread made more model calls.")
    ] = None,
    max_compactions: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Exit 1 when the session was compacted more often.")
    ] = None,
    max_burn_rate: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when a turn adds more, as the mean of the last 10.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Exit 1 when a session cost more.")
    ] = None,
    max_cost_per_turn: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Exit 1 when a model call cost more on the mean.")
    ] = None,
    max_total_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Exit 1 when all sessions together cost more.")
    ] = None,
    turns: Annotated[bool, typer.Option("--turns", help="What each model call cost in the JSON.")] = False,
    subagents: Annotated[
        bool, typer.Option("--subagents/--no-subagents", help="Read the sub-agent files of a session with it.")
    ] = True,
    output_format: opt.JudgedForm = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Say what each component of the window holds against its limit, how long the window lasts, and what it costs.

    Components: system_prompt, tool_definitions, message_history, tool_results, memory_injection, output_reserved. Their
    limits are shares of the window (`budget.allocations` in the settings). In CI, limits fail the job.

    Examples:

      ctxctl budget SESSION.jsonl

      ctxctl budget --fail-on hard --max tool_results=20k --max-cost 2 SESSION.jsonl

      ctxctl budget --json SESSION.jsonl | jq .result.cost

      ctxctl budget --output-format junit -o budget.xml 'runs/**/*.jsonl'
    """
    form = opt.check_form_of(output_format, as_json, output)
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    words = opt.words_option(fail_on, "--fail-on", FAIL_ON)
    given: dict[str, Any] = {
        "max_cost": max_cost,
        "max_cost_per_turn": max_cost_per_turn,
        "max_total_cost": max_total_cost,
        "max_total": opt.tokens_option(max_total, "--max-total"),
        "max_tokens": opt.tokens_option(max_tokens, "--max-tokens"),
        "max_peak": opt.tokens_option(max_peak, "--max-peak"),
        "max_peak_utilization": opt.share_option(max_peak_utilization, "--max-peak-utilization"),
        "max_turns": max_turns,
        "max_compactions": max_compactions,
        "max_burn_rate": opt.tokens_option(max_burn_rate, "--max-burn-rate"),
    }
    components = _components(most)
    size = opt.tokens_option(window, "--window")
    if form is opt.CheckFormat.prometheus:
        raise UsageError(
            "budget has no --output-format prometheus", hint="`ctxctl health --output-format prometheus` has it"
        )
    inputs = inputs_for(paths, output, force, streams)
    from ctxctl.cli.budgeting import Asked, Run

    asked = Asked(
        from_=from_,
        window=size,
        fail_on=frozenset(words),
        limits={name: value for name, value in given.items() if value is not None},
        components=components,
        turns=turns,
        subagents=subagents,
        form=form,
        output=output,
        force=force,
        config=config,
    )
    return Run(asked, inputs, streams).go()


def _components(texts: list[str] | None) -> dict[str, str]:
    """COMPONENT=SIZE, repeated or with commas."""
    if not texts:
        return {}
    from ctxctl.budgets.gate_options import component_limit

    found: dict[str, str] = {}
    for text in (part.strip() for given in texts for part in given.split(",")):
        name, sign, limit = text.partition("=")
        if not sign or not name.strip() or not limit.strip():
            raise UsageError(f"--max {text!r} is no limit of a component", hint="such as --max tool_results=20k")
        try:
            found[component_limit(name, limit).component] = limit.strip()
        except ValueError as error:
            raise UsageError(
                f"--max {error}", hint="such as --max tool_results=20k or --max tool_results=0.15"
            ) from None
    return found
