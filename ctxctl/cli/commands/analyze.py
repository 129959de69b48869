"""`ctxctl analyze`: how full was the window and when, what filled it, what did it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import Done, Skipped, deliver, each, failed_status, inputs_for, tell_skipped
from ctxctl.cli.inputs import Inputs
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.errors import ExitCode


class TokensFrom(StrEnum):
    """Where token figures come from."""

    counted = "counted"
    reported = "reported"


FAIL_ON = ("yellow", "orange", "red", "spike", "damage")
"""What --fail-on looks for."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """One transcript, its cost at list prices, and the gates that it was held against."""

    path: str
    analysis: Any
    cost: float | None
    gates: tuple[Any, ...]


def analyze(
    paths: opt.Paths = None,
    from_: opt.From = None,
    window: opt.Window = None,
    tokens: Annotated[
        TokensFrom,
        typer.Option(
            "--tokens", help="counted: count every block; reported: read the provider's usage alone (fastest)."
        ),
    ] = TokensFrom.counted,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="|".join(FAIL_ON),
            help="Exit 1 at this pressure level or above, or on a spike or damage; several with commas.",
            show_default=False,
        ),
    ] = None,
    max_utilization: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit 1 when the window now is fuller (0.8 or 80%).")
    ] = None,
    max_tokens: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when the window now holds more (such as 150k).")
    ] = None,
    max_peak: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Exit 1 when the fullest turn held more.")
    ] = None,
    blocks: Annotated[bool, typer.Option("--blocks", help="List every block in the JSON.")] = False,
    subagents: Annotated[
        bool, typer.Option("--subagents/--no-subagents", help="Read the sub-agent files of a session with it.")
    ] = True,
    output_format: opt.Form = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Report how full the context window was and when, what filled it, and what it cost.

    Reads Claude Code, Codex, OpenAI chat, Anthropic Messages and mini-swe-agent transcripts, also .gz and .zst.

    Examples:

      ctxctl analyze ~/.claude/projects/my-app/SESSION.jsonl

      ctxctl analyze --json SESSION.jsonl | jq .result.peak

      ctxctl analyze --fail-on red --max-peak 150k 'runs/**/*.jsonl'

      zcat SESSION.jsonl.gz | ctxctl analyze --window 200k
    """
    form = opt.form_of(output_format, as_json, output)
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    gates = _Gates(
        opt.words_option(fail_on, "--fail-on", FAIL_ON),
        opt.share_option(max_utilization, "--max-utilization"),
        opt.tokens_option(max_tokens, "--max-tokens"),
        opt.tokens_option(max_peak, "--max-peak"),
    )
    given_window = opt.tokens_option(window, "--window")
    inputs = inputs_for(paths, output, force, streams)
    if blocks and form not in (opt.OutputFormat.json, opt.OutputFormat.jsonl):
        streams.note("note: --blocks shows in the JSON only (--json)")
    return _Run(inputs, form, streams, gates, given_window, config).go(
        from_, tokens is TokensFrom.reported, subagents, blocks, output, force
    )


@dataclass(frozen=True, slots=True)
class _Gates:
    fail_on: set[str]
    max_utilization: float | None
    max_tokens: int | None
    max_peak: int | None


