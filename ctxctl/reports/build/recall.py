"""What a recall store gives back: a list for people, texts with a heading each, and the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxctl.model.text import clean
from ctxctl.reports.document import Column, Report, Table
from ctxctl.reports.plot import plural
from ctxctl.state.files import sanitized
from ctxctl.state.recall_file import Run
from ctxctl.state.recall_reader import Entry


def recall_report(store: str, runs: Sequence[Run], entries: Sequence[Entry], found: int) -> Report:
    """What lies in a store: its compactions, and blocks of them. found: how many there are, of which entries are the
    newest."""
    compactions = Table(
        "Compactions",
        (
            Column("recall id"),
            Column("strategy"),
            Column("original", flexible=True),
            Column("bytes", "right"),
            Column("output", flexible=True),
        ),
        tuple((run.id, run.strategy, run.source, f"{run.size:,}", run.output) for run in runs),
        "`ctxctl recall --undo` brings an original back, byte for byte",
    )
    blocks = Table(
        "What left the window",
        (
            Column("id"),
            Column("line", "right"),
            Column("turn", "right"),
            Column("kind"),
            Column("tool"),
            Column("target", flexible=True),
            Column("tokens", "right"),
            Column("why", flexible=True),
            *((Column("recall id"),) if len(runs) > 1 else ()),
        ),
        tuple(_row(entry, len(runs) > 1) for entry in entries),
        f"{len(entries):,} of {found:,}, newest first; --limit N shows more" if found > len(entries) else "",
    )
    title = f"{plural(found, 'block')} in {plural(len(runs), 'compaction')}"
    return Report("recall", title, store, tables=(compactions, blocks))


def recall_data(
    store: str, runs: Sequence[Run], entries: Sequence[Entry], found: int, texts: Sequence[str] | None, raw: bool
) -> dict[str, Any]:
    """The `result` of the command. texts: of the entries, None where only a list was asked for."""
    blocks = []
    for number, entry in enumerate(entries):
        row: dict[str, Any] = {
            "recall_id": entry.run,
            "block": entry.id,
            "call_id": entry.call_id,
            "line": entry.line,
            "kind": entry.kind,
            "tool": entry.tool,
            "target": entry.target if raw else _safe(entry.target),
            "turn": entry.turn,
            "tokens": entry.tokens,
            "reason": entry.reason,
        }
        if texts is not None:
            row["text"] = texts[number]
        blocks.append(row)
    return {
        "store": store,
        "runs": [_run_data(run) for run in runs],
        "found": found,
        "shown": len(entries),
        "raw": raw,
        "blocks": blocks,
    }


def recall_text(entry: Entry, text: str) -> str:
    """A block for people: a heading, then what it held, without signs that a terminal would act on."""
    what = " ".join(part for part in (entry.tool or entry.kind, _one_line(entry.target)) if part)
    heading = f"{entry.id}  {what}  line {entry.line}, turn {entry.turn}, {entry.tokens:,} tokens"
    heading += f"  {entry.reason}" if entry.reason else ""
    return f"{heading}  [{entry.run}]\n{printable(text)}\n"


def printable(text: str) -> str:
    """A text without control characters and lone surrogates."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in clean(text))


def _row(entry: Entry, several: bool) -> tuple[str, ...]:
    return (
        entry.id,
        f"{entry.line:,}",
        str(entry.turn),
        entry.kind,
        entry.tool or "-",
        _one_line(entry.target) or "-",
        f"{entry.tokens:,}",
        entry.reason,
        *((entry.run,) if several else ()),
    )


def _run_data(run: Run) -> dict[str, Any]:
    return {
        "recall_id": run.id,
        "time": run.at,
        "source": run.source,
        "format": run.format,
        "transcript": run.transcript_id,
        "strategy": run.strategy,
        "bytes": run.size,
        "sha256": run.sha256,
        "output": run.output,
        "output_sha256": run.output_sha256,
    }


def _safe(target: str | None) -> str | None:
    return None if target is None else sanitized(target)


def _one_line(target: str | None) -> str:
    return " ".join(printable(_safe(target) or "").split())
