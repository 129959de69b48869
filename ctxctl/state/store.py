"""The state's file and who may write it: one at a time, whole or not at all (requirement S3)."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ctxctl.errors import InputError, NothingFoundError, RefusedError
from ctxctl.model.state import AgentState
from ctxctl.state import record
from ctxctl.state.files import drafted_whole, locked, replace_whole
from ctxctl.state.progress import TITLE, render


@dataclass(slots=True)
class Update:
    """A state while nobody else may change it. state: as it stands in the file, None where there is none; discarded:
    where a file that is no state was moved to."""

    store: StateStore
    state: AgentState | None
    discarded: Path | None = None

    def save(self, state: AgentState, *, mode_of: str | None = None) -> None:
        """Write the state and the progress file. New files are no wider than `mode_of`. Raises InputError when one
        can't be written."""
        pieces = {
            self.store.path: record.dumps(state),
            self.store.progress: render(state).encode("utf-8", "replace"),
        }
        # both are written before one takes its place: a full disk or a folder in the way leaves both as they were
        with ExitStack() as stack:
            drafts = [stack.enter_context(drafted_whole(path, data, mode_of=mode_of)) for path, data in pieces.items()]
            for put in drafts:
                put()
        self.state = state

    def set_aside(self) -> Path | None:
        """Keep the state of an earlier task beside the new one, under the name of its last window."""
        if self.state is None:
            return None
        path = self.store.path
        copy = _free(path, f".window-{self.state.window_id}")
        replace_whole(copy, path.read_bytes(), mode_of=str(path))
        return copy


@dataclass(frozen=True, slots=True)
class StateStore:
    """path: the state for machines; progress: that for people; wait: seconds for another writer to finish."""

    path: Path
    progress: Path
    wait: float = 10.0

    def load(self) -> AgentState | None:
        """The state as it stands, None where there is none. Raises InputError for one that can't be read."""
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise InputError("no regular file: it would be waited for, and then replaced", path=str(self.path))
        try:
            return record.load(self.path)
        except NothingFoundError:
            return None

    @contextmanager
    def updating(self, *, if_version: int | None = None, discard: bool = False) -> Iterator[Update]:
        """Read the state and keep every other writer out until the block ends.

        if_version: what its version must be, 0 for no state. discard: a file that is no state gives way, and is kept
        under another name. Raises RefusedError when the version is another or when another writer does not finish in
        time, InputError for a file that is no state, or for another's in the place of the progress file.
        """
        with locked(_home(self.path), wait=self.wait):
            self._sweep()
            discarded = None
            try:
                state = self.load()
            except InputError:
                if not discard or not self.path.is_file():
                    raise
                state, discarded = None, _free(self.path, ".bak")
                replace_whole(discarded, self.path.read_bytes(), mode_of=str(self.path))
            self.expect(state, if_version)
            self._own_progress()
            yield Update(self, state, discarded)

    def expect(self, state: AgentState | None, version: int | None) -> None:
        """Raise RefusedError for a state of another version than the one given; 0 stands for no state."""
        found = state.state_version if state is not None else 0
        if version is not None and version != found:
            raise RefusedError(
                f"the state has version {found}, not {version}"
                + (": somebody else wrote it since" if found > version else ""),
                path=str(self.path),
                hint=f"look at what it holds, then --if-version {found}",
            )

    def _own_progress(self) -> None:
        """Raise InputError for a file in the place of the progress file that somebody else wrote: a name like this one
        is taken easily, and a link of a repository from elsewhere may lead anywhere."""
        if not self.progress.is_file():  # a pipe would wait for a writer
            return
        with suppress(OSError), open(self.progress, "rb") as file:
            head = file.read(len(TITLE))
            if head.strip() and head != TITLE.encode():
                raise InputError(
                    "no progress file of ctxctl: it would be replaced",
                    path=str(self.progress),
                    hint="move it away, or cross_window.progress_file in the settings gives another name",
                )

    def _sweep(self) -> None:
        """Take away what a writer left that was killed: we hold the lock, so that nobody is writing."""
        for path in (self.path, self.progress):
            with suppress(OSError):
                for left in _home(path).glob(f".{glob.escape(Path(os.path.realpath(path)).name[:80])}.*.tmp"):
                    with suppress(OSError):
                        left.unlink()


def _home(path: Path) -> Path:
    """The folder in which a file is written: links to it from several folders lead to one lock."""
    found = Path(os.path.realpath(path)).parent
    return found if found.is_dir() else path.parent


def _free(path: Path, mark: str) -> Path:
    """A name beside a file that nothing has yet."""
    number = 0
    while True:
        found = path.with_name(f"{path.stem}{mark}{f'-{number}' if number else ''}{path.suffix}")
        if not os.path.lexists(found):
            return found
        number += 1
