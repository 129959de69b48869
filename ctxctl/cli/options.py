"""Options that commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ctxctl.errors import UsageError
from ctxctl.registry import closest
from ctxctl.settings.sizes import share, size


class Colour(StrEnum):
    """When to colour."""

    auto = "auto"
    always = "always"
    never = "never"


class OutputFormat(StrEnum):
    """Forms of a report."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    markdown = "markdown"


class CheckFormat(StrEnum):
    """Forms of a report that is held against limits: those of `OutputFormat`, and those that CI and monitoring read."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    markdown = "markdown"
    prometheus = "prometheus"
    github = "github"
    sarif = "sarif"
    junit = "junit"


CHECK_SUFFIXES = {".prom": CheckFormat.prometheus, ".sarif": CheckFormat.sarif, ".xml": CheckFormat.junit}
SUFFIXES = {
    ".json": OutputFormat.json,
    ".jsonl": OutputFormat.jsonl,
    ".csv": OutputFormat.csv,
    ".md": OutputFormat.markdown,
    ".markdown": OutputFormat.markdown,
    ".txt": OutputFormat.text,
}

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...", help="Files, folders or globs; `-` or nothing with a pipe reads stdin.", show_default=False
    ),
]
From = Annotated[
    str | None, typer.Option("--from", metavar="FORMAT", help="Force the input's format (see `ctxctl list formats`).")
]
Window = Annotated[str | None, typer.Option("--window", metavar="TOKENS", help="Context window, such as 200k or 1m.")]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file instead of the project's .ctxctl.yaml.")
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", metavar="DIR", help="Where the state lies; by default the working folder.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --output-format json.")]
Form = Annotated[
    OutputFormat | None,
    typer.Option("--output-format", help="Form of the output; by default text.", show_default=False),
]
CheckForm = Annotated[
    CheckFormat | None,
    typer.Option("--output-format", help="Form of the output; by default text.", show_default=False),
]
JudgedForm = Annotated[
    CheckFormat | None,
    typer.Option(
        "--output-format",
        metavar="text|json|jsonl|csv|markdown|github|sarif|junit",
        help="Form of the output; by default text.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write to a file; its suffix tells the form.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
ColourOption = Annotated[Colour, typer.Option("--color", help="When to colour; NO_COLOR is honoured.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No notes and no progress on stderr.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also show what is only informative.")]


def form_of(form: OutputFormat | None, as_json: bool, output: Path | None, more: Iterable[str] = ()) -> OutputFormat:
    """The form that was asked for: the option, then --json, then the suffix of the output file, then text. more:
    suffixes that the command takes besides."""
    if as_json and form not in (None, OutputFormat.json, OutputFormat.jsonl):
        raise UsageError(f"--json and --output-format {form.value if form else ''} exclude each other")
    if form is not None:
        return form
    if as_json:
        return OutputFormat.json
    if output is not None and str(output) != "-":
        found = SUFFIXES.get(output.suffix.lower())
        if found is None:
            raise UsageError(
                f"the suffix of {str(output)!r} tells no form",
                hint=f"add --output-format, or use one of {', '.join((*SUFFIXES, *more))}",
            )
        return found
    return OutputFormat.text


def check_form_of(form: CheckFormat | None, as_json: bool, output: Path | None) -> CheckFormat:
    """`form_of` for commands that also have the forms of CI and monitoring."""
    if form is None and output is not None and not as_json:
        form = CHECK_SUFFIXES.get(output.suffix.lower())
    plain = None if form is None or form.value not in OutputFormat.__members__ else OutputFormat(form.value)
    if form is not None and plain is None:
        if as_json:
            raise UsageError(f"--json and --output-format {form.value} exclude each other")
        return form
    return CheckFormat(form_of(plain, as_json, output, CHECK_SUFFIXES).value)


def words_option(texts: list[str] | None, option: str, known: tuple[str, ...]) -> set[str]:
    """Words of a list, given by repeating an option, with commas, or both."""
    words = {word.strip().lower() for text in texts or () for word in text.split(",") if word.strip()}
    if texts and not words:
        raise UsageError(f"{option} names nothing", hint=f"known: {', '.join(known)}")
    for word in sorted(words - set(known)):
        near = closest(word, list(known))
        raise UsageError(
            f"{option}: unknown {word!r}", hint=f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
        )
    return words


def tokens_option(text: str | None, option: str) -> int | None:
    """A number of tokens given on the command line."""
    if text is None:
        return None
    try:
        return size(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def share_option(text: str | None, option: str) -> float | None:
    """A share given on the command line."""
    if text is None:
        return None
    try:
        return share(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
