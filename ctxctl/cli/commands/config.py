"""`ctxctl config`: settings, where they come from, and whether they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams

SHIPPED = {
    "grafana": "grafana/ctxctl.json",
    "prometheus-rules": "prometheus/ctxctl.rules.yaml",
    "settings": "ctxctl.yaml",
    "models": "models.yaml",
}
"""Files of the shipped configuration that can be printed."""

app = typer.Typer(
    help="Show and check settings.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("show")
def show(
    config: opt.Config = None,
    as_json: opt.Json = False,
) -> int:
    """Print every setting with the origin of its value.

    Examples:

      ctxctl config show

      CTXCTL_PRESSURE_THRESHOLDS__RED=0.95 ctxctl config show | grep red
    """
    from ctxctl.settings.load import load

    loaded = load(config)
    rows = [(key, value, origin) for key, value, origin in loaded.flat()]
    streams = Streams()
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        values = {key: {"value": value, "origin": origin} for key, value, origin in rows}
        streams.payload(dumps(envelope("config", {}, values)))
        return 0
    width = max(len(key) for key, _, _ in rows)
    lines = [f"{key:<{width}}  {_shown(value):<24}  {origin}" for key, value, origin in rows]
    streams.payload(("\n".join(lines) + "\n").encode())
    return 0


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


@app.command("validate")
def validate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Settings files; by default those in force.", show_default=False),
    ] = None,
) -> int:
    """Check settings files; exit 4 with file, key and value when one is refused.

    Example:

      ctxctl config validate .ctxctl.yaml
    """
    from ctxctl.settings.load import load
    from ctxctl.settings.load import validate as check

    streams = Streams()
    if not files:
        loaded = load()
        names = ", ".join(map(str, loaded.files)) or "no settings file; the defaults hold"
        streams.payload(f"ok: {names}\n".encode())
        return 0
    for file in files:
        check(file)
        streams.payload(f"ok: {file}\n".encode())
    return 0


@app.command("schema")
def schema() -> int:
    """Print the JSON Schema of the settings file, for editors.

    Example:

      ctxctl config schema > ctxctl.schema.json
    """
    from ctxctl.reports.json import dumps
    from ctxctl.settings.schema import json_schema

    Streams().payload(dumps(json_schema(), indent=True))
    return 0


@app.command("print")
def print_(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(SHIPPED)}.")],
) -> int:
    """Print a file that comes with ctxctl: the dashboard for Grafana, the alert rules for Prometheus, all settings with
    their defaults, the model table.

    Examples:

      ctxctl config print grafana > ctxctl-dashboard.json

      ctxctl config print prometheus-rules > ctxctl.rules.yaml
    """
    from ctxctl.errors import UsageError
    from ctxctl.registry import closest
    from ctxctl.settings.paths import config_file

    if name not in SHIPPED:
        near = closest(name, list(SHIPPED))
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(SHIPPED)}"
        raise UsageError(f"there is no shipped file {name!r}", hint=hint)
    Streams().payload(config_file(SHIPPED[name]).read_bytes())
    return 0


@app.command("path")
def path() -> int:
    """Print where settings are looked for, and which files exist.

    Example:

      ctxctl config path
    """
    from ctxctl.settings.paths import PROJECT_FILE, config_file, project_file, user_file

    project = project_file()
    user = user_file()
    rows = [
        ("project", str(project) if project else f"{PROJECT_FILE} (not found up to the repository's root)"),
        ("user", str(user) if user.is_file() else f"{user} (not there)"),
        ("defaults", str(config_file("ctxctl.yaml"))),
        ("models", str(config_file("models.yaml"))),
    ]
    Streams().payload("".join(f"{name:<9} {place}\n" for name, place in rows).encode())
    return 0
