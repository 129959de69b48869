"""`ctxctl audit`: what was done to sessions, and whether the record of it is as it was written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import ExitCode, NothingFoundError, UsageError

app = typer.Typer(
    help="Show and verify the audit trail: evictions, compactions, refusals, saves, resumes and steering.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

SHOWN = 20
"""Records that the text form shows."""
PIECE = 1000
"""Records that are written at once."""


class Form(StrEnum):
    """Forms of the records."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"


Trail = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A trail, or a folder with one; by default that of --state-dir."),
]
StateDir = Annotated[
    Path | None, typer.Option("--state-dir", metavar="DIR", help="Where the trail is; by default the working folder.")
]


@app.command("show", short_help="The records, oldest first.")
def show(
    file: Trail = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only of this type; repeat it, or use commas.")
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", min=0, metavar="N", help=f"The newest N; 0 for all. By default {SHOWN} in text, else all."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From then on: 2026-11-30, 2026-11-30T14:00, or 2h, 7d ago."),
    ] = None,
    state_dir: StateDir = None,
    config: opt.Config = None,
    form: Annotated[
        Form | None,
        typer.Option("--output-format", help="Form of the output; by default text.", show_default=False),
    ] = None,
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
) -> int:
    """Show what was done, when and to what. The records are shown as they stand: `ctxctl audit verify` tells whether
    that is how they were written. A TIME without a zone is UTC. Status 6 when nothing fits.

    Examples:

      ctxctl audit show

      ctxctl audit show --type compaction,eviction --since 7d

      ctxctl audit show --output-format csv > audit.csv
    """
    from ctxctl.state.audit import TYPES
    from ctxctl.state.audit_verify import read

    if as_json and form not in (None, Form.json):
        raise UsageError(f"--json and --output-format {form.value if form else ''} exclude each other")
    chosen = Form.json if as_json else form or Form.text
    wanted = opt.words_option(types, "--type", TYPES)
    begin = _since(since)
    path = _path(file, state_dir, config)
    most = (SHOWN if chosen is Form.text else 0) if last is None else last
    fits = _Counted(
        record
        for record in read(path)
        if (not wanted or record.get("type") in wanted) and (begin is None or _at(record) >= begin)
    )
    # all of a long trail never lies in memory: only so many as were asked for do, and a text
    shown: Iterator[Mapping[str, Any]] = iter(deque(fits, maxlen=most)) if most else fits
    first = next(shown, None)
    if first is None:
        raise NothingFoundError(
            "no record fits", path=str(path), hint=f"`ctxctl audit show --last 0 {path}` shows all that there is"
        )
    settings = {"types": sorted(wanted), "since": begin.isoformat() if begin is not None else None, "last": most}
    streams = Streams(colour=color.value, verbosity=-1 if quiet else 0)
    streams.payload(_form(chosen, str(path), chain((first,), shown), fits, settings, streams))
    return ExitCode.OK


@app.command("verify", short_help="Whether a record was changed or removed.")
def verify(
    file: Trail = None,
    anchor: Annotated[
        bool, typer.Option("--anchor", help="Print only the head, SEQ:HASH, to be kept elsewhere, for --expect.")
    ] = False,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect", metavar="SEQ:HASH", help="An anchor printed earlier, which must be in the trail; repeat it."
        ),
    ] = None,
    state_dir: StateDir = None,
    config: opt.Config = None,
    as_json: opt.Json = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
) -> int:
    """Prove that no record was changed, removed, put in or moved: status 0, or 1 with the first one that was.

    Each record holds the hash of the one before. What no chain can tell by itself is that its end was cut off, or that
    all of it was written anew: print an anchor now and then, keep it where the trail's writers can't reach it, and
    give it with --expect. Status 6 when there is no trail.

    Examples:

      ctxctl audit verify

      ctxctl audit verify --anchor >> /mnt/elsewhere/anchors

      ctxctl audit verify --expect "$(tail -1 /mnt/elsewhere/anchors)"
    """
    from ctxctl.cli.io import say
    from ctxctl.reports.build.audit import TORN, told, verified_data, verified_report
    from ctxctl.state.audit_verify import verify as check

    if anchor and as_json:
        raise UsageError("--anchor prints the head alone", hint="with --json it is `result.anchor`")
    expected = _expected(expect)
    path = _path(file, state_dir, config)
    found = check(path, expected)
    streams = Streams(colour=color.value, verbosity=-1 if quiet else 0)
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        settings = {"expected": [f"{seq}:{hash_}" for seq, hash_ in expected.items()]}
        streams.payload(dumps(envelope("audit", settings, verified_data(str(path), found))))
    elif anchor:
        if found.intact:
            streams.payload(f"{found.anchor}\n".encode())
    else:
        streams.payload(streams.text([verified_report(str(path), found)]))
    for line, said in told(found):
        say(f"failed: {path}:{line}: {said}" if line is not None else f"failed: {path}: {said}")
        break
    if anchor or as_json:
        for number in found.torn:
            streams.note(f"warning: {path}:{number}: {TORN}")
    return ExitCode.OK if found.intact else ExitCode.FINDING


