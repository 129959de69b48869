"""`ctxctl simulate`: what other policies would have done with a recorded session, what it would have cost and lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import Done, Skipped, deliver, each, failed_status, inputs_for, tell_skipped
from ctxctl.cli.inputs import Inputs
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.cli.replays import (
    Asked,
    Life,
    Model,
    Policies,
    Presets,
    Read,
    Summary,
    Targets,
    Triggers,
    Windows,
    Write,
    check_model,
    tell_damage,
    trace_of,
)
from ctxctl.errors import ExitCode

MANY = 3
"""Up to so many transcripts get a report of their own beside the sums."""


def simulate(
    paths: opt.Paths = None,
    policy: Policies = None,
    preset: Presets = None,
    window: Windows = None,
    trigger: Triggers = None,
    target: Targets = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SHARE",
            help="Instead of a window: protected content plus this share of what may leave, filled to the brim.",
        ),
    ] = None,
    cache_read: Read = None,
    cache_write: Write = None,
    cache_life: Life = None,
    model: Model = None,
    summary: Annotated[
        Summary, typer.Option("--summary", help="Size of model summaries that no runtime declares.")
    ] = Summary.typ,
    refetch: Annotated[
        bool, typer.Option("--refetch/--no-refetch", help="Whether what is missed comes back into the window.")
    ] = True,
    optimum: Annotated[
        bool, typer.Option("--optimum/--no-optimum", help="Compute the exact optimum where it is feasible.")
    ] = True,
    timeline: Annotated[bool, typer.Option("--timeline", help="Show every run turn by turn.")] = False,
    from_: opt.From = None,
    output_format: opt.Form = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Replay recorded sessions under other eviction policies: tokens, money with prompt caching, and what gets lost.

    `ctxctl list policies -v` and `ctxctl list presets` show what there is. Exit 5: protected content alone is larger
    than a window.

    Examples:

      ctxctl simulate SESSION.jsonl

      ctxctl simulate -p lru,hybrid --window 100k,200k --trigger 0.75 --target 0.5 SESSION.jsonl

      ctxctl simulate -p mask:keep=10 -p mask:keep=3,every=10 --cache-read 0.1 --cache-write 1.25 runs/

      ctxctl simulate --preset codex,claude-code --json SESSION.jsonl | jq '.result.runs[].cost_ratio'
    """
    form = opt.form_of(output_format, as_json, output)
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    inputs = inputs_for(paths, output, force, streams)
    asked = Asked(
        policy,
        preset,
        window,
        trigger,
        target,
        budget,
        cache_read,
        cache_write,
        cache_life,
        model,
        summary.value,
        refetch,
    )
    return _Run(inputs, form, streams, config, from_, asked, optimum, timeline).go(output, force)


def _presets(names: list[str]) -> tuple[Any, ...]:
    if not names:
        return ()
    from ctxctl.settings.presets import find_presets

    return tuple(find_presets(names))


