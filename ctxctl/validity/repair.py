"""Writing the nearest transcript that is valid: lines first, then the chain of records, then the messages.

Each round reads anew what the last one wrote, so that what is reported as repaired has been checked, and a second
repair finds nothing to do.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.formats.store import LineStore
from ctxctl.validity.check import Examined, examine
from ctxctl.validity.findings import Checked, Finding, Repair
from ctxctl.validity.lines import clean_line
from ctxctl.validity.mend_claude import mend_chain
from ctxctl.validity.mend_claude import mend_messages as mend_claude
from ctxctl.validity.mend_messages import Change, Stage, mend_lines, mend_lists

ROUNDS = 12
"""A chain of faults each of which shows only when the one before is mended is short; more is a bug."""

ACTIONS = {
    "damaged_line": "what could not be read was taken out",
    "not_an_object": "the value was taken out",
    "glued_records": "each record got a line of its own",
    "nul_bytes": "the zero bytes were taken out",
    "lone_surrogate": "replaced by U+FFFD",
    "invalid_utf8": "replaced by U+FFFD",
    "lenient_json": "written as strict JSON, what is no number as null",
    "torn_tail": "the half-written line was taken out",
    "byte_order_mark": "taken out",
    "carriage_returns": "lines now end with LF",
    "no_final_newline": "the line end was added",
    "blank_line": "taken out",
}


@dataclass(frozen=True, slots=True)
class Repaired:
    """before, after: what was found in the input and in the output; repairs: what was done, by line of the input.
    path: where the output lies, as long as the context lasts; changed: the input changed while it was read."""

    before: Checked
    after: Checked
    repairs: tuple[Repair, ...]
    path: str
    changed: bool


@contextmanager
def repair(path: str, *, format_name: str | None = None) -> Iterator[Repaired]:
    """A repaired copy of the transcript at a path, in a temporary file that lasts as long as the context; equal to the
    input when there was nothing to do.

    Raises what `check` raises, and InputError when nothing of it would be left.
    """
    with tempfile.TemporaryDirectory(prefix="ctxctl-") as folder:
        yield _Rounds(path, format_name, folder).go()


class _Rounds:
    def __init__(self, path: str, format_name: str | None, folder: str) -> None:
        self.path = self.current = path
        self.format_name = format_name
        self.folder = folder
        self.origin: array[int] | None = None
        self.repairs: list[Repair] = []
        self.changed = False
        self._more = True
        self._next: array[int] = array("q")

    def go(self) -> Repaired:
        before = examined = self._round(0)
        for number in range(1, ROUNDS):
            if not self._more:
                break
            try:
                examined = self._round(number)
            except (InputError, NothingFoundError):
                raise InputError("a repair would leave nothing of it", path=self.path) from None
        after = replace(examined, path=self.path)
        done = sorted(self.repairs, key=lambda r: (r.line if r.line is not None else 1 << 62, r.number or 0))
        return Repaired(before, after, tuple(done), self.current, self.changed)

    def _round(self, number: int) -> Checked:
        """Check the current file and write the next one; what was found in the current one. The last round writes a
        file that equals the one it read."""
        with LineStore(self.current) as store:
            examined = examine(self.current, store, format_name=self.format_name)
            self.format_name = examined.transcript.format
            stage = _stage(examined, store) or (lambda line, data: (data,), [])
            target = os.path.join(self.folder, f"{number}{Path(self.path).suffix or '.jsonl'}")
            self._more = not self._write(store, stage[0], target)
            self.changed = self.changed or store.changed
        if self._more:
            self.repairs += [replace(r, line=self._original(r.line)) for r in stage[1]]
        self.origin, earlier = self._next, self.current
        self.current = target
        if earlier != self.path:
            os.unlink(earlier)
        return examined.checked

    def _write(self, store: LineStore, change: Change, target: str) -> bool:
        """Write the next file; whether it equals the one before."""
        origins = array("q", [0])
        same = True
        with open(target, "wb") as file:
            for line in range(1, len(store) + 1):
                data = store.get(line)
                pieces = change(line, data)
                same = same and len(pieces) == 1 and pieces[0] == data
                for piece in pieces:
                    file.write(piece)
                    origins.append(line if self.origin is None else self.origin[line])
        self._next = origins
        return same

    def _original(self, line: int | None) -> int | None:
        """The line of the input that a line of the current file comes from."""
        return line if line is None or self.origin is None else self.origin[line]


def _stage(examined: Examined, store: LineStore) -> Stage | None:
    """The next thing to do about a transcript: all faults of the first kind that has any. None when all is well."""
    wrong = [f for f in examined.checked.findings if f.code in ACTIONS]
    if wrong:
        document = examined.document and len(store) == 1
        return (lambda line, data: clean_line(data, document=document)), [_repair(f) for f in wrong]
    views, name = examined.views, examined.transcript.format
    if examined.chain is not None:
        return mend_chain(examined.chain, store) or mend_claude(views[0], store)
    if name in ("codex", "openai-chat-message"):
        return mend_lines(views[0], store, codex=name == "codex")
    return mend_lists(examined.transcript, views, store)


def _repair(finding: Finding) -> Repair:
    return Repair(finding.code, finding.line, ACTIONS[finding.code], finding.id, finding.number)
