"""Reading a transcript on from where it was left: only what its agent appended since, with counts that go on.

Each block is handed out once, over all readings together. To tell to which call and turn a new line belongs, reading
goes back to the newest model call, whose blocks are not handed out again. Where that can't give what reading the whole
would (the file was rewritten, the user went back behind it), the whole is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxctl.errors import RefusedError
from ctxctl.formats import FORMATS, scan
from ctxctl.formats.base import Format
from ctxctl.formats.session import epoch
from ctxctl.formats.streams import Progress
from ctxctl.formats.tail import Offsets, Point, id_of, mark_at, next_line, plain_size, scan_on
from ctxctl.model.block import MAIN, Block
from ctxctl.model.state import Position
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import ANSWER_KINDS

See = Callable[[Block, int], None]
Fresh = Callable[[Position | None], See]

KEPT = 64
"""Turns whose blocks are kept while reading: a rewind within them still finds the newest turns."""
GONE = 200
"""Blocks behind a point that a rewind left behind, at most, as far as they are named."""
FORCE = "--force takes it as it is"


@dataclass(frozen=True, slots=True)
class Grown:
    """What was read now.

    position: where the next reading goes on, its `carry` empty. whole: read from the beginning. why: empty when it was
    read on, else `new`, `document` (its format or packing has to be read whole), `rewritten`, or `rewound` (the user
    went back behind the position). tail: live blocks of the main thread of the newest turns. pending: calls of the
    newest turn without a result, as long as the user said nothing since. gone: numbers of blocks that a rewind left
    behind. again: how many of `tail`, its first ones, were handed out before. Of several conversations in a file the
    newest is taken.
    """

    transcript: Transcript
    position: Position
    whole: bool
    why: str
    tail: tuple[Block, ...] = ()
    pending: tuple[Block, ...] = ()
    gone: frozenset[int] = frozenset()
    again: int = 0


def read_grown(
    path: str,
    before: Position | None,
    fresh: Fresh,
    *,
    format_name: str | None = None,
    most: int | None = None,
    tail_turns: int = 3,
    progress: Progress | None = None,
    force: bool = False,
) -> Grown:
    """Read a transcript on from a position, or whole where there is none or that can't be done.

    fresh: makes what takes the blocks of an attempt, with their numbers; given the position that it goes on from, None
    when it starts anew. most: bytes that are read at most: of more, only the newest lines are. force: read the whole
    even if it is shorter or older than the position. Raises RefusedError for such a one, and what
    `ctxctl.formats.read` raises.
    """
    attempt = _Attempt(path, before, fresh, format_name, most, tail_turns, progress)
    why = "rewritten" if force else "document"
    if before is not None and not force and (found := attempt.read_on()) is not None:
        if not found.why or (found.why == "rewound" and attempt.too_large()):
            return found
        why = found.why
    grown = attempt.read_whole()
    if before is None or not is_same(before, grown.position):
        why = "new"
    if before is not None and not force:
        _refuse(path, before, grown.position)
    return replace(grown, why=why)


def is_same(one: Position, other: Position) -> bool:
    """Whether two positions lie in the same transcript."""
    return one.id == other.id if one.id and other.id else one.path == other.path


def _refuse(path: str, before: Position, now: Position) -> None:
    if is_same(before, now) and now.size < before.offset:
        raise _shorter(path, now.size, before)
    if before.newest and now.newest and _later(before.newest, now.newest):
        what = "this transcript ended" if not is_same(before, now) else "it ends"
        raise RefusedError(
            f"{what} at {now.newest}, before the state's at {before.newest}: it is older",
            path=path,
            hint=FORCE,
        )


def _shorter(path: str, size: int, before: Position) -> RefusedError:
    return RefusedError(
        f"it has {size:,} bytes, and the state holds what stood in {before.offset:,}: it was cut or is an old copy",
        path=path,
        hint=FORCE,
    )


def _later(one: str, other: str) -> bool:
    """Whether a time stamp is later than another."""
    if one == other:
        return False
    if len(one) == len(other) and one[-1:] == other[-1:] == "Z":
        return one > other
    a, b = epoch(one), epoch(other)
    return a is not None and b is not None and a > b


@dataclass(slots=True)
class _Taken:
    """What passes by. known: blocks that were handed out before."""

    see: See
    known: int = 0
    number: int = 0
    newest: str | None = None
    kept: dict[int, Block] = field(default_factory=dict)
    swept: int = 0
    seen: bool = False

    def emit(self, block: Block) -> None:
        number = self.number
        self.number = number + 1
        if block.thread != MAIN:
            return
        self.seen = True
        when = block.timestamp
        if when is not None and when != self.newest and (self.newest is None or _later(when, self.newest)):
            self.newest = when
        if block.turn > self.swept + 2 * KEPT:
            self.swept = block.turn - KEPT
            self.kept = {n: b for n, b in self.kept.items() if b.turn >= self.swept}
        self.kept[number] = block
        if number >= self.known:
            self.see(block, number)


class _Attempt:
    """One call of `read_grown`. size: bytes of the file where it is plain."""

    def __init__(
        self,
        path: str,
        before: Position | None,
        fresh: Fresh,
        format_name: str | None,
        most: int | None,
        tail_turns: int,
        progress: Progress | None,
    ) -> None:
        self.path, self.before, self.fresh = path, before, fresh
        self.format_name, self.most, self.tail_turns, self.progress = format_name, most, tail_turns, progress
        self.absolute = path if path == "-" else os.path.abspath(path)
        self.size = plain_size(path)

    def too_large(self) -> bool:
        """Whether the whole is more than may be read."""
        return self.most is not None and self.size is not None and self.size > self.most

    def read_on(self) -> Grown | None:
        """What was appended, with what speaks against it in `why`. None when the position says nothing of this file."""
        before, size = self.before, self.size
        assert before is not None
        if not size or before.format not in FORMATS.names() or self.format_name not in (None, before.format):
            return None
        chosen = FORMATS.get(before.format)
        if not chosen.appends or not before.mark or not before.reading:
            return None
        if self.absolute != before.path and (not before.id or id_of(self.path, before.format) != before.id):
            return None
        if size < before.offset:
            if before.id and (other := id_of(self.path, before.format)) is not None and other != before.id:
                return None
            raise _shorter(self.path, size, before)
        if mark_at(self.path, before.offset) != before.mark:
            return Grown(_nothing(before), before, False, "rewritten")
        if size == before.size:
            position = replace(before, path=self.absolute, carry={})
            self.fresh(before)
            return Grown(_nothing(before), position, False, "")
        if self.most is not None and size - before.offset > self.most:
            return self._read_end(chosen, before)
        return self._read_tail(chosen, before)

    def _read_tail(self, chosen: type[Format], before: Position) -> Grown:
        reading = before.reading
        point = Point(
            int(reading.get("line", 0)),
            int(reading.get("turn", 0)),
            int(reading.get("exchange", 0)),
            0,
            before.leaves,
            reading.get("more", {}),
        )
        start = int(reading.get("offset", 0))
        offsets = Offsets(start, point.line)
        taken = _Taken(self.fresh(before), int(reading.get("blocks", 0)), newest=before.newest)
        transcript, reader = scan_on(
            self.path, taken.emit, chosen, start, point, offsets, id_=before.id, progress=self.progress
        )
        grown = self._grown(transcript, reader, taken, offsets, before, int(reading.get("cuts", 0)))
        gone = [n for n in sorted(grown.gone) if n < taken.known][:GONE]
        if taken.number < taken.known:
            return replace(grown, why="rewritten")
        return replace(grown, why="rewound" if reader.behind or gone != list(reading.get("gone", ())) else "")

    def _read_end(self, chosen: type[Format], before: Position | None, id_: str | None = None) -> Grown:
        """The newest bytes alone, as many as may be read. before: None where nothing is known of the file."""
        assert self.size is not None and self.most is not None
        start = next_line(self.path, self.size - self.most)
        known = before if before is not None else Position(id=id_)
        point = Point(known.line, known.turn, known.exchange, 0, (), known.reading.get("more", {}))
        offsets = Offsets(start, point.line)
        taken = _Taken(self.fresh(before), newest=known.newest)
        transcript, reader = scan_on(
            self.path, taken.emit, chosen, start, point, offsets, id_=known.id, progress=self.progress
        )
        skipped = known.skipped + start - known.offset
        known = replace(known, skipped=skipped)
        return self._grown(transcript, reader, taken, offsets, known)

    def read_whole(self) -> Grown:
        """The file from its beginning; only its end where it is too large."""
        if self.too_large() and (chosen := self._chosen()) is not None and chosen.appends:
            return self._read_end(chosen, None, id_of(self.path, chosen.name))
        readers: list[Format] = []
        offsets = Offsets()
        taken = _Taken(self.fresh(None))
        transcript = scan(
            self.path,
            taken.emit,
            format_name=self.format_name,
            companions=False,
            progress=self.progress,
            store=offsets,
            on_reader=readers.append,
        )
        if transcript.main != MAIN and not taken.seen:
            taken = self._again(transcript)
        elif len(transcript.conversations) > 1 and self.path != "-":
            newest = transcript.conversations[-1]
            taken = self._again(transcript, range(newest.first, newest.last))
        return self._grown(transcript, readers[0], taken, offsets, None)

    def _chosen(self) -> type[Format] | None:
        """The format of a large plain file, by its first lines."""
        if self.format_name:
            return FORMATS.get(self.format_name)
        if self.before is not None and self.before.path == self.absolute:
            return FORMATS.get(self.before.format)
        from ctxctl.formats.tail import format_of

        return format_of(self.path)

    def _again(self, transcript: Transcript, only: range | None = None) -> _Taken:
        """The file once more: a sub-agent's own, whose thread is the main one, or of several conversations the newest.
        only: numbers of its blocks."""
        taken = _Taken(self.fresh(None))

        def emit(block: Block) -> None:
            if only is not None and taken.number not in only:
                taken.number += 1
                return
            taken.emit(replace(block, thread=MAIN) if block.thread == transcript.main else block)

        scan(self.path, emit, format_name=transcript.format, companions=False)
        return taken

    def _grown(
        self,
        transcript: Transcript,
        reader: Format,
        taken: _Taken,
        offsets: Offsets,
        before: Position | None,
        known: int = 0,
    ) -> Grown:
        """known: how many compactions were read, and counted, before."""
        gone = _abandoned(transcript)
        point = reader.point() if reader.appends and transcript.main == MAIN else None
        position = Position(
            id=transcript.id or (before.id if before is not None else None),
            path=self.absolute,
            format=transcript.format,
            offset=offsets.whole if point is not None else offsets.end,
            line=offsets.lines if point is not None else offsets.count,
            turn=_turns(transcript, taken, before),
            exchange=transcript.exchanges,
            size=offsets.end,
            newest=taken.newest,
            mark=mark_at(self.path, offsets.whole) if self.size is not None and point is not None else "",
            compactions=(before.compactions if before is not None else 0) - known + _cuts(transcript, 0),
            skipped=before.skipped if before is not None else 0,
            leaves=point.leaves if point is not None else (),
            reading=_reading(point, offsets, taken, gone, transcript) if point is not None else {},
        )
        live = sorted(set(transcript.live) & taken.kept.keys())
        blocks = [taken.kept[n] for n in live]
        answers = sorted({b.turn for b in blocks if _is_answer(b)})[-self.tail_turns :]
        least = answers[0] if answers else 0
        tail = tuple(b for b in blocks if self.tail_turns and b.turn >= least)
        again = sum(n < taken.known and b.turn >= least for n, b in zip(live, blocks, strict=True)) if tail else 0
        return Grown(transcript, position, before is None, "", tail, _pending(blocks), gone, again)


def _turns(transcript: Transcript, taken: _Taken, before: Position | None) -> int:
    calls = [u.turn for u in transcript.usage if u.thread == transcript.main]
    return max([*calls, before.turn if before is not None else 0])


def _reading(
    point: Point, offsets: Offsets, taken: _Taken, gone: frozenset[int], transcript: Transcript
) -> dict[str, Any]:
    """Where reading goes back to, and how many blocks from there on are known."""
    return {
        "offset": offsets.start(point.line + 1),
        "line": point.line,
        "turn": point.turn,
        "exchange": point.exchange,
        "blocks": taken.number - point.blocks,
        "cuts": _cuts(transcript, point.line),
        "gone": [n - point.blocks for n in sorted(gone) if n >= point.blocks][:GONE],
        "more": dict(point.more),
    }


def _cuts(transcript: Transcript, line: int) -> int:
    """Full compactions of the main thread behind a line."""
    return sum(c.kind == "full" and not c.abandoned and c.line > line for c in transcript.compactions)


def _is_answer(block: Block) -> bool:
    return block.kind in ANSWER_KINDS and block.role == "assistant"


def _pending(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Calls of the newest answer without a result, none when the user said something since."""
    answered = max((b.turn for b in blocks if _is_answer(b)), default=0)
    results = {b.call_id for b in blocks if b.kind == "tool_result"}
    found: list[Block] = []
    for block in blocks:
        if block.kind == "user_message":
            found = []
        elif block.kind == "tool_call" and block.turn == answered and block.call_id not in results:
            found.append(block)
    return tuple(found)


def _nothing(before: Position) -> Transcript:
    return Transcript(before.id, before.format, before.path)


def _abandoned(transcript: Transcript) -> frozenset[int]:
    gone = set(transcript.superseded)
    for cut in transcript.compactions:
        if cut.kind == "rollback" and cut.back_to is not None:
            gone.update(range(cut.back_to, cut.at))
    return frozenset(gone)
