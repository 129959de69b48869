"""`ctxctl demo`: the report on a sample that is shipped."""

from __future__ import annotations

from ctxctl.cli import options as opt
from ctxctl.cli.commands import analyze as command

SAMPLE = "axios-to-fetch.jsonl"


def demo(
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Analyze the shipped sample: a coding agent migrates a service from axios to fetch.

    Examples:

      ctxctl demo

      ctxctl demo --json | jq .result.composition.by_kind
    """
    from ctxctl.settings.paths import sample_file

    return command.analyze([str(sample_file(SAMPLE))], as_json=as_json, color=color, quiet=quiet, verbose=verbose)