class _Run:
    """One run of the command, after its arguments are understood."""

    def __init__(
        self, inputs: Inputs, form: opt.OutputFormat, streams: Streams, gates: _Gates, window: int | None, config: Any
    ) -> None:
        from ctxctl.settings.load import load, model_table

        self.inputs, self.form, self.streams, self.gates = inputs, form, streams, gates
        self.loaded = load(config, overrides={"max_context_tokens": window})
        self.table = model_table(self.loaded)

    def go(self, from_: str | None, reported: bool, subagents: bool, blocks: bool, output: Any, force: bool) -> int:
        from ctxctl.formats import FORMATS
        from ctxctl.pressure.analysis import AnalysisOptions

        if from_ is not None:
            FORMATS.get(from_)
        settings = self.loaded.settings
        options = AnalysisOptions(
            window=settings.max_context_tokens,
            thresholds=settings.pressure_thresholds,
            pressure=settings.pressure,
            format_name=from_,
            reported_only=reported,
            companions=subagents,
            blocks=blocks,
        )
        done, skipped = each(self.inputs, lambda path: self._one(path, options))
        tell_skipped(done, skipped, self.streams)
        good = [d.value for d in done if d.value is not None]
        self._notes(good)
        data = self._render(done, skipped, options, to_file=output is not None)
        deliver(data, output, force, [m.path for m in good], self.streams)
        return self._status(done)

    def _one(self, path: str, options: Any) -> _Measured:
        from ctxctl.budgets.cost import session_cost
        from ctxctl.pressure.analysis import analyze as measure
        from ctxctl.pressure.gates import check

        with Progress(self.streams, path) as progress:
            analysis = measure(path, self.table, options, progress)
        transcript = analysis.transcript
        g = self.gates
        gates = check(analysis, options.thresholds, g.fail_on, g.max_utilization, g.max_tokens, g.max_peak)
        return _Measured(path, analysis, session_cost(transcript.usage, self.table, transcript.model), gates)

    def _status(self, done: list[Done[_Measured]]) -> int:
        status = failed_status(done)
        if status is not None:
            return status
        failed = [(d.path, gate) for d in done if d.value is not None for gate in d.value.gates if not gate.ok]
        for path, gate in failed:
            where = "" if self.inputs.single else f"{path}: "
            say(f"failed: {where}{gate.text}")
        return ExitCode.FINDING if failed else ExitCode.OK

    def _notes(self, good: list[_Measured]) -> None:
        """Damage goes to stderr whatever the form, so that a pipeline's log shows it."""
        if self.form is opt.OutputFormat.text:
            return
        for m in good:
            for item in m.analysis.diagnostics:
                if item.severity != "info" or self.streams.verbosity > 0:
                    line = f":{item.line}" if item.line is not None else ""
                    self.streams.note(f"{item.severity}: {m.path}{line}: {item.message} [{item.code}]")

    def _render(
        self, done: list[Done[_Measured]], skipped: Skipped, options: Any, *, to_file: bool
    ) -> bytes | Iterator[bytes]:
        good = [d.value for d in done if d.value is not None]
        if self.form in (opt.OutputFormat.json, opt.OutputFormat.jsonl):
            return self._json(done, skipped)
        if self.form is opt.OutputFormat.csv:
            from ctxctl.reports import csv
            from ctxctl.reports.build.analysis import COLUMNS, analysis_records

            return csv.render(COLUMNS, (row for d in good for row in analysis_records(d.analysis))).encode()
        from ctxctl.reports.build.analysis import analysis_report

        reports = [analysis_report(d.analysis, options.thresholds, d.cost, self.table.date, d.gates) for d in good]
        if self.form is opt.OutputFormat.markdown:
            from ctxctl.reports import markdown

            return markdown.render(reports).encode()
        return self._text(done, reports, to_file)

    def _json(self, done: list[Done[_Measured]], skipped: Skipped) -> bytes | Iterator[bytes]:
        from dataclasses import asdict

        from ctxctl.reports.build.analysis_data import analysis_data, total_data
        from ctxctl.reports.build.failure import error_of, failed_data
        from ctxctl.reports.build.total import total_of
        from ctxctl.reports.json import dumps, envelope, pieces

        settings = asdict(self.loaded.settings)
        entries: list[dict[str, Any]] = []
        for d in done:
            if d.error is not None:
                entries.append(failed_data(d.path, d.error))
            elif (m := d.value) is not None:
                entries.append({"path": d.path, "result": {**analysis_data(m.analysis, m.cost), "gates": m.gates}})
        if self.form is opt.OutputFormat.jsonl:
            return b"".join(
                dumps({"path": e["path"], **envelope("analyze", settings, e.get("result")), **error_of(e)})
                for e in entries
            )
        if self.inputs.single:
            return pieces(envelope("analyze", settings, entries[0]["result"]))
        failed = sum(1 for d in done if d.error is not None)
        good = [d.value.analysis for d in done if d.value is not None]
        total = total_data(good, total_of(good, self.table), failed, skipped)
        result = {
            "files": entries,
            "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
            "total": total,
        }
        return pieces(envelope("analyze", settings, result))

    def _text(self, done: list[Done[_Measured]], reports: list[Any], to_file: bool) -> bytes:
        from ctxctl.reports.build.overview import overview_report
        from ctxctl.reports.build.total import total_of

        if not self.inputs.single:
            pairs = [(d.value.analysis, d.value.cost) for d in done if d.value is not None]
            total = total_of([a for a, _ in pairs], self.table)
            overview = overview_report(pairs, total, sum(1 for d in done if d.error is not None), self.table.date)
            # a report per file is too much to read for many files: the overview has a line for each
            reports = [*reports, overview] if len(reports) <= 3 else [overview]
        return self.streams.text(reports, to_file=to_file)
