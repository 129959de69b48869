"""`ctxctl guard`: instructions and credentials in what goes back into a window."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import ExitCode

if TYPE_CHECKING:
    from ctxctl.guard.source import Source

app = typer.Typer(
    help="Find and take out injected instructions and credentials. A help, not a security boundary.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Target = Annotated[
    str, typer.Argument(metavar="PATH|-", help="A transcript or any text file; `-` or nothing with a pipe reads stdin.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FORMAT", help="Force the input's format (see `ctxctl list formats`); text for plain text."
    ),
]


class Severity(StrEnum):
    """How likely a finding is meant."""

    low = "low"
    medium = "medium"
    high = "high"


@app.command("scan", short_help="What looks like an instruction to the model, and where.")
def scan(
    path: Target = "-",
    from_: From = None,
    fail_on: Annotated[
        Severity | None,
        typer.Option("--fail-on", help="Exit 1 on a finding of this severity or above.", show_default=False),
    ] = None,
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Report text that tries to instruct the model: system-override, role-confusion, tool-call-injection,
    secret-extraction, instruction-injection.

    Of a transcript, the tool results and what users wrote are looked at, and each finding names line and block; start
    and end are characters of the block's text. Of any other text they are characters of the file. Severity low is for
    phrases that documentation and source code use too.

    Not a security boundary. It looks for phrases in English, Chinese, German, Spanish, French and Portuguese, and does
    not see what is encoded (base64), written with look-alike letters (homoglyphs) or split by zero-width characters.
    The controls are the sandbox, the tool policy and human approval.

    Examples:

      ctxctl guard scan SESSION.jsonl

      curl -s https://example.com/page | ctxctl guard scan --fail-on medium -

      ctxctl guard scan --json SESSION.jsonl | jq .result.counts
    """
    from ctxctl.guard.scan import LIMITS, RANK
    from ctxctl.guard.source import load

    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    source = load(_given(path), from_)
    result = _result(source)
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        settings = {"from": from_, "fail_on": fail_on.value if fail_on else None}
        streams.payload(dumps(envelope("guard", settings, result)))
    else:
        from ctxctl.reports.build.guard import guard_report

        streams.payload(streams.text([guard_report(source.path, result, LIMITS)]))
    if fail_on is not None and any(RANK[f["severity"]] >= RANK[fail_on.value] for f in result["findings"]):
        streams.note(f"gate: findings of severity {fail_on.value} or above")
        return ExitCode.FINDING
    return ExitCode.OK


@app.command("clean", short_help="Print the text without credentials and injected instructions.")
def clean(
    path: Target = "-",
    from_: From = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to a file instead of stdout.", show_default=False),
    ] = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> int:
    """Print a text with markers in place of base64 data URIs, runs of 64 or more hexadecimal digits, credentials, and
    instructions to the model of severity medium or high. What is clean comes out byte for byte.

    Of a transcript only the texts of tool results are rewritten, in its own format; every other line keeps its bytes.
    What users and the model wrote is never changed: credentials there are counted on stderr.

    Not a security boundary: see `ctxctl guard scan --help` for what it does not see.

    Examples:

      ctxctl guard clean page.html > page.clean.html

      env | ctxctl guard clean -

      ctxctl guard clean SESSION.jsonl -o SESSION.clean.jsonl
    """
    from ctxctl.cli.batch import deliver, inputs_for
    from ctxctl.guard.source import cleaned, load

    streams = Streams(verbosity=-1 if quiet else 0)
    given = _given(path)
    inputs_for([given], output, force, streams)
    source = load(given, from_)
    data, counts, left = cleaned(source)
    deliver(data, output, force, [given], streams)
    taken = [f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n]
    streams.note(f"replaced: {', '.join(taken)}" if taken else "nothing to replace")
    if left:
        streams.note(f"left as they are: {left} credentials in messages and calls, which are never rewritten")
    return ExitCode.OK


def _given(path: str) -> str:
    """The PATH; UsageError for stdin when nothing is piped in."""
    from ctxctl.cli.inputs import resolve
    from ctxctl.errors import UsageError

    inputs = resolve(None if path == "-" else [path])
    if not inputs.single:
        raise UsageError(f"{path} is not one file", hint="guard takes one file at a time; loop over the others")
    return inputs.items[0].path


def _result(source: Source) -> dict[str, Any]:
    """`result` of the JSON. The text of a finding is shown without credentials; its place is that of the whole span."""
    from ctxctl.guard.rules import KINDS, SEVERITIES
    from ctxctl.guard.sanitize import sanitize

    redactions = {"secrets": 0, "data_uris": 0, "hex": 0, "surrogates": 0}
    findings: list[dict[str, Any]] = []
    for passage in source.passages:
        done = sanitize(passage.text, tool_output=False)
        for name in redactions:
            redactions[name] += getattr(done, name)
        for found in done.findings:
            row: dict[str, Any] = {
                "kind": found.kind,
                "severity": found.severity,
                "start": found.start,
                "end": found.end,
                "line": found.line if passage.line is None else passage.line,
                "text": sanitize(found.text, tool_output=False).text,
            }
            if passage.block is not None:
                row |= {"block": passage.block, "block_kind": passage.kind, "tool": passage.tool}
            findings.append(row)
    by_severity = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    by_kind = {k: sum(f["kind"] == k for f in findings) for k in KINDS}
    return {
        "path": source.path,
        "format": source.format,
        "looked_at": source.looked_at,
        "findings": findings,
        "counts": {"total": len(findings), "by_severity": by_severity, "by_kind": by_kind},
        "redactions": redactions,
    }
