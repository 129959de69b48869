"""Transcript -> the window as it is now, with its blocks and lines, ready to be compacted and written back.

One pass, and texts are kept only of what can still be in the window: at each compaction of the recording what came
before the one before it is let go. Where a session turns out to need more (a rewind over two compactions, a preserved
run of old messages), a second pass fetches it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxctl.errors import NothingFoundError
from ctxctl.formats import scan
from ctxctl.formats.store import LineStore
from ctxctl.formats.streams import Progress
from ctxctl.model.block import MAIN, Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.text import is_summary, stands_for_many
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import ANSWER_KINDS, Grouper
from ctxctl.model.window import Window
from ctxctl.tokens.estimate import counter_for
from ctxctl.trace.answers import answer_of, is_reply
from ctxctl.trace.curve import PLACEHOLDER_TOKENS, CountedCurve, count_curve
from ctxctl.trace.tally import MEDIA_CLASS, NEW_MESSAGE, Tally

CLEARED_TEXT = "[Old tool result content cleared]"
"""What a request of Claude Code holds in place of a result that it cleared itself."""

STATING = frozenset(("user_message", "summary", "memory_injection", "system"))
"""Kinds of block that may state the task: a resume prompt may be put in by the agent's client."""

See = Callable[[Block, int], None]


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """The window of a transcript's main thread now.

    numbers: of its blocks in the transcript, in the order of the window; the window numbers them from 0. window: its
    `tokens` are counted, the overhead included. reported: tokens of the newest request as the provider reported it.
    count: tokens of a text of some kind, counted as the blocks were; frame: of a message's frame, which the blocks in
    `framed` carry. blocks: of the window, by their number in the transcript.
    counter: name of the encoding; ratio: of its calibration. gone: blocks of the file that a rewind left behind.
    """

    transcript: Transcript
    numbers: Sequence[int]
    window: Window
    count: Callable[[str, str], int]
    reported: int | None
    counter: str
    ratio: float
    exact: bool
    gone: frozenset[int]
    frame: int
    framed: frozenset[int]
    blocks: Mapping[int, Block]


def read_live(
    path: str,
    table: ModelTable,
    pinned: Callable[[Block], str | None],
    see: See,
    store: LineStore,
    *,
    format_name: str | None = None,
    progress: Progress | None = None,
) -> LiveWindow:
    """Read a transcript for compaction. see: takes each block of the main thread as it comes, with its number.

    Of several conversations in a file the largest is meant. Raises InputError and NothingFoundError as
    `ctxctl.formats.read` does.
    """
    tally = Tally(size_hint=store.size_hint())
    older: dict[int, Block] = {}
    newer: dict[int, Block] = {}

    def emit(block: Block) -> None:
        number = len(tally)
        if block.thread == MAIN:
            newer[number] = block
            see(block, number)
            if block.kind in STATING:
                pinned(block)  # which message states the task is told from the whole session
        tally.add(block)

    def cut() -> None:
        nonlocal older, newer
        older, newer = newer, {}

    try:
        transcript = scan(
            path,
            emit,
            format_name=format_name,
            companions=False,
            progress=progress,
            on_model=tally.saw_model,
            store=store,
            on_cut=cut,
        )
        row = table.find(transcript.model)
        tally.finish(transcript.model, row.image_rule if row else None, transcript.stated)
    finally:
        tally.close()
    curve = count_curve(transcript, tally)
    numbers = _live(transcript, curve)
    if not numbers:
        raise NothingFoundError("the window holds no message: nothing to compact", path=path)
    found = {n: block for kept in (older, newer) for n, block in kept.items()}
    if any(n not in found for n in numbers):
        found = _again(store, transcript, frozenset(numbers), see)
    return _window(transcript, tally, curve, numbers, found, pinned)


def _live(transcript: Transcript, curve: CountedCurve) -> list[int]:
    if transcript.conversations:
        largest = max(transcript.conversations, key=lambda c: sum(curve.estimates[c.first : c.last]))
        return list(range(largest.first, largest.last))
    return list(transcript.live)


def _again(store: LineStore, transcript: Transcript, wanted: frozenset[int], see: See) -> dict[int, Block]:
    """The blocks of some numbers, by a second pass over the lines. A sub-agent's own file has no main thread to be seen
    in the first."""
    found: dict[int, Block] = {}
    number = 0

    def emit(block: Block) -> None:
        nonlocal number
        if number in wanted:
            found[number] = block
        if block.thread == transcript.main != MAIN:
            see(block, number)
        number += 1

    with store.spooled() as path:
        scan(path, emit, format_name=transcript.format, companions=False)
    return found


