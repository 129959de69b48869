"""`ctxctl resume`: what the next window of a task starts from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Progress, Streams
from ctxctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ctxctl.cli.resuming import Source
    from ctxctl.state.boot import Boot


class ResumeFormat(StrEnum):
    """Forms of a resume prompt."""

    text = "text"
    json = "json"
    claude_code = "claude-code"
    codex = "codex"
    messages = "messages"
    chat = "chat"


TARGETS = {
    ResumeFormat.claude_code: "claude-code",
    ResumeFormat.codex: "codex",
    ResumeFormat.messages: "anthropic-messages",
    ResumeFormat.chat: "openai-chat",
}
"""Forms in which an agent or a provider takes the prompt, and the format that each is written in."""
LINES = 5
"""Lines on stderr without -v."""


def resume(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[STATE|PATH]",
            help="A state, a folder with one, or a transcript; by default the state in --state-dir.",
            show_default=False,
        ),
    ] = None,
    state_dir: opt.StateDir = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TOKENS",
            help="The prompt's tokens at most; by default cross_window.resume_budget (4,000).",
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        ResumeFormat | None,
        typer.Option(
            "--output-format",
            help="The prompt as text, or as a session file or request that starts with it.",
            show_default=False,
        ),
    ] = None,
    as_json: opt.Json = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where it goes instead of stdout.", show_default=False),
    ] = None,
    force: opt.Force = False,
    strict: Annotated[bool, typer.Option("--strict", help="Status 1 when files changed since the checkpoint.")] = False,
    run_commands: Annotated[
        bool,
        typer.Option("--run-commands", help="Run the commands of the state that tell whether a service runs."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Count tokens as this model does.", show_default=False),
    ] = None,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Record it in the audit trail.")] = True,
    from_: opt.From = None,
    config: opt.Config = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Print what the next window of a task starts from: goal, current and next step, open issues, decisions, files.

    The folder, git, files and services are checked first; what is not as it was stands in the prompt and on stderr.
    The transcript is not read again. Goal, criteria, constraints and current step are never cut: status 5 when they
    alone are above the budget, with their size.

    Examples:

      claude "$(ctxctl resume)"

      ctxctl resume --strict --budget 2000 > prompt.txt

      ctxctl resume --output-format codex -o rollout-2026-11-30T10-00-00-0b5f7a3e-5d1c-4c3e-8f10-2d4b6a8c0e12.jsonl

      ctxctl resume --json | jq -r '.result.next_step'
    """
    from datetime import UTC, datetime

    from ctxctl.cli.resuming import source_of
    from ctxctl.settings.load import load
    from ctxctl.state.boot import boot, counter

    streams = Streams(verbosity=-1 if quiet else int(verbose))
    form = _form(output_format, as_json, output)
    limit = opt.tokens_option(budget, "--budget")
    if limit is not None and limit < 1:
        raise UsageError(f"--budget {budget} leaves room for nothing", hint="4000 is the default")
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} exists", hint="--force replaces it")
    settings = load(config).settings
    now = datetime.now(UTC)
    with Progress(streams, path or "") as progress:
        source = source_of(path, state_dir, settings.cross_window, now, format_name=from_, progress=progress)
    if output is not None and output.exists() and source.is_at(output):
        raise UsageError(f"{output} is the input", hint="name another file")
    limit = settings.cross_window.resume_budget if limit is None else limit
    made = boot(
        source.state,
        source.folder,
        budget=limit,
        count=counter(model),
        options=settings.cross_window,
        others=(settings.compaction.notes_file, settings.contract.ledger_file),
        run_commands=run_commands,
        where=source.path if source.saved else "",
    )
    _unknown(model, streams)
    run = _Run(source, made, form, output, force, as_json, model, streams, now)
    run.deliver(limit, settings, audit=audit)
    run.tell(strict=strict)
    return ExitCode.FINDING if strict and made.verified.stale else ExitCode.OK


def _form(form: ResumeFormat | None, as_json: bool, output: Path | None) -> ResumeFormat:
    if form is not None:
        if as_json and form is ResumeFormat.text:
            raise UsageError("--json and --output-format text exclude each other")
        if as_json and form in TARGETS and output is None:
            raise UsageError(
                f"--json and --output-format {form.value} both go to stdout", hint="-o FILE takes the session"
            )
        return form
    suffix = output.suffix.lower() if output is not None else ""
    if suffix == ".jsonl" and output is not None:
        name = output.name
        hint = f"--output-format {'codex' if name.startswith('rollout-') else 'claude-code'} for a session file"
        raise UsageError(f"the suffix of {str(output)!r} tells no form", hint=hint)
    return ResumeFormat.json if as_json or suffix == ".json" else ResumeFormat.text


