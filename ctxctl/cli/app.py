"""The Typer application, and the one boundary where errors become text and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from typer.exceptions import Abort, TyperException

from ctxctl import __version__
from ctxctl.cli.commands import (
    analyze,
    audit,
    budget,
    check,
    checkpoint,
    compact,
    config,
    convert,
    demo,
    diff,
    guard,
    health,
    hook,
    list_,
    notes,
    recall,
    resume,
    simulate,
    statusline,
    tune,
    watch,
)
from ctxctl.cli.io import ReaderGoneError, close_stdout, error_text, say
from ctxctl.errors import CtxctlError, ExitCode, UsageError
from ctxctl.registry import closest

HELP = """Measure and manage the context window of LLM agents, from their transcript files.

How full was the window and when, what filled it, what did it cost? Start with

  ctxctl demo

  ctxctl analyze SESSION.jsonl

  ctxctl simulate SESSION.jsonl

  ctxctl compact --to 50% --dry-run SESSION.jsonl
"""

CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What typer itself meets when it prints help to a full or closed stream."""

# panels and colours are for terminals; a pipe gets plain text
PRETTY = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")

app = typer.Typer(
    name="ctxctl",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich" if PRETTY else None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("analyze", short_help="How full the window was, what filled it, what it cost.")(analyze.analyze)
app.command("health", short_help="Alerts and failure modes of sessions; limits for CI.")(health.health)
app.command("budget", short_help="What each component holds, how long it lasts, what it costs.")(budget.budget)
app.command("simulate", short_help="What other policies would have cost and lost.")(simulate.simulate)
app.command("tune", short_help="The cheapest settings for your own sessions.")(tune.tune)
app.command("watch", short_help="Follow a session while its agent writes it.")(watch.watch)
app.command("statusline", short_help="One line for an agent's status line.")(statusline.statusline)
app.command("compact", short_help="Compact a session so that its agent can resume it.")(compact.compact)
app.command("checkpoint", short_help="Save the state of a task for the next window.")(checkpoint.checkpoint)
app.command("resume", short_help="The prompt that the next window of a task starts with.")(resume.resume)
app.command("diff", short_help="What was lost between two transcripts.")(diff.diff)
app.command("convert", short_help="A transcript in another format.")(convert.convert)
app.command("check", short_help="Whether a transcript could be sent as it stands, and its repair.")(check.check)
app.command("demo", short_help="The report on a shipped sample.")(demo.demo)
app.command("list", short_help="Formats, models with prices, policies, strategies, presets, detectors.")(list_.list_)
app.add_typer(guard.app, name="guard", short_help="Find and take out injected instructions and credentials.")
app.add_typer(hook.app, name="hook", short_help="Let an agent save its state and start with it.")
app.add_typer(config.app, name="config")
app.add_typer(notes.app, name="notes", short_help="What the next window must know: write, list, show.")
app.add_typer(audit.app, name="audit", short_help="What was done to sessions, hash-chained: show, verify.")
app.command("recall", short_help="Bring back what a compaction took out.")(recall.recall)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ctxctl {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """See HELP."""


root.__doc__ = HELP


def run(arguments: list[str]) -> int:
    """Run one command line; returns the exit status. Nothing escapes as a traceback but a bug of ours."""
    as_json = "--json" in arguments
    try:
        status = app(arguments, prog_name="ctxctl", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(status or 0)
    except CtxctlError as error:
        return _report(error, as_json)
    except TyperException as error:
        return _usage(error, as_json)
    except (ReaderGoneError, BrokenPipeError):
        close_stdout()
        return ExitCode.PIPE
    except (KeyboardInterrupt, Abort):
        say("interrupted")
        return ExitCode.INTERRUPTED
    except MemoryError:
        say("error: not enough memory\nhint: give single files, or read usage alone with --tokens reported")
        return ExitCode.INPUT
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            return _bug()
        close_stdout()
        say(f"error: standard output can't be written: {error.strerror or error}")
        return ExitCode.INPUT
    except SystemExit as error:
        # typer itself ends the process when stdout is closed
        return ExitCode.PIPE if error.code == 1 else int(error.code or 0)
    except Exception:
        return _bug()


def _bug() -> int:
    import platform
    import traceback

    say(traceback.format_exc())
    say(
        f"error: this is a bug in ctxctl {__version__} (Python {platform.python_version()}, {sys.platform})\n"
        "hint: please report it with the lines above"
    )
    return ExitCode.BUG


def _report(error: CtxctlError, as_json: bool) -> int:
    if as_json:
        from ctxctl.reports.json import dumps

        fields: dict[str, Any] = {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "path": error.path,
            "line": error.line,
        }
        say(dumps({"error": fields}).decode().rstrip("\n"))
    else:
        say(error_text(error))
    return error.exit_code


def _usage(error: TyperException, as_json: bool) -> int:
    """Typer's own complaints, with a did-you-mean and where to look."""
    import re

    message = error.format_message()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ctxctl"
    hint = f"`{command} --help` lists what it takes"
    wrong = re.search(r"No such command '([^']+)'", message)
    if wrong and context is not None:
        near = closest(wrong[1], list(getattr(context.command, "commands", {})))
        hint = f"did you mean `{command} {near}`?" if near else hint
    option = re.search(r"No such option: (\S+)", message)
    if option and context is not None:
        near = closest(option[1], [name for p in context.command.params for name in p.opts])
        hint = f"did you mean {near}?" if near else hint
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message)
        return ExitCode.USAGE
    message = re.sub(r" (Did you mean .*|\(Possible options: .*\))$", "", message)
    return _report(UsageError(message, hint=hint), as_json)
