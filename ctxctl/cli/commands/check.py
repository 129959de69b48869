"""`ctxctl check`: whether a transcript could be sent as it stands, and a repaired copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import Done, Skipped, deliver, each, failed_status, inputs_for, tell_skipped
from ctxctl.cli.inputs import Inputs
from ctxctl.cli.io import Progress, Streams, write_file
from ctxctl.errors import ExitCode, UsageError


@dataclass(frozen=True, slots=True)
class _One:
    """One transcript, and its repair when one was asked for."""

    checked: Any
    repaired: Any = None


def check(
    paths: opt.Paths = None,
    from_: opt.From = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write a repaired copy to -o FILE; the input is never changed.")
    ] = False,
    output_format: opt.Form = None,
    as_json: opt.Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The report's file (its suffix tells the form); with --repair, the repaired transcript's.",
            show_default=False,
        ),
    ] = None,
    force: opt.Force = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Check that a transcript could be sent as it stands: calls and results, ids, content, the chain, the lines.

    Exit status 1 when it could not; warnings alone don't count.

    Examples:

      ctxctl check SESSION.jsonl

      ctxctl check --json 'runs/**/*.jsonl' | jq '.result.files[] | select(.result.valid | not) | .path'

      ctxctl check --repair -o SESSION.repaired.jsonl SESSION.jsonl
    """
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    form = opt.form_of(output_format, as_json, None if repair else output)
    if from_ is not None:
        from ctxctl.formats import FORMATS

        FORMATS.get(from_)
    inputs = inputs_for(paths, output, force, streams)
    if repair:
        _one_output(inputs, output)
    return _Run(inputs, form, streams, from_, output, force).go(repair)


def _one_output(inputs: Inputs, output: Path | None) -> None:
    """A repair needs one input, and a file to write to."""
    from ctxctl.reports.build.validity import repaired_name

    if len(inputs.items) != 1 or not inputs.single:
        raise UsageError("--repair takes one transcript", hint="name a file, not a folder or several files")
    if output is None:
        import shlex

        path = inputs.items[0].path
        name = "repaired.jsonl" if path == "-" else shlex.quote(repaired_name(path))
        given = "" if path == "-" else shlex.quote(path)
        raise UsageError(
            "--repair needs -o FILE: it never changes its input",
            hint=f"ctxctl check --repair -o {name} {given}".rstrip(),
        )


class _Run:
    """One run of the command, after its arguments are understood."""

    def __init__(
        self, inputs: Inputs, form: opt.OutputFormat, streams: Streams, from_: str | None, output: Any, force: bool
    ) -> None:
        self.inputs, self.form, self.streams = inputs, form, streams
        self.from_, self.output, self.force = from_, output, force

    def go(self, repair: bool) -> int:
        done, skipped = each(self.inputs, self._repair if repair else self._check)
        tell_skipped(done, skipped, self.streams)
        data = self._render(done, skipped, to_file=not repair and self.output is not None)
        sources = [d.path for d in done if d.value is not None]
        deliver(data, None if repair else self.output, self.force, sources, self.streams)
        return self._status(done)

    def _check(self, path: str) -> _One:
        from ctxctl.validity.check import check as examine

        with Progress(self.streams, path) as progress:
            return _One(examine(path, format_name=self.from_, progress=progress))

    def _repair(self, path: str) -> _One:
        from ctxctl.reports.build.validity import repair_lines
        from ctxctl.validity.repair import repair

        with repair(path, format_name=self.from_) as repaired:
            if repaired.changed:
                self.streams.note(f"warning: {path}: the file changed while it was read; check it again")
            write_file(self.output, Path(repaired.path).read_bytes(), force=self.force, modes_of=[path])
        if self.form is not opt.OutputFormat.text:
            for line in repair_lines(repaired):
                self.streams.note(line)
        self.streams.note(f"wrote {self.output}" + ("" if repaired.repairs else ": there was nothing to repair"))
        return _One(repaired.before, repaired)

    def _render(self, done: list[Done[_One]], skipped: Skipped, *, to_file: bool) -> bytes:
        good = [d.value for d in done if d.value is not None]
        if self.form in (opt.OutputFormat.json, opt.OutputFormat.jsonl):
            return self._json(done, skipped)
        if self.form is opt.OutputFormat.csv:
            from ctxctl.reports import csv
            from ctxctl.reports.build.validity import COLUMNS, check_records

            return csv.render(COLUMNS, (row for one in good for row in check_records(one.checked))).encode()
        from ctxctl.reports.build.validity import check_report

        reports = [check_report(one.checked, one.repaired) for one in good]
        if self.form is opt.OutputFormat.markdown:
            from ctxctl.reports import markdown

            return markdown.render(reports).encode()
        if len(reports) > 3:  # of many files only those are worth a look that something was found in
            reports = [r for r, one in zip(reports, good, strict=True) if any(_told(f) for f in one.checked.findings)]
        data = self.streams.text(reports, to_file=to_file) if reports else b""
        if not self.inputs.single:
            valid = sum(one.checked.valid for one in good)
            failed = sum(d.error is not None for d in done)
            more = f", {failed} could not be read" if failed else ""
            data += f"{len(good)} transcripts checked: {valid} valid, {len(good) - valid} not{more}\n".encode()
        return data

    def _json(self, done: list[Done[_One]], skipped: Skipped) -> bytes:
        from ctxctl.reports.build.failure import error_of, failed_data
        from ctxctl.reports.build.validity import check_data
        from ctxctl.reports.json import dumps, envelope

        settings = {"from": self.from_}
        entries: list[dict[str, Any]] = []
        for d in done:
            if d.error is not None:
                entries.append(failed_data(d.path, d.error))
            elif d.value is not None:
                result = check_data(d.value.checked, d.value.repaired)
                if d.value.repaired is not None:
                    result |= {"output": str(self.output), "written": [str(self.output)]}
                entries.append({"path": d.path, "result": result})
        if self.form is opt.OutputFormat.jsonl:
            return b"".join(
                dumps({"path": e["path"], **envelope("check", settings, e.get("result")), **error_of(e)})
                for e in entries
            )
        if self.inputs.single:
            return dumps(envelope("check", settings, entries[0]["result"]))
        good = [d.value.checked for d in done if d.value is not None]
        total = {
            "files": len(entries),
            "failed": len(entries) - len(good),
            "valid": sum(c.valid for c in good),
            "invalid": sum(not c.valid for c in good),
            "errors": sum(f.level == "error" for c in good for f in c.findings),
            "warnings": sum(f.level == "warning" for c in good for f in c.findings),
        }
        listed = [{"path": path, "reason": reason} for path, reason in skipped]
        return dumps(envelope("check", settings, {"files": entries, "skipped": listed, "total": total}))

    def _status(self, done: list[Done[_One]]) -> int:
        status = failed_status(done)
        if status is not None:
            return status
        judged = [d.value.repaired.after if d.value.repaired else d.value.checked for d in done if d.value is not None]
        return ExitCode.OK if all(c.valid for c in judged) else ExitCode.FINDING


def _told(finding: Any) -> bool:
    return bool(finding.level != "info")