class _Run:
    """One run of the command, after its arguments are understood."""

    def __init__(
        self,
        inputs: Inputs,
        form: opt.OutputFormat,
        streams: Streams,
        config: Path | None,
        from_: str | None,
        asked: Asked,
        optimum: bool,
        timeline: bool,
    ) -> None:
        from ctxctl.settings.load import load, model_table
        from ctxctl.simulate.options import SweepOptions

        if from_ is not None:
            from ctxctl.formats import FORMATS

            FORMATS.get(from_)
        self.inputs, self.form, self.streams, self.from_, self.timeline = inputs, form, streams, from_, timeline
        self.loaded = load(config)
        self.table = model_table(self.loaded)
        check_model(asked.model, self.table)
        self._tell_unused(asked)
        settings = self.loaded.settings
        given = settings.max_context_tokens
        self.options = SweepOptions(
            asked.specs,
            _presets(asked.preset),
            asked.windows or ((given,) if given is not None and asked.share is None else ()),
            asked.triggers,
            asked.targets,
            asked.share,
            asked.summary,
            asked.terms,
            asked.model,
            asked.refetch,
            optimum,
            timeline,
            settings.eviction,
            settings.pressure_thresholds,
            settings.pressure,
            settings.manager,
            settings.compaction,
        )

    def _tell_unused(self, asked: Asked) -> None:
        from ctxctl.eviction.base import POLICIES

        if (asked.triggers or asked.targets) and not any(POLICIES.get(s.name).ranks for s in asked.specs):
            self.streams.note(
                "note: --trigger and --target act on policies that rank; the ones asked for have their own"
            )

    def go(self, output: Path | None, force: bool) -> int:
        self._before: Any = None
        done, skipped = each(self.inputs, self._one)
        tell_skipped(done, skipped, self.streams)
        sweeps = [d.value for d in done if d.value is not None]
        data = self._render(done, skipped, sweeps, to_file=output is not None)
        deliver(data, output, force, [s.path for s in sweeps], self.streams)
        status = failed_status(done)
        if status is not None:
            return status
        return ExitCode.TARGET if self._floors(sweeps) else ExitCode.OK

    def _one(self, path: str) -> Any:
        from dataclasses import replace

        from ctxctl.simulate.sweep import sweep

        with Progress(self.streams, path) as progress:
            traced, window = trace_of(path, self.table, self.options.eviction, self.from_, progress)
        tell_damage(traced, self.streams)
        trace = traced.trace
        if self._before is not None:
            from ctxctl.simulate.placebo import placebo

            trace = replace(trace, placebo=placebo(self._before.written, self._before.trace, trace))
        self._before = traced
        with Progress(self.streams, path, "replays") as progress:
            found = sweep(trace, self.table, self.options, window, progress)
        if not self.inputs.single and not self.timeline:
            slim = [tuple(replace(r, timeline=()) for r in rows) for rows in (found.runs, found.ceilings)]
            found = replace(found, runs=slim[0], ceilings=slim[1])
        return found

    def _floors(self, sweeps: list[Any]) -> bool:
        """Say once what can't be met; whether there was anything."""
        said = set()
        for found in sweeps:
            for run in found.runs:
                if run.floor is None or not run.overflow_turns or (found.path, run.capacity) in said:
                    continue
                said.add((found.path, run.capacity))
                if self.inputs.single and self.form in (opt.OutputFormat.text, opt.OutputFormat.markdown):
                    continue  # the report has it
                causes = ", ".join(f"{cause} {tokens:,}" for cause, tokens in run.floor.causes[:4])
                say(
                    f"failed: {found.path}: {run.floor.tokens:,} tokens may not leave at turn {run.floor.turn}, "
                    f"the window is {run.capacity:,} ({causes})"
                )
        return bool(said)

    def _render(
        self, done: list[Done[Any]], skipped: Skipped, sweeps: list[Any], *, to_file: bool
    ) -> bytes | Iterator[bytes]:
        if self.form in (opt.OutputFormat.json, opt.OutputFormat.jsonl):
            return self._json(done, skipped, sweeps)
        if self.form is opt.OutputFormat.csv:
            from ctxctl.reports import csv
            from ctxctl.reports.build.simulation_data import COLUMNS, records

            return csv.render(COLUMNS, records(sweeps)).encode()
        from ctxctl.reports.build.simulation import sweep_report, total_report

        thresholds = self.options.thresholds
        reports = [sweep_report(s, thresholds, timeline=self.timeline) for s in sweeps]
        if not self.inputs.single:
            failed = sum(1 for d in done if d.error is not None)
            total = total_report(self._total(sweeps), failed)
            if len(sweeps) != 1:
                reports = [*reports, total] if len(reports) <= MANY else [total]
        if self.form is opt.OutputFormat.markdown:
            from ctxctl.reports import markdown

            return markdown.render(reports).encode()
        return self.streams.text(reports, to_file=to_file)

    def _total(self, sweeps: list[Any]) -> Any:
        from ctxctl.simulate.total import total_of

        return total_of(sweeps, own_windows=not self.options.windows)

    def _json(self, done: list[Done[Any]], skipped: Skipped, sweeps: list[Any]) -> bytes | Iterator[bytes]:
        from ctxctl.reports.build.failure import error_of, failed_data
        from ctxctl.reports.build.simulation_data import settings_data, sweep_data, total_data
        from ctxctl.reports.json import dumps, envelope, pieces

        settings = settings_data(self.loaded.settings, self.options)
        entries = [
            failed_data(d.path, d.error)
            if d.error is not None
            else {"path": d.path, "result": d.value and sweep_data(d.value, timeline=self.timeline)}
            for d in done
        ]
        if self.form is opt.OutputFormat.jsonl:
            return b"".join(
                dumps({"path": e["path"], **envelope("simulate", settings, e.get("result")), **error_of(e)})
                for e in entries
            )
        if self.inputs.single:
            return pieces(envelope("simulate", settings, entries[0]["result"]))
        failed = sum(1 for d in done if d.error is not None)
        result = {
            "files": entries,
            "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
            "total": total_data(self._total(sweeps), failed, len(skipped)) if sweeps else None,
        }
        return pieces(envelope("simulate", settings, result))
