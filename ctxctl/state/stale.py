"""Files whose content is no longer the one that a state was saved with."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.model.state import AgentState, FileState
from ctxctl.state.hashes import Hasher, OnDisk, resolved


@dataclass(frozen=True, slots=True)
class Compared:
    """Files of a state against those on disk, in the state's order and words. changed: of another content; missing:
    gone; unread: how many could not be compared."""

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unread: int

    @property
    def stale(self) -> tuple[str, ...]:
        """All that must be read again."""
        return (*self.changed, *self.missing)


def compare(state: AgentState, base: str, hasher: Hasher) -> Compared:
    """The files of a state as they are now. base: where relative paths start.

    What was modified or is in use is hashed: a write within the same tick of the clock leaves size and time stamp as
    they were. Of the rest only what looks changed. The most needed come first, as the hasher's budget may end.
    """
    used = {file.path for file in state.working_set}
    known = {file.path: file for file in state.environment.files}
    for one in state.working_set:
        known.setdefault(one.path, FileState(one.path, "read", sha256=one.sha256))
    changed: set[str] = set()
    missing: set[str] = set()
    unread = 0
    for file in sorted(known.values(), key=lambda file: (file.path not in used, file.role != "modified")):
        if file.sha256 is None and file.size is None:
            continue  # it was not there then, or had no content
        closely = file.path in used or file.role == "modified"
        disk = hasher.look(resolved(file.path, base), None if closely else file)
        differs = _differs(file, disk)
        if disk.kind == "missing":
            missing.add(file.path)
        elif differs:
            changed.add(file.path)
        elif differs is None:
            unread += 1
    return Compared(
        tuple(path for path in known if path in changed), tuple(path for path in known if path in missing), unread
    )


def _differs(file: FileState, disk: OnDisk) -> bool | None:
    if disk.kind == "other":
        return True  # a folder, a pipe: no longer a file
    if disk.kind != "file":
        return None
    if file.size is not None and disk.size != file.size:
        return True
    if file.sha256 is not None and disk.sha256 is not None:
        return disk.sha256 != file.sha256
    return None
