"""`ctxctl list`: what ctxctl knows."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams


class What(StrEnum):
    """What can be listed."""

    formats = "formats"
    models = "models"
    policies = "policies"
    strategies = "strategies"
    presets = "presets"
    detectors = "detectors"


def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    match: Annotated[str | None, typer.Argument(help="Only names that contain this text.", show_default=False)] = None,
    as_json: opt.Json = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    verbose: opt.Verbose = False,
) -> int:
    """List formats that are read and written, models with windows and prices, eviction policies, compaction
    strategies, runtime presets, or the alerts and detectors of `health`.

    Examples:

      ctxctl list formats

      ctxctl list models sonnet

      ctxctl list policies -v
    """
    streams = Streams(colour=color.value, verbosity=int(verbose))
    if what is What.formats:
        rows = _formats()
    elif what is What.models:
        rows = _models(config)
    else:
        from ctxctl.cli import catalogue

        found = {
            What.policies: catalogue.policies,
            What.strategies: catalogue.strategies,
            What.presets: catalogue.presets,
            What.detectors: catalogue.detectors,
        }
        rows = found[what]()
    if match:
        rows = [row for row in rows if match.lower() in str(row["name"]).lower()]
        if not rows:
            streams.note(f"no {what.value} with {match!r} in the name; `ctxctl list {what.value}` shows all")
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        streams.payload(dumps(envelope("list", {}, {what.value: rows})))
        return 0
    _print(what, rows, streams, verbose)
    return 0


def _formats() -> list[dict[str, Any]]:
    from ctxctl.formats import FORMATS

    return [
        {"name": name, "title": entry.title, "about": (entry.__doc__ or "").strip(), "reads": True, "writes": True}
        for name, entry in FORMATS
    ]


def _models(config: Path | None) -> list[dict[str, Any]]:
    """The table as `analyze` uses it, with the rows of the user's settings."""
    from dataclasses import asdict

    from ctxctl.settings.load import load, model_table

    return [{"name": row.id, **asdict(row)} for row in model_table(load(config)).rows()]


def _print(what: What, rows: list[dict[str, Any]], streams: Streams, verbose: bool) -> None:
    from ctxctl.reports.document import Column, Report, Table
    from ctxctl.reports.plot import plural

    if what is What.formats:
        table = Table(
            "Formats (read and written)",
            (Column("name"), Column("what", flexible=True)),
            tuple((row["name"], row["title"]) for row in rows),
            "--from NAME forces one; the content decides otherwise",
        )
    elif what is not What.models:
        from ctxctl.cli import catalogue

        show = {
            What.policies: catalogue.policy_report,
            What.strategies: catalogue.strategy_report,
            What.presets: catalogue.preset_report,
            What.detectors: catalogue.detector_report,
        }
        streams.payload(streams.text([show[what](rows, verbose)]))
        return
    else:
        columns = ["window", "long_window", "output", "input_price", "output_price", "cache_read_price"]
        columns += ["cache_write_price", "image_rule", "date"] if verbose else []
        table = Table(
            plural(len(rows), "model"),
            (
                Column("name", flexible=True),
                *(Column(c.removesuffix("_price").replace("_", " "), "right") for c in columns),
            ),
            tuple((row["name"], *(_cell(row[c]) for c in columns)) for row in rows),
            "windows and output in tokens, prices in USD per million tokens" + ("" if verbose else "; -v shows more"),
        )
    streams.payload(streams.text([Report("list", f"ctxctl list {what.value}", tables=(table,))]))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else (f"{value:g}" if isinstance(value, float) else str(value))