def _unknown(model: str | None, streams: Streams) -> None:
    from ctxctl.tokens.estimate import UNKNOWN, family_for

    if model is not None and family_for(model) is UNKNOWN:
        streams.note(f"note: no tokenizer is known for {model!r}: tokens are those of {UNKNOWN.encoding}")


class _Run:
    """One run of the command, once the prompt is made."""

    def __init__(
        self,
        source: Source,
        made: Boot,
        form: ResumeFormat,
        output: Path | None,
        force: bool,
        as_json: bool,
        model: str | None,
        streams: Streams,
        now: datetime,
    ) -> None:
        self.source, self.made, self.form, self.output, self.force = source, made, form, output, force
        self.as_json, self.model, self.streams, self.now = as_json, model, streams, now
        self.session: str | None = None

    def deliver(self, budget: int, settings: Any, *, audit: bool) -> None:
        """Write the prompt in the form that was asked for, then the record of it."""
        from ctxctl.cli.batch import deliver

        written: list[str] = []
        if self.form in TARGETS:
            data = self._session()
            deliver(data, self.output, self.force, self.source.files, self.streams)
            if self.output is not None:
                written.append(str(self.output))
        elif self.form is ResumeFormat.text:
            deliver(self.made.resume.text.encode(), self.output, self.force, self.source.files, self.streams)
        if audit and self.source.saved and (trail := self._record(budget, settings.cross_window)) is not None:
            written.append(trail)
        if self.form is ResumeFormat.json or (self.form in TARGETS and self.as_json):
            to = self.output if self.form is ResumeFormat.json else None
            data = self._json(budget, settings, [*([str(to)] if to is not None else []), *written])
            deliver(data, to, self.force, self.source.files, self.streams)

    def _session(self) -> bytes:
        from ctxctl.cli.session_names import session_of
        from ctxctl.formats.convert.single import begin

        begun = begin(
            self.made.resume.text,
            TARGETS[self.form],
            now=self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            session=session_of(TARGETS[self.form], self.output),
            cwd=self.source.state.environment.cwd or str(Path.cwd()),
            model=self.model,
        )
        self.session = begun.session
        return begun.data

    def _record(self, budget: int, options: Any) -> str | None:
        """The record in the audit trail. A window must not fail to start because of it."""
        from ctxctl.errors import InputError
        from ctxctl.state import audit

        made, state = self.made, self.source.state
        data = {
            "state_version": state.state_version,
            "window_id": state.window_id,
            "format": self.form.value,
            "tokens": made.resume.tokens,
            "budget": budget,
            "stale": len(made.verified.stale),
            "failed": [check.name for check in made.verified.failed],
        }
        try:
            path = audit.record(
                self.source.folder,
                options,
                "resume",
                data,
                now=self.now,
                turn=state.transcript.turn or None,
                transcript=state.transcript.id,
                mode_of=self.source.path,
            )
        except (InputError, ValueError) as error:
            self.streams.note(f"warning: this resume is not in the audit trail: {error}")
            return None
        return str(path)

    def _json(self, budget: int, settings: Any, written: list[str]) -> bytes:
        from dataclasses import asdict

        from ctxctl.reports.build.resume import resume_data
        from ctxctl.reports.json import dumps, envelope

        shown = {"cross_window": asdict(settings.cross_window), "model": self.model}
        state = self.source.state
        result = resume_data(
            state, self.made, path=self.source.path, budget=budget, written=written, session=self.session
        )
        return dumps(envelope("resume", shown, result))

    def tell(self, *, strict: bool) -> None:
        """What is not as it was, and what to do next, on stderr."""
        import sys

        from ctxctl.cli.session_names import hint_name
        from ctxctl.reports.build.resume import resume_lines

        lines = list(resume_lines(self.made))
        if self.streams.verbosity < 1:
            plain = [line for level, line in lines if level == 0]
            for line in plain[:LINES]:
                self.streams.note(line)
            if len(plain) > LINES:
                self.streams.note(f"{len(plain) - LINES} more warnings: -v shows them")
        else:
            for _, line in lines:
                self.streams.note(line)
        stale = self.made.verified.stale
        if strict and stale:
            self.streams.note("\n".join(["error: changed since the checkpoint, read again:", *map(_indented, stale)]))
        if self.session is not None and self.output is not None:
            hint_name(TARGETS[self.form], self.session, self.output, self.streams)
        elif self.form is ResumeFormat.text and self.output is None and sys.stdout is not None and sys.stdout.isatty():
            self.streams.note('hint: give it to the agent as its first message: claude "$(ctxctl resume)"')


def _indented(path: str) -> str:
    return f"  {path}"
