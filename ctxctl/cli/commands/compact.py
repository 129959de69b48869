"""`ctxctl compact`: compact a session to a size that it proves, so that its agent can go on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ctxctl.cli import options as opt


class OnFailure(StrEnum):
    """What happens when the model gives no usable summary."""

    extractive = "extractive"
    fail = "fail"


class Emit(StrEnum):
    """What is printed instead of a transcript."""

    context_management = "context-management"


MODEL, WRITE = "Summaries by a model", "Where it goes"


def compact(
    paths: opt.Paths = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SIZE",
            help="60k tokens, 0.5 of the window, or 50% of what is in it now. By default the settings decide: nothing "
            "below orange, else down to eviction.target.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--strategy",
            metavar="NAME",
            help="Steps, in this order, instead of the cascade (`ctxctl list strategies`).",
        ),
    ] = None,
    keep_turns: Annotated[
        int, typer.Option("--keep-turns", min=0, metavar="N", help="The newest N turns stay as they are.")
    ] = 0,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin",
            metavar="RULE",
            help="What stays as it is: path=REGEX, tool=NAME, kind=KIND, role=ROLE, block=ID, or a regex for the text.",
        ),
    ] = None,
    evict: Annotated[
        bool, typer.Option("--evict/--no-evict", help="Whether what compaction leaves missing is evicted.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The compacted transcript; a folder gets a file named as the agent does; - is stdout.",
            rich_help_panel=WRITE,
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Replace the file; the original stays beside it as .bak.", rich_help_panel=WRITE
        ),
    ] = False,
    keep_history: Annotated[
        bool,
        typer.Option(
            "--keep-history",
            help="Keep the original lines and append the compaction, as the agent itself does (Claude Code, Codex).",
            rich_help_panel=WRITE,
        ),
    ] = False,
    recall: Annotated[
        bool,
        typer.Option(
            "--recall/--no-recall",
            help="Keep the original and what left in OUTPUT.recall.db, for `ctxctl recall`.",
            rich_help_panel=WRITE,
        ),
    ] = True,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir", metavar="DIR", help="Where notes, ledger and audit trail are.", rich_help_panel=WRITE
        ),
    ] = None,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit/--no-audit",
            help="Record what was done in agent_audit.jsonl, for `ctxctl audit`.",
            rich_help_panel=WRITE,
        ),
    ] = True,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace an existing output, and take a session that is still being written.",
            rich_help_panel=WRITE,
        ),
    ] = False,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="COMMAND",
            help="A command that reads a prompt on stdin and writes the summary on stdout.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    llm_endpoint: Annotated[
        str | None,
        typer.Option(
            "--llm-endpoint",
            metavar="URL",
            help="An OpenAI-compatible endpoint; needs ctxctl[llm].",
            rich_help_panel=MODEL,
        ),
    ] = None,
    llm_model: Annotated[
        str | None, typer.Option("--llm-model", metavar="NAME", help="The model there.", rich_help_panel=MODEL)
    ] = None,
    on_llm_failure: Annotated[
        OnFailure | None,
        typer.Option(
            "--on-llm-failure",
            help="Without a usable summary: go on with the extractive one, or fail with status 5.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact/--no-redact", help="Take credentials and injected instructions out of what is written new."
        ),
    ] = True,
    notes: Annotated[
        bool,
        typer.Option(
            "--notes/--no-notes",
            help="Write down decisions, finished and open work in agent_notes.md before anything is replaced.",
            rich_help_panel=WRITE,
        ),
    ] = False,
    from_notes: Annotated[
        bool,
        typer.Option(
            "--from-notes/--no-from-notes",
            help="Tell the notes that agent_notes.md holds already in the summary too.",
        ),
    ] = True,
    emit: Annotated[
        Emit | None, typer.Option("--emit", help="Print the provider's own request block for these settings instead.")
    ] = None,
    window: opt.Window = None,
    from_: opt.From = None,
    config: opt.Config = None,
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Compact a session to a size that is proved, in its own format, so that its agent can resume it.

    Without a model everything is extractive and deterministic. Long outputs shrink to their findings first, then what
    is old is told in less detail, then the old part becomes one summary; what is still missing is evicted. The system
    prompt, the task, pinned text, the newest request and open calls are never touched. If the target can't be met,
    no transcript is written and the status is 5.

    \b
    Examples:
      ctxctl compact --to 50% --dry-run SESSION.jsonl
      ctxctl compact --to 60k -o compacted.jsonl SESSION.jsonl
      ctxctl compact --to 0.3 --in-place --pin 'path=docs/spec' SESSION.jsonl
      ctxctl compact --to 60k --llm 'claude -p' -o out.jsonl SESSION.jsonl
    """
    from ctxctl.cli.compacting import Asked, run

    asked = Asked(
        paths,
        to,
        tuple(name.strip() for text in strategy or () for name in text.split(",") if name.strip()),
        keep_turns,
        tuple(pin or ()),
        evict,
        dry_run,
        output,
        in_place,
        keep_history,
        recall,
        state_dir,
        force,
        llm,
        llm_endpoint,
        llm_model,
        on_llm_failure.value if on_llm_failure is not None else None,
        redact,
        notes,
        audit,
        from_notes,
        emit is not None,
        window,
        from_,
        config,
        as_json,
        color.value,
        -1 if quiet else int(verbose),
    )
    return run(asked)
