"""Results in the window that show a file as it was: it was changed afterwards, and how it is now stands there too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxctl.facts import tools
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of, content_of

COVERED, HALF = 0.5, 0.3
"""Share of the lines of an earlier reading, and of each of its halves, that a later one must show again: then it shows
the same part of the file, and the other lines are those that changed."""
_MEMO = "health.superseded"


@dataclass(frozen=True, slots=True)
class Old:
    """A reading that a later one of the changed file takes the place of. path: the file; change: the call that changed
    it; newer: the call that shows it as it is, or wrote it whole."""

    path: str
    call: Call
    change: Call
    newer: Call


def lines_of(text: str) -> list[str]:
    """The lines of a text without the space around them; empty ones and lone brackets say nothing."""
    return [line for raw in text.split("\n") if len(line := raw.strip()) > 2]


def covers(newer: set[str], lines: list[str]) -> bool:
    """Whether a later reading shows the part of a file that an earlier one showed."""
    same = [line in newer for line in lines]
    middle = len(same) // 2
    first, last = same[:middle] or same, same[middle:]
    return bool(same) and sum(same) >= COVERED * len(same) and all(sum(h) >= HALF * len(h) for h in (first, last))


def superseded(session: Session) -> list[Old]:
    """The readings that are in the window now and that nothing is lost with, in order. A file that was changed in a few
    lines and not read again is none: the rest of the reading still holds, and the change stands behind it."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = list(_found(session))
    found: list[Old] = memo[_MEMO]
    return found


def _found(session: Session) -> Iterator[Old]:
    touched: dict[str, list[tuple[str, Call]]] = {}
    changed: set[str] = set()
    for call in calls_of(session):
        if call.failed or call.result is None:
            continue
        if len(call.reads) == 1 and not call.changes:
            touched.setdefault(call.reads[0].path, []).append(("read", call))
        for path in call.changes:
            if path in touched:
                touched[path].append(("change", call))
                changed.add(path)
    for path in sorted(changed):
        yield from _of_file(session, path, touched[path])


def _of_file(session: Session, path: str, events: list[tuple[str, Call]]) -> Iterator[Old]:
    texts: dict[int, list[str]] = {}

    def shown(call: Call) -> list[str]:
        if call.block not in texts:
            texts[call.block] = lines_of(content_of(session, call))
        return texts[call.block]

    def there(call: Call) -> bool:
        return call.result is not None and session.stays[call.result].left is None

    def newer(lines: list[str], later: list[tuple[str, Call]]) -> Call | None:
        """The last call that shows a reading's part of the file as it is now, or wrote the whole file."""
        for kind, call in reversed(later):
            if kind == "change" and call.does == tools.WRITE:
                return call
            if kind == "read" and there(call) and covers(set(shown(call)), lines):
                return call
        return None

    for at, (what, call) in enumerate(events):
        if what != "read" or not there(call):
            continue
        first = next((n for n in range(at + 1, len(events)) if events[n][0] == "change"), None)
        if first is not None and (found := newer(shown(call), events[first:])) is not None:
            yield Old(path, call, events[first][1], found)
