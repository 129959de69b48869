"""`ctxctl checkpoint`: the state of a task, saved for the next window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Progress, Streams
from ctxctl.errors import ExitCode

HAND = "By hand"


def checkpoint(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="A transcript, - for stdin. Without one and without changes by hand, the one of the state once more.",
            show_default=False,
        ),
    ] = None,
    state_dir: opt.StateDir = None,
    goal_set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="goal=, current=, criterion=, constraint=, decision=, issue=, learning=, summary= or cwd=.",
            show_default=False,
            rich_help_panel=HAND,
        ),
    ] = None,
    add_todo: Annotated[
        list[str] | None,
        typer.Option(
            "--add-todo", metavar="TEXT", help="Add a planned subtask.", show_default=False, rich_help_panel=HAND
        ),
    ] = None,
    done: Annotated[
        list[str] | None,
        typer.Option("--done", metavar="ID", help="This subtask is done.", show_default=False, rich_help_panel=HAND),
    ] = None,
    doing: Annotated[
        list[str] | None,
        typer.Option("--doing", metavar="ID", help="This one is in work.", show_default=False, rich_help_panel=HAND),
    ] = None,
    planned: Annotated[
        list[str] | None,
        typer.Option(
            "--planned", metavar="ID", help="This one is not begun after all.", show_default=False, rich_help_panel=HAND
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="ID", help="Forget this subtask.", show_default=False, rich_help_panel=HAND),
    ] = None,
    close: Annotated[
        list[str] | None,
        typer.Option(
            "--close",
            metavar="N",
            help="This open issue is settled; by its text any constraint, criterion, learning or service goes.",
            show_default=False,
            rich_help_panel=HAND,
        ),
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option(
            "--service",
            metavar="NAME=PORT",
            help="Something that must run: a TCP port of this machine, or NAME=COMMAND.",
            show_default=False,
            rich_help_panel=HAND,
        ),
    ] = None,
    from_notes: Annotated[bool, typer.Option("--from-notes", help="Take in what the notes file says.")] = False,
    notes: Annotated[
        bool, typer.Option("--notes/--no-notes", help="Write down what is not noted yet in agent_notes.md.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Another task begins; the state of the one before is kept beside it.")
    ] = False,
    same_task: Annotated[
        bool,
        typer.Option("--same-task", help="The transcript is the next window of the state's task in any case."),
    ] = False,
    if_version: Annotated[
        int | None,
        typer.Option(
            "--if-version",
            metavar="N",
            min=0,
            help="Only if the state still has this version; status 1 otherwise.",
            show_default=False,
        ),
    ] = None,
    require_clean: Annotated[
        bool,
        typer.Option(
            "--require-clean",
            help="Status 1 when something is left undone: uncommitted changes, running services, old progress file.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the state; write nothing.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Take a transcript that is shorter or older than the state, and replace a state that can't be read.",
        ),
    ] = False,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Record it in the audit trail.")] = True,
    from_: opt.From = None,
    config: opt.Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as JSON.")] = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Save the state of a task: what is done, in work and planned, decisions, files, tests, and where it runs.

    It is read from the transcript - only what was appended since the last checkpoint - and merged into the state that
    is there: agent_state.json for machines, agent_progress.md for people, in --state-dir or the working folder.

    \b
    Examples:
      ctxctl checkpoint SESSION.jsonl
      ctxctl checkpoint --set 'goal=Move the API to v2' --add-todo 'Update the clients'
      ctxctl checkpoint --done s3 --if-version 7
      ctxctl checkpoint SESSION.jsonl --require-clean
      ctxctl checkpoint
    """
    from datetime import UTC, datetime

    from ctxctl.cli.stating import show, transcript_of, unclean_of
    from ctxctl.settings.load import load
    from ctxctl.state import record
    from ctxctl.state.by_hand import ByHand, pair_of, service_of
    from ctxctl.state.saving import Wish, preview
    from ctxctl.state.saving import checkpoint as save

    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    by_hand = ByHand(
        tuple(pair_of(text) for text in goal_set or ()),
        tuple(done or ()),
        tuple(doing or ()),
        tuple(planned or ()),
        tuple(drop or ()),
        tuple(add_todo or ()),
        tuple(close or ()),
        tuple(service_of(text) for text in service or ()),
    )
    if from_ is not None:
        from ctxctl.formats import FORMATS

        FORMATS.get(from_)
    settings = load(config).settings
    folder = state_dir or Path()
    changes = path is not None or bool(by_hand) or from_notes or notes or new
    if not changes:
        known = record.load(folder / settings.cross_window.state_file)
        if not require_clean:
            path, changes = transcript_of(known), True
            streams.note(f"note: {path}, the transcript that the state came from")
    wish = Wish(
        path,
        by_hand,
        from_,
        if_version=if_version,
        from_notes=from_notes,
        notes=notes,
        notes_file=settings.compaction.notes_file,
        ledger_file=settings.contract.ledger_file,
        force=force,
        new=new,
        same_task=same_task,
        audit=audit,
    )
    now = datetime.now(UTC)
    with Progress(streams, path or "") as progress:
        run = save if changes and not dry_run else preview
        saved = run(wish, folder, settings.cross_window, now, progress=progress)
    for text in saved.told:
        streams.note(text if text.startswith("warning: ") else f"note: {text}")
    unclean = unclean_of(saved, folder, settings) if require_clean else None
    show(saved, unclean, streams, as_json, settings)
    if unclean is not None and not unclean:
        streams.note("clean: nothing is left undone")
    return ExitCode.FINDING if unclean else ExitCode.OK
