"""Transcript -> Trace: read once, counted, sorted into units and turns, with what each turn used of earlier ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ctxctl.formats import scan
from ctxctl.formats.streams import Progress
from ctxctl.model.block import Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Compaction, Transcript
from ctxctl.model.unit import ANSWER_KINDS, CLEARED_TOKENS, Grouper, RecordedCut, Trace, Turn
from ctxctl.model.usage import Usage
from ctxctl.trace.anchor import anchor
from ctxctl.trace.curve import count_curve
from ctxctl.trace.references import Found, find_references
from ctxctl.trace.tally import NEW_MESSAGE, Tally

Pinned = Callable[[Block], str | None]
"""Why a block never leaves the window, None when it may."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A trace with the transcript that it comes from (without blocks), and what its answers wrote, by turn."""

    trace: Trace
    transcript: Transcript
    written: dict[int, set[str]]


@dataclass(frozen=True, slots=True)
class Read:
    """A transcript that was read whole and counted. transcript: without blocks; blocks: all of them, of every thread,
    in file order; tally: their columns."""

    transcript: Transcript
    blocks: list[Block]
    tally: Tally


def build_trace(
    path: str,
    table: ModelTable,
    pinned: Pinned,
    *,
    format_name: str | None = None,
    progress: Progress | None = None,
) -> Traced:
    """The trace of the transcript at a path (or `-`). Sub-agents have windows of their own and are left out.

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    return trace_of(read_counted(path, table, format_name=format_name, progress=progress), pinned)


def read_counted(
    path: str,
    table: ModelTable,
    *,
    format_name: str | None = None,
    companions: bool = False,
    progress: Progress | None = None,
) -> Read:
    """Read and count the transcript at a path (or `-`), with every block. companions: with the files of its sub-agents.

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    blocks: list[Block] = []
    tally = Tally(size_hint=_size(path))
    keep, add = blocks.append, tally.add

    def emit(block: Block) -> None:
        keep(block)
        add(block)

    try:
        transcript = scan(
            path, emit, format_name=format_name, companions=companions, progress=progress, on_model=tally.saw_model
        )
        row = table.find(transcript.model)
        tally.finish(transcript.model, row.image_rule if row else None, transcript.stated)
    finally:
        tally.close()
    return Read(transcript, blocks, tally)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size if path != "-" else None
    except OSError:
        return None


def enters(block: Block) -> int:
    """The first call that reads a block: what a call wrote is read by the next one."""
    return block.turn + 1 if block.kind in ANSWER_KINDS and block.role == "assistant" else block.turn


def trace_of(read: Read, pinned: Pinned) -> Traced:
    """The trace of a transcript that was read. Sub-agents have windows of their own and are left out."""
    transcript, everything, tally = read.transcript, read.blocks, read.tally
    curve = count_curve(transcript, tally)
    chosen = _chosen(transcript, everything, curve.estimates)
    where = {old: new for new, old in enumerate(chosen)}
    blocks = [everything[b] for b in chosen]
    frame = tally.family.per_message
    estimates = [curve.estimates[b] + (frame if tally.flags[b] & NEW_MESSAGE else 0) for b in chosen]
    first = min((enters(b) for b in blocks), default=1)
    calls = {u.turn: u for u in transcript.usage if u.thread == transcript.main}
    answered = [b.turn for b in blocks if b.kind in ANSWER_KINDS and b.role == "assistant"]
    if transcript.conversations:  # the calls of the others are none of this one
        calls = {t: u for t, u in calls.items() if t <= max(answered, default=0)}
    last = max([t for t in calls if t >= first] + answered, default=first - 1)
    count = last - first + 1  # calls; what would enter after the last one waits in the window and is not sent
    entered = [enters(b) - first + 1 for b in blocks]
    leaving = _leaving(transcript, where, entered, first)
    recorded = _recorded(transcript, where, blocks, entered, first)
    away: set[int] = set()
    for turn in sorted(leaving):
        unread = {b for b in leaving[turn] if entered[b] >= turn}
        for b in unread:  # taken back before any call read it
            entered[b] = count + 1
        leaving[turn] = tuple(b for b in leaving[turn] if b not in unread and b not in away)
        away.update(leaving[turn])
    arrivals: list[list[int]] = [[] for _ in range(count)]
    for number, turn in enumerate(entered):
        if turn <= count:
            arrivals[turn - 1].append(number)
    usages = [calls.get(first + k) for k in range(count)]
    prompts = [_prompt(u, transcript.context_has_answer) for u in usages]
    cuts = frozenset(c.turn - first + 1 for c in transcript.compactions if c.kind != "rollback")
    tokens, overhead, unseen = anchor(arrivals, estimates, prompts, cuts, leaving)
    recorded = _settled(recorded, blocks, tokens, arrivals, leaving, prompts, unseen, overhead)
    grouper = Grouper()
    for block, size, turn in zip(blocks, tokens, entered, strict=True):
        grouper.add(block, size, turn, pinned(block))
    shifted = [b if first == 1 else _shift(b, first) for b in blocks]
    foreign = frozenset(b for cut in recorded.values() for b in cut.summary)
    found = find_references(shifted, entered, grouper.unit_of, grouper.units, leaving, foreign)
    turns = [
        _turn(k + 1, arrivals[k], leaving.get(k + 1, ()), unseen[k], usages[k], prompts[k], found) for k in range(count)
    ]
    trace = Trace(
        transcript.id,
        transcript.path,
        transcript.model,
        shifted,
        tokens,
        grouper.unit_of,
        grouper.units,
        turns,
        overhead,
        found.atoms,
        found.names,
        recorded,
        counter=tally.encoding,
        rereads=found.rereads,
        ratio=curve.calibration.ratio if curve.calibration else 1.0,
    )
    return Traced(trace, transcript, found.written)


