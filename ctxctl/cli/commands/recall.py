"""`ctxctl recall`: bring back what a compaction took out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.io import Streams
from ctxctl.errors import ExitCode, NothingFoundError, UsageError

WANTED, UNDO = "What is wanted", "The whole original"


def recall(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="A compacted transcript, or its recall store; by default the only store in this folder.",
            show_default=False,
        ),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="A block (12.0) or a call.", rich_help_panel=WANTED)
    ] = None,
    line: Annotated[
        str | None, typer.Option("--line", metavar="N[-M]", help="Lines of the original.", rich_help_panel=WANTED)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="FILE",
            help="A file that a call was about: its name or a pattern.",
            rich_help_panel=WANTED,
        ),
    ] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="Calls and results of a tool.", rich_help_panel=WANTED)
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="WORDS",
            help='Blocks that hold all words; "quoted ones" in a row, beginn* for a beginning.',
            rich_help_panel=WANTED,
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RECALL_ID", help="Of this compaction.", rich_help_panel=WANTED)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only what there is, without the texts.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Texts as they were, with credentials; no headings.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Show at most N blocks; 0 for all.")] = 20,
    undo: Annotated[
        bool, typer.Option("--undo", help="Write the original, byte for byte, to -o FILE.", rich_help_panel=UNDO)
    ] = False,
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="With --undo: put it over the compacted transcript.", rich_help_panel=UNDO),
    ] = False,
    as_json: opt.Json = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.", show_default=False)
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing output file, or a transcript that was changed since."),
    ] = False,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Bring back what a compaction took out of the window: by block, line, file, tool or text; or the whole original.

    Credentials are taken out of what is shown; --raw gives texts as they were. Status 6 when nothing fits.

    Examples:

      ctxctl recall small.jsonl

      ctxctl recall small.jsonl --id 12.0

      ctxctl recall small.jsonl --path src/app.ts --text 'retry "rate limit"'

      ctxctl recall small.jsonl --undo -o original.jsonl
    """
    from ctxctl.cli import recalling
    from ctxctl.state.recall_reader import Query, RecallReader

    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    query = Query(_given(id_, "--id"), _lines(line), _given(file, "--path"), _given(tool, "--tool"), text, run)
    if in_place and not undo:
        raise UsageError("--in-place goes with --undo", hint="`ctxctl recall --undo --in-place PATH`")
    if undo and (list_ or raw or query != Query(run=run)):
        raise UsageError(
            "--undo brings back the whole original, not single blocks", hint="leave out --undo, or all but --run"
        )
    place = recalling.place_of(path)
    with RecallReader(place.store) as reader:
        if undo:
            result = recalling.undo(reader, place, run, output, in_place, force)
            _tell(result, streams)
            if as_json:
                from ctxctl.reports.json import dumps, envelope

                streams.payload(dumps(envelope("recall", {"undo": True, "in_place": in_place}, result)))
            return ExitCode.OK
        found = reader.find(query)
        plain = list_ or query in (Query(), Query(run=run))  # without a question: what there is
        if not found and not (plain and query == Query()):
            raise _nothing(place, query)
        shown = found[:limit] if limit else found
        data = _payload(reader, query, shown, len(found), plain, raw, as_json, streams, output is not None)
        if not plain and not as_json and len(shown) < len(found):
            streams.note(f"{len(shown):,} of {len(found):,} blocks, newest first; --limit 0 shows all")
        _deliver(data, output, force, str(place.store), streams)
    return ExitCode.OK


def _payload(
    reader: Any,
    query: Any,
    shown: Any,
    found: int,
    plain: bool,
    raw: bool,
    as_json: bool,
    streams: Streams,
    to_file: bool,
) -> bytes | Iterator[bytes]:
    from dataclasses import asdict

    from ctxctl.reports.build.recall import recall_data, recall_report, recall_text
    from ctxctl.state.files import sanitized

    def text(entry: Any) -> str:
        found = str(reader.text(entry))
        return found if raw else sanitized(found, tool_output=entry.kind == "tool_result")

    runs = [r for r in reader.runs() if query.run in (None, r.id)]
    store = str(reader.path)
    if as_json:
        from ctxctl.reports.json import envelope, pieces

        texts = None if plain else [text(entry) for entry in shown]
        return pieces(envelope("recall", asdict(query), recall_data(store, runs, shown, found, texts, raw)))
    if plain:
        return streams.text([recall_report(store, runs, shown, found)], to_file=to_file)
    if raw:
        # UTF-8 has no form for a lone surrogate: that alone is not as it was
        return (text(entry).encode("utf-8", "replace") + b"\n" * (len(shown) > 1) for entry in shown)
    encoding = "utf-8" if to_file else getattr(sys.stdout, "encoding", None) or "utf-8"
    return (("\n" * (n > 0) + recall_text(e, text(e))).encode(encoding, "replace") for n, e in enumerate(shown))


def _deliver(data: bytes | Iterator[bytes], output: Path | None, force: bool, store: str, streams: Streams) -> None:
    from ctxctl.cli.batch import deliver
    from ctxctl.cli.inputs import is_same

    if output is not None and output.exists() and is_same(store, output):
        raise UsageError(f"{output} is the store", hint="name another file")
    deliver(data, output, force, [store], streams)


def _tell(result: dict[str, Any], streams: Streams) -> None:
    if not result["written"]:
        streams.note(f"{result['output']} is the original already")
        return
    if result["changed_since"]:
        streams.note("note: the compacted transcript was changed since; the original does not hold what came then")
    streams.note(f"wrote {result['output']}: {result['bytes']:,} bytes, as before the compaction {result['recall_id']}")
    if result["backup"]:
        streams.note(f"what was there is in {result['backup']}")


def _nothing(place: Any, query: Any) -> NothingFoundError:
    options = {"id": query.id, "line": query.lines, "path": query.path, "tool": query.tool, "text": query.text}
    given = ", ".join(f"--{name}" for name, value in options.items() if value is not None)
    return NothingFoundError(
        f"no block fits {given}" if given else "no block in it",
        path=str(place.store),
        hint=f"`ctxctl recall {place.transcript or place.store} --list --limit 0` shows all that there is",
    )


def _given(text: str | None, option: str) -> str | None:
    if text is not None and not text.strip():
        raise UsageError(f"{option} is empty", hint="leave it out to see all")
    return text


def _lines(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise UsageError(f"--line: {text!r} is no line", hint="write 41, or 41-60")
    return first, last
