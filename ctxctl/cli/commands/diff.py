"""`ctxctl diff`: what was lost between two transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import deliver
from ctxctl.cli.inputs import is_same
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.errors import ExitCode, UsageError

FORMS = (opt.OutputFormat.text, opt.OutputFormat.json, opt.OutputFormat.markdown)


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The transcript before, or - for stdin.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The transcript after, of any format.")],
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Print the blocks that are gone in full, sanitized.")
    ] = False,
    fail_under: Annotated[
        str | None,
        typer.Option(
            "--fail-under",
            metavar="SHARE",
            help="Exit 1 when less of the paths, identifiers, numbers or error names is kept (0.8 or 80%).",
        ),
    ] = None,
    min_fidelity: Annotated[
        str | None,
        typer.Option(
            "--min-fidelity",
            metavar="SHARE",
            help="Exit 1 when less of what the first can answer is still answered by the second (0.8 or 80%).",
        ),
    ] = None,
    from_: opt.From = None,
    output_format: opt.Form = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Report what the window of one transcript held that another's does not, usually before and after a compaction.

    Blocks, tokens, paths, identifiers, numbers, errors, decisions, pinned text and user messages, word for word; and
    questions on goal, progress, files, decisions and the like that the second can't answer any more.

    Examples:

      ctxctl diff SESSION.jsonl COMPACTED.jsonl

      ctxctl diff --fail-under 0.8 SESSION.jsonl COMPACTED.jsonl

      ctxctl diff --min-fidelity 80% SESSION.jsonl COMPACTED.jsonl

      ctxctl diff --json SESSION.jsonl COMPACTED.jsonl | jq .result.retention.paths.lost
    """
    form = opt.form_of(output_format, as_json, output)
    if form not in FORMS:
        raise UsageError(f"diff has no {form.value}", hint=f"it has {', '.join(f.value for f in FORMS)}")
    limits = {"fail-under": _share(fail_under, "--fail-under"), "min-fidelity": _share(min_fidelity, "--min-fidelity")}
    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    if before == after == "-":
        raise UsageError("only one of the two can come from stdin")
    if output is not None and any(path != "-" and is_same(path, output) for path in (before, after)):
        raise UsageError(f"{output} is an input", hint="name another file: a report never replaces a transcript")
    item = _compare(before, after, from_, streams)
    texts = _texts(item) if verbatim else None
    gates = tuple(_gates(item, limits))
    data = _rendered(item, form, limits, gates, texts, streams, output)
    deliver(data, output, force, [p for p in (before, after) if p != "-"], streams)
    for gate in gates:
        if not gate.ok:
            say(f"failed: {gate.text}")
    return ExitCode.OK if all(gate.ok for gate in gates) else ExitCode.FINDING


def _share(text: str | None, option: str) -> float | None:
    found = opt.share_option(text, option)
    if found is not None and found > 1:
        raise UsageError(f"{option}: {text!r} is more than all", hint="write 0.8 or 80%")
    return found


def _gates(item: Any, limits: Mapping[str, float | None]) -> Iterator[Any]:
    from ctxctl.model.finding import Gate

    limit, share = limits["fail-under"], item.share()
    if limit is not None:
        text = "there was no path, identifier, number or error name to keep"
        if share is not None:
            worst = next(name for name, kept in item.retention.items() if kept.share == share)
            text = f"{share:.1%} of the {worst} are kept"
            text += f", under {limit:.1%}" if share < limit else ""
        yield Gate("fail-under", limit, share, share is None or share >= limit, text)
    limit, score = limits["min-fidelity"], item.fidelity.score
    if limit is not None:
        text = "min-fidelity could not be checked: the first window answers no question that could be asked"
        if score is not None:
            text = f"fidelity {score:.1%}"
            text += f", under {limit:.1%}" if score < limit else ""
        yield Gate("min-fidelity", limit, score, score is not None and score >= limit, text)


def _compare(before: str, after: str, from_: str | None, streams: Streams) -> Any:
    from ctxctl.formats import FORMATS
    from ctxctl.health.difference import difference

    if from_ is not None:
        FORMATS.get(from_)
    with Progress(streams, before) as progress:
        return difference(before, after, formats=(from_, from_), progress=progress)


def _texts(item: Any) -> list[dict[str, Any]]:
    """The lost blocks in full, fit to be shown: no credentials, no payloads, nothing that reads as an instruction."""
    from ctxctl.guard.sanitize import sanitize

    found = []
    for n in item.changes.lost:
        block = item.before.blocks[n]
        text = sanitize(block.text, tool_output=block.kind == "tool_result").text
        found.append(
            {
                "block": block.id,
                "line": block.source.line,
                "kind": block.kind,
                "tool": block.tool_name,
                "tokens": item.before.sizes[n],
                "text": text,
            }
        )
    return found


def _rendered(
    item: Any,
    form: opt.OutputFormat,
    limits: Mapping[str, float | None],
    gates: Sequence[Any],
    texts: list[dict[str, Any]] | None,
    streams: Streams,
    output: Path | None,
) -> bytes:
    from ctxctl.reports.build.difference import difference_data, difference_report

    if form is opt.OutputFormat.json:
        from ctxctl.reports.json import dumps, envelope

        settings: dict[str, Any] = {name.replace("-", "_"): limit for name, limit in limits.items()}
        settings["verbatim"] = texts is not None
        return dumps(envelope("diff", settings, difference_data(item, gates, texts)))
    report = difference_report(item)
    if form is opt.OutputFormat.markdown:
        from ctxctl.reports import markdown

        data = markdown.render([report]).encode()
    else:
        data = streams.text([report], to_file=output is not None)
    return data + b"".join(map(_shown, texts or ()))


def _shown(entry: dict[str, Any]) -> bytes:
    """One lost block as text. Control characters could rewrite a terminal: they become U+FFFD."""
    tool = f" {entry['tool']}" if entry["tool"] else ""
    head = f"\n--- line {entry['line']}: {entry['kind']}{tool}, {entry['tokens']:,} tokens\n"
    text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in entry["text"])
    return f"{head}{text}\n".encode("utf-8", "replace")
