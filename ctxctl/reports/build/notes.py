"""Notes for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxctl.model.text import shortened
from ctxctl.reports.build.recall import printable
from ctxctl.reports.document import Column, Report, Table
from ctxctl.reports.plot import plural
from ctxctl.state.notes import TYPES, Entry

LINE = 300
"""Characters of a note's first line that the list shows."""


def notes_report(path: str, notes: Sequence[tuple[int, Entry]], found: int, total: int) -> Report:
    """Notes with their numbers, oldest first. found: how many fit, of which these are the newest; total: in the
    file."""
    rows = tuple((str(number), entry.at, printable(entry.type), _line(entry.text)) for number, entry in notes)
    columns = (Column("n", "right"), Column("time"), Column("type"), Column("note", flexible=True, prose=True))
    note = f"the newest {len(notes):,} of {found:,}; --last N shows more" if found > len(notes) else ""
    return Report("notes", plural(total, "note"), path, tables=(Table("Notes", columns, rows, note),))


def notes_data(path: str, notes: Sequence[tuple[int, Entry]], found: int, total: int) -> dict[str, Any]:
    """The `result` of `notes list` and `notes show`."""
    return {
        "path": path,
        "total": total,
        "found": found,
        "shown": len(notes),
        "notes": [
            {"number": number, "time": entry.at, "type": entry.type, "text": entry.text, "line": entry.line}
            for number, entry in notes
        ],
    }


def note_text(entry: Entry) -> str:
    """A whole note, in the form of the file, without signs that a terminal would act on."""
    type_ = entry.type.upper() if entry.type in TYPES else entry.type
    return printable(f"## [{entry.at}] {type_}\n\n{entry.text}\n")


def _line(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    line = shortened(" ".join(printable(first).split()), LINE)
    return f"{line} ..." if rest.strip() or len(line) < len(" ".join(first.split())) else line