def _shift(block: Block, first: int) -> Block:
    return replace(block, turn=block.turn - first + 1)


def _chosen(transcript: Transcript, everything: Sequence[Block], estimates: Sequence[float]) -> list[int]:
    """Blocks of the main thread; of several conversations in a file, those of the largest."""
    span = range(len(everything))
    if transcript.conversations:
        largest = max(transcript.conversations, key=lambda c: sum(estimates[c.first : c.last]))
        span = range(largest.first, largest.last)
    return [b for b in span if everything[b].thread == transcript.main and b not in transcript.superseded]


def _prompt(usage: Usage | None, has_answer: bool) -> int | None:
    if usage is None or not usage.context:
        return None
    return usage.context - usage.output if has_answer else usage.context


def _turn(
    index: int,
    arrivals: list[int],
    leaving: tuple[int, ...],
    unseen: int,
    usage: Usage | None,
    prompt: int | None,
    found: Found,
) -> Turn:
    return Turn(
        index,
        tuple(arrivals),
        leaving,
        unseen,
        usage.output if usage is not None else 0,
        prompt,
        usage,
        usage.time if usage is not None else None,
        tuple(found.references.get(index, ())),
        tuple(found.credits.get(index, {}).items()),
    )


def _leaving(
    transcript: Transcript, where: dict[int, int], entered: list[int], first: int
) -> dict[int, tuple[int, ...]]:
    """Blocks that the client itself took back, by the turn before which it did."""
    leaving: dict[int, set[int]] = {}
    for cut in transcript.compactions:
        if cut.kind == "rollback" and cut.back_to is not None:
            leaving.setdefault(cut.turn - first + 1, set()).update(
                where[b] for b in range(cut.back_to, cut.at) if b in where
            )
    for at, dropped in transcript.dropped:
        if at in where:
            leaving.setdefault(entered[where[at]], set()).update(where[b] for b in dropped if b in where)
    return {turn: tuple(sorted(blocks)) for turn, blocks in leaving.items()}


def _recorded(
    transcript: Transcript, where: dict[int, int], blocks: list[Block], entered: list[int], first: int
) -> dict[int, RecordedCut]:
    """The agent's own compactions by turn; the last of several before one call holds."""
    cuts: dict[int, RecordedCut] = {}
    for cut in transcript.compactions:
        turn = cut.turn - first + 1
        if cut.kind == "full":
            summary = _summary(cut, where, blocks, entered, turn)
            cuts[turn] = RecordedCut(turn, frozenset(where[b] for b in cut.kept if b in where), (), summary)
        elif cut.kind == "micro":
            before = cuts.get(turn)
            cleared = tuple(where[b] for b in cut.cleared if b in where)
            cuts[turn] = RecordedCut(turn, before.kept if before else None, cleared, before.summary if before else ())
    return cuts


def _settled(
    recorded: dict[int, RecordedCut],
    blocks: Sequence[Block],
    tokens: Sequence[int],
    arrivals: Sequence[Sequence[int]],
    leaving: dict[int, tuple[int, ...]],
    prompts: Sequence[int | None],
    unseen: Sequence[int],
    overhead: int,
) -> dict[int, RecordedCut]:
    """The agent's compactions, each with the tokens that the next request held beyond what is known of it (files that
    the client put back, a summary that was counted too small)."""
    if not recorded:
        return recorded
    there: dict[int, int] = {}
    total = overhead
    settled = dict(recorded)
    for turn, arrived in enumerate(arrivals, 1):
        total += unseen[turn - 1] + sum(tokens[b] for b in arrived)
        there.update((b, tokens[b]) for b in arrived)
        total -= sum(there.pop(b, 0) for b in leaving.get(turn, ()))
        cut = recorded.get(turn)
        if cut is None:
            continue
        for b in [b for b in there if not cut.stays(b, blocks[b].kind)]:
            total -= there.pop(b)
        for b in cut.cleared:
            if there.get(b, 0) > CLEARED_TOKENS:
                total -= there[b] - CLEARED_TOKENS
                there[b] = CLEARED_TOKENS
        prompt = prompts[turn - 1]
        if prompt is not None:
            settled[turn] = replace(cut, unseen=prompt - total)
            total = prompt
    return settled


def _summary(
    cut: Compaction, where: dict[int, int], blocks: list[Block], entered: list[int], turn: int
) -> tuple[int, ...]:
    """Blocks that came in for a compaction: its summary, and what the client put back beside it."""
    found = []
    for old in range(cut.at, cut.at + 200):
        new = where.get(old)
        if new is None:
            continue
        if entered[new] != turn:
            break
        if blocks[new].kind in ("summary", "memory_injection"):
            found.append(new)
    return tuple(found)