def _window(
    transcript: Transcript,
    tally: Tally,
    curve: CountedCurve,
    numbers: Sequence[int],
    found: dict[int, Block],
    pinned: Callable[[Block], str | None],
) -> LiveWindow:
    frame = tally.family.per_message
    grouper = Grouper()
    sizes: list[int] = []
    blocks: list[Block] = []
    for number, block in zip(numbers, _as_read([found[n] for n in numbers]), strict=True):
        size = round(curve.estimates[number])
        if number in transcript.cleared:
            block, size = replace(block, text=CLEARED_TEXT), min(size, PLACEHOLDER_TOKENS)
        if tally.flags[number] & NEW_MESSAGE:
            size += frame
        enters = block.turn + 1 if block.kind in ANSWER_KINDS and block.role == "assistant" else block.turn
        grouper.add(block, size, enters, pinned(block))
        blocks.append(block)
        sizes.append(size)
    ratio = curve.calibration.ratio if curve.calibration else 1.0
    count = counter_for(transcript.model, tally.encoding, ratio)
    window = Window(blocks, grouper.unit_of, grouper.units, curve.overhead or 0)
    for number, size in enumerate(sizes):
        window.enter(number, size)
    answered = max((b.turn for b in blocks if b.kind in ANSWER_KINDS and b.role == "assistant"), default=0)
    window.turn = answered + 1
    results = ((b, window.unit_of[n]) for n, b in enumerate(blocks) if b.kind in ("tool_result", "image", "document"))
    late = {unit for block, unit in results if block.turn > answered}
    window.fresh.intersection_update(late)
    for number, block in enumerate(blocks):  # what such a result replies to stays with it
        if is_reply(block) and window.unit_of[number] in late:
            window.fresh.update(window.unit_of[n] for n in answer_of(blocks, number))
    last_said = max((n for n, b in enumerate(blocks) if b.kind == "user_message"), default=-1)
    open_now = {
        window.unit_of[n]
        for n, b in enumerate(blocks)
        if b.kind == "tool_call" and b.turn == answered and n > last_said
    }
    window.pending.intersection_update(open_now)  # an earlier call without a result will get none any more
    for number, block in enumerate(blocks):
        whole = not is_summary(block.text) or stands_for_many(block.text)
        if block.kind == "summary" and whole and window.units[window.unit_of[number]].pinned is None:
            window.summaries.add(window.unit_of[number])
    written = next((b for b in reversed(blocks) if b.kind in ANSWER_KINDS and b.response_id is not None), None)
    if written is not None and written.response_id is not None:
        window.bind(written.response_id)
    window.bind_calls()
    newest = next((u for u in reversed(transcript.usage) if u.thread == transcript.main and u.context), None)
    return LiveWindow(
        transcript,
        numbers,
        window,
        count,
        newest.context if newest is not None else None,
        tally.encoding,
        ratio,
        tally.is_exact(),
        _abandoned(transcript),
        frame,
        frozenset(n for n, number in enumerate(numbers) if tally.flags[number] & NEW_MESSAGE),
        dict(zip(numbers, blocks, strict=True)),
    )


def _as_read(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of a window, each with the turn in which it is read there. A session that was compacted in place
    repeats the messages that it kept: answers are known and keep their turn, and what they answer to would seem new."""
    called = {b.call_id: b.turn for b in blocks if b.kind == "tool_call"}
    found: list[Block] = []
    following: int | None = None
    for block in reversed(blocks):
        if block.kind in ANSWER_KINDS and block.role == "assistant":
            following = block.turn
        elif following is not None and block.turn > following > called.get(block.call_id, 0):
            block = replace(block, turn=following)
        found.append(block)
    found.reverse()
    return found


def _abandoned(transcript: Transcript) -> frozenset[int]:
    gone = set(transcript.superseded)
    for cut in transcript.compactions:
        if cut.kind == "rollback" and cut.back_to is not None:
            gone.update(range(cut.back_to, cut.at))
    return frozenset(gone)


@dataclass(frozen=True, slots=True)
class Reread:
    """A written transcript, read again. tokens: of its window, counted as the original's were, without the overhead;
    fresh: as it is measured by itself, with what it says of its own overhead and its own calibration; blocks: kind,
    text and call id of each, in order."""

    tokens: int
    fresh: int
    blocks: tuple[tuple[str, str, str | None], ...]


def read_again(path: str, original: LiveWindow, line: int | None = None) -> Reread:
    """Read what was written of a compacted session, for the proof that it is what was planned. line: of the
    conversation that is meant, of several in a file."""
    blocks: list[Block] = []
    tally = Tally(encoding=original.counter)

    def emit(block: Block) -> None:
        blocks.append(block)
        tally.add(block)

    try:
        transcript = scan(path, emit, format_name=original.transcript.format, companions=False)
        tally.finish(original.transcript.model, None, transcript.stated)
    finally:
        tally.close()
    live: Sequence[int] = transcript.live
    if line is not None and transcript.conversations:
        chosen = next((c for c in transcript.conversations if c.line == line), None)
        live = range(chosen.first, chosen.last) if chosen is not None else ()
    frame = original.frame
    estimates = tally.estimates()
    curve = count_curve(transcript, tally)
    total = fresh = 0
    for number in live:
        media = tally.text_class[number] == MEDIA_CLASS
        sizes = [estimates[number] * (1.0 if media else original.ratio), curve.estimates[number]]
        if number in transcript.cleared:
            sizes = [min(size, PLACEHOLDER_TOKENS) for size in sizes]
        framing = frame if tally.flags[number] & NEW_MESSAGE else 0
        total += round(sizes[0]) + framing
        fresh += round(sizes[1]) + framing
    fresh += curve.overhead or 0
    return Reread(total, fresh, tuple((blocks[n].kind, blocks[n].text, blocks[n].call_id) for n in live))
