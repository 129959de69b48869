"""Following a session while its agent writes it: each line is read once, nothing is read while nothing changes."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctxctl.errors import InputError, NothingFoundError
from ctxctl.formats.base import FORMATS, Format
from ctxctl.formats.growing import Growing
from ctxctl.formats.read import scan
from ctxctl.formats.tail import format_of, plain_size
from ctxctl.health.session import Examining
from ctxctl.health.view import View, view_of
from ctxctl.model.block import MAIN, Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage, merge_copies

if TYPE_CHECKING:
    from ctxctl.tokens.estimate import Family

LARGE = 500_000_000
"""Bytes of a file from which on its usage alone is read: blocks would take seconds."""
REST = 20
"""A reading is followed by a rest of so many times what it took, so that a busy session costs 5 % of a processor."""
LONGEST_REST = 30.0
HELPERS_EVERY = 5
"""Sub-agents' files are looked for at each so many polls where the session's own file did not change."""
KEPT_TURNS = 3

Signature = tuple[int, int, int, int]


class Follower:
    """Follows one file. Ask it with `poll` as often as you like: a poll that finds nothing new is one stat.

    What was appended is read on; another file at the path, a shorter or a changed one is read anew, and so is, after a
    rest, each change of a format that is one document or packed. clock: of rests, in seconds.
    """

    def __init__(
        self,
        path: str,
        table: ModelTable,
        options: Examining | None = None,
        *,
        large: int = LARGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.reads = 0
        self._table, self._options, self._large, self._clock = table, options or Examining(), large, clock
        self._chosen: type[Format] | None = None
        self._growing: Growing | None = None
        self._helpers: dict[str, tuple[Signature, Growing | None, Transcript]] = {}
        self._taken = _Taken()
        self._seen: Signature | None = None
        self._view: View | None = None
        self._polls = 0
        self._rest_until = 0.0

    def poll(self, *, at_once: bool = False) -> View | None:
        """The session as it is now, None when that is what it was. at_once: without a rest.

        Raises InputError when it was never readable: of a format that is not known, no file, a folder.
        """
        self._polls += 1
        signature = _signature(self.path)
        if signature is None:
            return self._gone()
        helpers_changed = self._polls % HELPERS_EVERY == 1 and self._helpers_changed()
        if signature == self._seen and not helpers_changed:
            return None
        start = self._clock()
        if start < self._rest_until and not at_once:
            return None
        first = self._seen is None
        try:
            view = self._read(signature)
        except NothingFoundError as error:
            view = View(self.path, "waiting", error.message)
        except InputError as error:
            if self._view is None:
                raise
            view = replace(self._view, state="unreadable", note=error.message)
        self._seen = signature
        if not first:
            self._rest_until = self._clock() + min(LONGEST_REST, REST * (self._clock() - start))
        return self._shown(replace(view, changed=signature[3] / 1e9))

    def _shown(self, view: View) -> View | None:
        if view == self._view:
            return None
        self._view = view
        return view

    def _gone(self) -> View | None:
        if self._view is None:
            raise InputError("no such file", path=self.path)
        self._seen = None
        return self._shown(replace(self._view, state="missing", note="the file is gone; waiting for it"))

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read(self, signature: Signature) -> View:
        self.reads += 1
        if not signature[2]:
            self._growing = None
            raise NothingFoundError("the file is empty", path=self.path)
        if self._growing is not None and not self._growing.read_on():
            self._growing = None
        if self._growing is None:
            self._begin()
        if self._growing is not None:
            transcript, partial = self._growing.so_far(), self._growing.usage_only
        else:
            transcript, partial = self._whole()
        found = [(transcript.usage, transcript.call_keys), *self._helper_calls()]
        calls = [call for part in merge_copies(found)[0] for call in part] if len(found) > 1 else transcript.usage
        waiting = None if partial else self._taken.waiting(transcript)
        view = view_of(transcript, calls, self._table, self._options, waiting)
        return replace(view, partial=partial, last_tool=self._taken.tool)

    def _begin(self) -> None:
        """Read the file from its beginning, so that it can be read on where its agent appends to it."""
        self._taken = _Taken()
        given = self._options.analysis.format_name
        size = plain_size(self.path)
        if given is not None:
            self._chosen = FORMATS.get(given)
        else:
            self._chosen = format_of(self.path) if size is not None else None
        if self._chosen is None or size is None or not self._chosen.appends:
            return
        growing = Growing(self.path, self._taken.emit, self._chosen, usage_only=size >= self._large)
        if growing.read_on() and growing.reader.records:
            self._growing = growing
            return
        raise NothingFoundError("no whole line yet", path=self.path)

    def _whole(self) -> tuple[Transcript, bool]:
        self._taken = _Taken()
        readers: list[Format] = []
        transcript = scan(
            self.path,
            self._taken.emit,
            format_name=self._options.analysis.format_name,
            companions=False,
            on_reader=readers.append,
        )
        self._chosen = type(readers[0])
        return transcript, False

    # -- sub-agents ------------------------------------------------------------------------------------------------

    def _helper_paths(self) -> Sequence[str]:
        if self._chosen is None or not self._options.analysis.companions:
            return ()
        return [str(path) for path in self._chosen.companions(Path(self.path))]

    def _helpers_changed(self) -> bool:
        now = {path: _signature(path) for path in self._helper_paths()}
        return now != {path: entry[0] for path, entry in self._helpers.items()}

    def _helper_calls(self) -> list[tuple[tuple[Usage, ...], Sequence[int]]]:
        """Calls of the sub-agents, with keys that tell copies."""
        now = {path: found for path in self._helper_paths() if (found := _signature(path)) is not None}
        self._helpers = {path: entry for path, entry in self._helpers.items() if path in now}
        for path, signature in now.items():
            entry = self._helpers.get(path)
            if entry is None or entry[0] != signature:
                growing, transcript = self._helper(path, entry[1] if entry is not None else None)
                self._helpers[path] = (signature, growing, transcript)
        return [(entry[2].usage, entry[2].call_keys) for _, entry in sorted(self._helpers.items())]

    def _helper(self, path: str, growing: Growing | None) -> tuple[Growing | None, Transcript]:
        assert self._chosen is not None
        try:
            if plain_size(path) is None:
                return None, scan(path, _ignore, format_name=self._chosen.name, companions=False, usage_only=True)
            if growing is None or not growing.read_on():
                growing = Growing(path, _ignore, self._chosen, usage_only=True, helper=True)
                growing.read_on()
            return growing, growing.so_far()
        except (InputError, NothingFoundError):  # its calls count once it can be read
            return None, Transcript(None, self._chosen.name, path)


class _Taken:
    """What is kept of the blocks: those of the newest turns, and the newest tool."""

    def __init__(self) -> None:
        self.tool: str | None = None
        self._number = self._turn = 0
        self._kept: dict[int, Block] = {}

    def emit(self, block: Block) -> None:
        number = self._number
        self._number = number + 1
        if block.thread != MAIN:
            return
        if block.kind == "tool_call":
            self.tool = block.tool_name
        if block.turn > self._turn:
            self._turn = block.turn
            self._kept = {n: b for n, b in self._kept.items() if b.turn > block.turn - KEPT_TURNS}
        self._kept[number] = block

    def waiting(self, transcript: Transcript) -> int | None:
        """Tokens behind the answer of the newest call whose usage is known, estimated by the model's family."""
        from ctxctl.pressure.turns import newest_call

        newest = newest_call(transcript)
        if newest is None:
            return None
        behind = {n: b for n, b in self._kept.items() if b.turn > newest.turn and b.text}
        if not behind:
            return 0
        live = set(transcript.live)
        texts = [(b.text, b.kind) for n, b in behind.items() if n in live]
        if not texts:
            return 0
        from ctxctl.tokens import counter_for, family_for

        family: Family = family_for(transcript.model)
        count = counter_for(transcript.model, family.encoding)
        return sum(count(text, kind) for text, kind in texts)


def _signature(path: str) -> Signature | None:
    """What changes when a file does; None where there is no regular one."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):  # opening a named pipe would wait for ever
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _ignore(block: Block) -> None:
    return
