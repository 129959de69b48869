"""`ctxctl notes`: what the next window must know, written down as it comes up."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import ExitCode, InputError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from ctxctl.state.notes import Entry

app = typer.Typer(
    help="Decisions, finished work, lessons, issues and plans, which the next window starts from.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

LARGEST = 64 << 10
"""Characters of a note at most: every window that follows reads it."""

NotesFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="The notes file, instead of the one in --state-dir."),
]
StateDir = Annotated[
    Path | None, typer.Option("--state-dir", metavar="DIR", help="Where the notes are; by default the working folder.")
]
OfType = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only of this type; decision finds ARCH_DECISION too. Repeat it."),
]


@app.command("add", short_help="Write a note.")
def add(
    type_: Annotated[
        str, typer.Argument(metavar="TYPE", help="decision, done, lesson, issue, plan; or one of your own in CAPITALS.")
    ],
    words: Annotated[list[str], typer.Argument(metavar="TEXT...", help="The note; `-` reads it from stdin.")],
    file: NotesFile = None,
    state_dir: StateDir = None,
    config: opt.Config = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Append a note with the time to agent_notes.md, whoever else writes there meanwhile. Credentials are taken out.
    A note that is there already, word for word, is not written again.

    `ctxctl compact` tells the notes in its summary, and `ctxctl checkpoint --from-notes` in the state: give a decision
    as "WHAT because WHY", and what is done in the words in which it was planned.

    Examples:

      ctxctl notes add decision "use fetch because node has it"

      ctxctl notes add done "migrate src/billing"

      git log -1 --format=%B | ctxctl notes add done -
    """
    from ctxctl.model.edits import Note
    from ctxctl.state.notes import append_notes, read_notes

    streams = Streams(verbosity=-1 if quiet else 0)
    name = _type(type_, streams)
    text = _stdin() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise UsageError("the note is empty", hint="`ctxctl notes add decision TEXT`")
    if len(text) > LARGEST:
        raise UsageError(
            f"the note has {len(text):,} characters; at most {LARGEST:,}",
            hint="note where it is and what follows from it, not the whole text",
        )
    path = _path(file, state_dir, config)
    added = append_notes(path, [Note(name, text)], datetime.now(UTC))
    if not added:
        streams.note(f"{path}: it is noted already")
    else:
        streams.note(f"noted in {path}")
    if as_json:
        from ctxctl.reports.build.notes import notes_data
        from ctxctl.reports.json import dumps, envelope

        entries = read_notes(path)
        newest = [(n, e) for n, e in enumerate(entries, 1) if e.type.lower() == name.lower()][-1:] if added else []
        result = notes_data(str(path), newest, added, len(entries))
        streams.payload(dumps(envelope("notes", {"type": name}, {"added": added, **result})))
    return ExitCode.OK


@app.command("list", short_help="The notes, a line each.")
def list_(
    types: OfType = None,
    last: Annotated[int, typer.Option("--last", min=0, metavar="N", help="The newest N; 0 for all.")] = 0,
    file: NotesFile = None,
    state_dir: StateDir = None,
    config: opt.Config = None,
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
) -> int:
    """List the notes, oldest first, with the number that `ctxctl notes show` takes. Status 6 when there is none.

    Examples:

      ctxctl notes list

      ctxctl notes list --type decision --last 10

      ctxctl notes list --json | jq -r '.result.notes[].text'
    """
    from ctxctl.reports.build.notes import notes_report

    streams = Streams(colour=color.value, verbosity=-1 if quiet else 0)
    path = _path(file, state_dir, config)
    entries = _entries(path)
    fits = [(n, entry) for n, entry in enumerate(entries, 1) if _fits(entry, types)]
    if not fits:
        known = ", ".join(dict.fromkeys(entry.type for entry in entries))
        raise NothingFoundError("no note of this type", path=str(path), hint=f"there are: {known}")
    kept = fits[-last:] if last else fits
    if as_json:
        _print_json(streams, path, kept, len(fits), len(entries), types)
    else:
        streams.payload(streams.text([notes_report(str(path), kept, len(fits), len(entries))]))
    return ExitCode.OK


