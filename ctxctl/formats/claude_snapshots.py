"""Lines of one response that repeat it instead of going on with its next block."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.formats.content import Piece


class Seen(NamedTuple):
    """A block of the response that was emitted: its number and what it holds."""

    number: int
    part: Piece


class Snapshots:
    """Follows the newest response of each thread.

    Claude Code writes one block per line; some writers repeat the whole response on each line, as far as it has come.
    A line whose blocks repeat or lengthen all blocks so far, one by one, is such a snapshot and supersedes them; so
    does a call that is written again under its id. Everything else is the next block.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, list[Seen], dict[str, int]]] = {}
        self.superseded: set[int] = set()

    def close(self, thread: str) -> None:
        """No later line goes on with the thread's newest response: a copy of it is a response of its own."""
        self._newest.pop(thread, None)

    def fresh(self, thread: str, response: int, parts: list[Piece], number: int) -> list[Piece]:
        """The parts of a line that are to be emitted. number: of the next block."""
        found = self._newest.get(thread)
        if found is None or found[0] != response:
            found = self._newest[thread] = (response, [], {})
        _, seen, calls = found
        if seen and len(parts) >= len(seen) and all(map(_grows, (s.part for s in seen), parts)):
            # what is equal stays the block that it is
            kept = len(seen)
            for old, new in zip(seen, parts, strict=False):
                if old.part.text != new.text:
                    kept = seen.index(old)
                    break
            self.superseded.update(s.number for s in seen[kept:])
            del seen[kept:]
            parts = parts[kept:]
        for position, part in enumerate(parts):
            if part.kind == "tool_call" and part.call_id is not None:
                if part.call_id in calls:
                    self.superseded.add(calls[part.call_id])
                calls[part.call_id] = number + position
            seen.append(Seen(number + position, part))
        return parts


def _grows(old: Piece, new: Piece) -> bool:
    """Whether a block repeats an earlier one or goes on from it."""
    if old.kind != new.kind or old.call_id != new.call_id or not old.text:
        return False  # blocks without text (signed thinking, pictures) can't be told to be the same
    return new.text.startswith(old.text)