class _Counted:
    """Records on their way through, and how many they were so far."""

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        self._records = iter(records)
        self.number = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self

    def __next__(self) -> Mapping[str, Any]:
        record = next(self._records)
        self.number += 1
        return record


def _form(
    form: Form,
    path: str,
    records: Iterator[Mapping[str, Any]],
    found: _Counted,
    settings: dict[str, Any],
    streams: Streams,
) -> bytes | Iterator[bytes]:
    """The output. found: of which the records are the newest; its number is whole when they are through."""
    from ctxctl.reports.build.audit import audit_report
    from ctxctl.reports.json import dumps

    if form is Form.json:
        return _json(path, records, found, settings)
    if form is Form.jsonl:
        return (dumps(record) for record in records)
    if form is Form.csv:
        return _csv(records)
    kept = list(records)
    return streams.text([audit_report(path, kept, found.number)])


def _json(
    path: str, records: Iterator[Mapping[str, Any]], found: _Counted, settings: dict[str, Any]
) -> Iterator[bytes]:
    """The envelope around its records; how many there are is known, and told, behind them."""
    from ctxctl.reports.json import dumps, envelope

    shown = _Counted(records)
    before, _, after = dumps(envelope("audit", settings, {"path": path, "records": []})).rpartition(b"[]")
    mark = before + b"["
    while piece := list(islice(shown, PIECE)):
        yield mark + dumps(piece)[1:-2]
        mark = b","
    counts = dumps({"found": found.number, "shown": shown.number})
    yield b"]," + counts[1:-2] + after


def _csv(records: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    from ctxctl.reports.build.audit import COLUMNS, csv_rows
    from ctxctl.reports.csv import render

    head: tuple[Any, ...] = COLUMNS
    while piece := list(islice(records, PIECE)):
        rows = csv_rows(piece)
        yield render(head or next(rows), rows).encode()
        head = ()


def _path(file: Path | None, state_dir: Path | None, config: Path | None) -> Path:
    """The trail that the command line means. Settings are read only where they name it."""
    if file is not None and state_dir is not None:
        raise UsageError("FILE and --state-dir exclude each other")
    if file is not None and not file.is_dir():
        return file
    from ctxctl.settings.load import load

    return (file or state_dir or Path()) / load(config).settings.cross_window.audit_file


def _expected(texts: list[str] | None) -> dict[int, str]:
    from ctxctl.state.audit_verify import anchor_of

    found: dict[int, str] = {}
    for text in texts or ():
        try:
            seq, hash_ = anchor_of(text)
        except ValueError as error:
            raise UsageError(f"--expect: {error}") from None
        if found.setdefault(seq, hash_) != hash_:
            raise UsageError(f"--expect: two hashes for the record {seq}", hint="one of them is of another trail")
    return found


_UNITS: dict[str, Callable[[int], timedelta]] = {
    "m": lambda n: timedelta(minutes=n),
    "h": lambda n: timedelta(hours=n),
    "d": lambda n: timedelta(days=n),
}


def _since(text: str | None) -> datetime | None:
    """A point in time: ISO 8601, or how long ago."""
    if text is None:
        return None
    word = text.strip()
    try:
        if word[-1:] in _UNITS and word[:-1].isascii() and word[:-1].isdigit():
            return datetime.now(UTC) - _UNITS[word[-1]](int(word[:-1]))
        return _zoned(datetime.fromisoformat(word))
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since: {text!r} is no time", hint="write 2026-11-30, 2026-11-30T14:00:00Z, or 30m, 2h, 7d ago"
        ) from None


def _zoned(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _at(record: Mapping[str, Any]) -> datetime:
    """When a record was written; one without a time is as old as can be."""
    try:
        return _zoned(datetime.fromisoformat(str(record.get("time"))))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
