"""`ctxctl hook`: what agents call before a compaction and at the start of a session."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import ExitCode

if TYPE_CHECKING:
    from ctxctl.adapters.hooks.base import HookAgent

app = typer.Typer(
    help="Let an agent save its state before a compaction and start its next window with it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class ScopeName(StrEnum):
    """Whose settings file."""

    local = "local"
    project = "project"
    user = "user"


Agent = Annotated[str, typer.Argument(metavar="AGENT", help="claude-code or codex.")]
ScopeOption = Annotated[
    ScopeName | None,
    typer.Option(
        "--scope",
        help="Settings file: your own for this project (local, not in Codex), the project's, which others share, or "
        "your own for all projects (user). By default the first that the agent has.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Write without asking; without a terminal nothing else writes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")]


@app.command("install", short_help="Put the hooks into an agent's settings file.")
def install(
    agent: Agent,
    scope: ScopeOption = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            metavar="EVENT",
            help="Instead of SessionStart and PreCompact; also Stop and SessionEnd, which save the state; several "
            "with commas.",
            show_default=False,
        ),
    ] = None,
    require_clean: Annotated[
        bool,
        typer.Option(
            "--require-clean",
            help="Also Stop: an agent that stops with uncommitted changes or services left running is sent back once.",
        ),
    ] = False,
    state_dir: Annotated[
        str | None,
        typer.Option(
            "--state-dir", metavar="DIR", help="Where the state lies; by default the project.", show_default=False
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Show the difference of the settings file, ask, and write it.

    SessionStart brings the resume prompt into a window that begins, when something of the task is left; PreCompact
    saves the state before the agent compacts. Everything else in the file stays as it is, a copy is left beside it
    (.bak), and `ctxctl hook uninstall` takes out what was put in. Hooks that are installed already are brought up to
    what is asked for. Without a terminal and without --yes nothing is written, and the status is 1.

    Examples:

      ctxctl hook install claude-code

      ctxctl hook install codex --scope user --dry-run

      ctxctl hook install claude-code --scope project --events SessionStart,PreCompact,SessionEnd --yes
    """
    from ctxctl.adapters.hooks import install as rules
    from ctxctl.adapters.hooks import places
    from ctxctl.cli.hooking import elsewhere, settle

    spec, path, chosen = _place(agent, scope)
    wanted = rules.chosen_events(spec, _names(events), clean=require_clean)
    command = places.command_line(spec, chosen, state_dir=state_dir)
    stop = places.command_line(spec, chosen, clean=require_clean, state_dir=state_dir)
    before = rules.read(path)
    after = rules.with_hooks(before, rules.groups(spec, wanted, command, stop), path)
    change = rules.Change(path, before, after)
    notes = (*spec.notes, *elsewhere(spec, path))
    return settle(
        change,
        {"agent": agent, "scope": chosen, "events": list(wanted), "command": command},
        "the hooks are installed already",
        notes,
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
        streams=Streams(verbosity=-1 if quiet else 0),
    )


@app.command("uninstall", short_help="Take the hooks out again.")
def uninstall(
    agent: Agent,
    scope: ScopeOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Show the difference of the settings file, ask, and write it.

    What was there before the installation comes back byte for byte, as long as nothing else changed since, and the
    copy of it (.bak) is removed; a file that the installation made is removed too. Otherwise the hooks of ctxctl are
    taken out, and all else stays. A command of yours that calls ctxctl among other things is told and left alone.

    Examples:

      ctxctl hook uninstall claude-code

      ctxctl hook uninstall codex --scope user --yes
    """
    from ctxctl.adapters.hooks import install as rules
    from ctxctl.cli.hooking import settle

    _, path, chosen = _place(agent, scope)
    before = rules.read(path)
    found = rules.installed(before, path)
    after = rules.without_hooks(before, path) if before is not None else None
    return settle(
        rules.Change(path, before, after, keep=False),
        {"agent": agent, "scope": chosen, "events": [one.event for one in found], "command": None},
        "no hooks of ctxctl are installed there",
        (),
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
        streams=Streams(verbosity=-1 if quiet else 0),
    )


@app.command("status", short_help="Which hooks are installed where, and what they did last.")
def status(as_json: opt.Json = False, color: opt.ColourOption = opt.Colour.auto, quiet: opt.Quiet = False) -> int:
    """List the settings files of all agents and scopes with the hooks of ctxctl in them.

    Examples:

      ctxctl hook status

      ctxctl hook status --json | jq .result.files
    """
    from ctxctl.cli.hooking import status_of_all

    streams = Streams(colour=color.value, verbosity=-1 if quiet else 0)
    result = status_of_all()
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        streams.payload(dumps(envelope("hook", {}, result)))
    else:
        from ctxctl.reports.build.hooks import hooks_report

        streams.payload(streams.text([hooks_report(result)]))
        for place in result["files"]:
            for one in place["others"]:
                streams.note(f"{place['path']}: {one['event']} runs ctxctl among other things: {one['command']!r}")
    return ExitCode.OK


@app.command("run", short_help="What agents call: the event as JSON on stdin, the answer on stdout.")
def run(
    agent: Annotated[str, typer.Argument(metavar="[AGENT]", help="Who calls; by default the limits of all hold.")] = "",
    state_dir: Annotated[
        str, typer.Option("--state-dir", metavar="DIR", help="Where the state lies; by default the project.")
    ] = "",
    require_clean: Annotated[
        bool, typer.Option("--require-clean", help="On Stop, send the agent back once with what is not clean.")
    ] = False,
    deadline: Annotated[
        str,
        typer.Option(
            "--deadline", metavar="SECONDS", help="Give up after so long; by default below the agent's limit."
        ),
    ] = "",
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="Settings file instead of the project's .ctxctl.yaml.")
    ] = "",
) -> int:
    """Read the event of an agent from stdin, do what it asks for, and answer as the agent's protocol says.

    The state lies in the project of the event's `cwd`. The status is always 0, and stdout is empty or an answer: what
    goes wrong stands in the log ($XDG_STATE_HOME/ctxctl/hook.log; CTXCTL_HOOK_LOG names another file, or is off).

    Examples:

      echo '{"hook_event_name": "SessionStart", "source": "startup", "cwd": "/repo"}' | ctxctl hook run claude-code
    """
    from ctxctl.cli.hook_run import hook_run

    words = [agent] if agent else []
    for name, value in (("--state-dir", state_dir), ("--deadline", deadline), ("--config", config)):
        words += [name, value] if value else []
    return hook_run([*words, *(["--require-clean"] if require_clean else [])])


def _place(name: str, scope: ScopeName | None) -> tuple[HookAgent, Path, Any]:
    """The agent, its settings file, and the scope of that."""
    from ctxctl.adapters.hooks.base import registry
    from ctxctl.adapters.hooks.places import project_root, settings_path

    agent = registry.get(name)
    chosen = scope.value if scope is not None else agent.default_scope
    return agent, settings_path(agent, chosen, project_root(agent, Path.cwd()), os.environ), chosen


def _names(events: list[str] | None) -> list[str]:
    return [name.strip() for given in events or () for name in given.split(",") if name.strip()]