@app.command("show", short_help="Whole notes.")
def show(
    numbers: Annotated[
        list[int] | None, typer.Argument(min=1, metavar="N...", help="Their numbers in `ctxctl notes list`.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    types: OfType = None,
    file: NotesFile = None,
    state_dir: StateDir = None,
    config: opt.Config = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Print notes as a whole.

    Examples:

      ctxctl notes show 3

      ctxctl notes show --all --type lesson
    """
    from ctxctl.reports.build.notes import note_text

    if bool(numbers) == every:
        raise UsageError("give numbers, or --all", hint="`ctxctl notes list` shows the numbers")
    path = _path(file, state_dir, config)
    entries = _entries(path)
    for number in numbers or ():
        if number > len(entries):
            raise NothingFoundError(
                f"there is no note {number}", path=str(path), hint=f"there are {len(entries)}: `ctxctl notes list`"
            )
    wanted = numbers or range(1, len(entries) + 1)
    kept = [(n, entries[n - 1]) for n in wanted if _fits(entries[n - 1], types)]
    if not kept:
        raise NothingFoundError("no note of this type", path=str(path), hint="`ctxctl notes list` shows all")
    streams = Streams(verbosity=-1 if quiet else 0)
    if as_json:
        _print_json(streams, path, kept, len(kept), len(entries), types)
    else:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        streams.payload("\n".join(note_text(entry) for _, entry in kept).encode(encoding, "replace"))
    return ExitCode.OK


def _print_json(
    streams: Streams, path: Path, kept: list[tuple[int, Entry]], found: int, total: int, types: list[str] | None
) -> None:
    from ctxctl.reports.build.notes import notes_data
    from ctxctl.reports.json import envelope, pieces

    streams.payload(pieces(envelope("notes", {"types": types or []}, notes_data(str(path), kept, found, total))))


def _entries(path: Path) -> tuple[Entry, ...]:
    from ctxctl.state.notes import read_notes

    entries = read_notes(path)
    if not entries:
        missing = "there are no notes" if not path.exists() else "there are no notes in it"
        raise NothingFoundError(missing, path=str(path), hint="`ctxctl notes add decision TEXT` writes one")
    return entries


def _fits(entry: Entry, types: list[str] | None) -> bool:
    from ctxctl.state.noted import kind_of

    wanted = {word.strip().lower() for text in types or () for word in text.split(",") if word.strip()}
    return not wanted or entry.type.lower() in wanted or (kind_of(entry.type) in wanted)


def _type(text: str, streams: Streams) -> str:
    """A type that may be written. One in small letters that is none of ours is most likely misspelt."""
    from ctxctl.registry import closest
    from ctxctl.state.noted import kind_of
    from ctxctl.state.notes import TYPES

    word = text.strip()
    if word.lower() in TYPES:
        return word.lower()
    near = closest(word, list(TYPES))
    own = word.isascii() and word.replace("_", "").replace("-", "").isalnum() and word == word.upper()
    if not own or not word[:1].isalpha() or (near is not None and word.isalpha()):
        known = f"known: {', '.join(TYPES)}; a type of your own is written in capitals, such as ARCH_DECISION"
        raise UsageError(f"{text!r} is no type of a note", hint=f"did you mean {near!r}?" if near else known)
    streams.note(f"note: {word} is a type of your own; it is told as {kind_of(word)}")
    return word


def _stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("nothing is piped in", hint="`echo TEXT | ctxctl notes add decision -`")
    data = sys.stdin.buffer.read(4 * LARGEST + 1)
    return data.decode("utf-8-sig", "replace")


def _path(file: Path | None, state_dir: Path | None, config: Path | None) -> Path:
    """The notes file that the command line means. Settings are read only where they name it."""
    if file is not None:
        if state_dir is not None:
            raise UsageError("--file and --state-dir exclude each other")
        if file.is_dir():
            raise InputError("this is a folder", path=str(file), hint="--state-dir names a folder")
        return file
    from ctxctl.settings.load import load

    return (state_dir or Path()) / load(config).settings.compaction.notes_file
