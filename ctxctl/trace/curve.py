"""The window's tokens turn by turn, counted and held against what was reported (requirement P5)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from ctxctl.model.transcript import Compaction, Transcript
from ctxctl.tokens.calibrated import Calibration, calibrate
from ctxctl.trace.tally import ANSWER, MEDIA_CLASS, NEW_MESSAGE, Tally

MOST_PAIRS = 4000
PLACEHOLDER_TOKENS = 8
"""What stands in place of a cleared tool result: one short sentence in the runtimes that clear."""


@dataclass(frozen=True, slots=True)
class CountedCurve:
    """What was counted in the window. estimates: tokens per block, calibrated. at_call: tokens in the window as each
    call of the main thread sees it, by turn (index 0 is turn 1), without the overhead. overhead: system prompt and
    tool definitions that the file does not hold, None when nothing was reported to tell it from."""

    estimates: array[float]
    at_call: array[float]
    overhead: int | None
    calibration: Calibration | None


def count_curve(transcript: Transcript, tally: Tally) -> CountedCurve:
    """Follow the blocks through calls and compactions, and hold them against what the provider reported."""
    estimates = tally.estimates()
    entering, at_call = _walk(transcript, tally, estimates)
    # a tokenizer that is the model's own needs no calibration: what differs then is not text
    calibration = None if tally.is_exact() else calibrate(_pairs(transcript, entering))
    if calibration is None and transcript.ratio is not None and not tally.is_exact():
        calibration = Calibration(transcript.ratio, tally.family.session_bound, 0)
    if calibration is not None:
        for number, text_class in enumerate(tally.text_class):
            if text_class != MEDIA_CLASS:
                estimates[number] *= calibration.ratio
        entering, at_call = _walk(transcript, tally, estimates)
    overhead = _overhead(transcript, at_call)
    if overhead is None:
        overhead = _left_over(transcript, tally, estimates)
    return CountedCurve(estimates, at_call, overhead, calibration)


def _walk(transcript: Transcript, tally: Tally, estimates: array[float]) -> tuple[array[float], array[float]]:
    """Tokens that enter the window with each call, and tokens in it at each call; index 0 is turn 1."""
    main = thread_number(transcript, tally)
    calls = max((u.turn for u in transcript.usage if u.thread == transcript.main), default=0)
    entering, at_call = array("d", bytes(8 * calls)), array("d", bytes(8 * calls))
    cuts: dict[int, list[Compaction]] = {}
    for cut in transcript.compactions:
        cuts.setdefault(cut.at, []).append(cut)
    # a rollback needs to know what the window held before a block
    before = array("d") if any(c.back_to is not None for c in transcript.compactions) else None
    drops = dict(transcript.dropped)
    starts = {c.first for c in transcript.conversations}
    has_answer, superseded, per_message = transcript.context_has_answer, transcript.superseded, tally.family.per_message
    running, seen = 0.0, 0
    for number, estimate in enumerate(estimates):
        for cut in cuts.get(number, ()):
            running = _after(cut, running, estimates, before)
        if number in drops:
            running = max(0.0, running - sum(estimates[b] for b in drops[number]))
        if number in starts:
            running = 0.0
        if before is not None:
            before.append(running)
        if tally.thread[number] != main or number in superseded:
            continue
        if tally.flags[number] & NEW_MESSAGE:
            estimate += per_message
        turn = tally.turn[number]
        is_answer = tally.flags[number] & ANSWER
        # a call sees what is there before its answer; one that was answered with nothing, what is there before the next
        while seen < min(turn if is_answer else turn - 1, calls):
            at_call[seen] = running
            seen += 1
        running += estimate
        if is_answer and has_answer and turn <= calls:
            at_call[turn - 1] = running
        enters = turn + 1 if is_answer and not has_answer else turn
        if 1 <= enters <= calls:
            entering[enters - 1] += estimate
    for rest in range(seen, calls):
        at_call[rest] = running
    return entering, at_call


def _after(cut: Compaction, running: float, estimates: array[float], before: array[float] | None) -> float:
    """Tokens in the window once a compaction was done."""
    if cut.kind == "micro":
        return max(0.0, running - sum(max(0.0, estimates[b] - PLACEHOLDER_TOKENS) for b in cut.cleared))
    if cut.kind == "rollback":
        if before is None or cut.back_to is None:
            return running if cut.back_to is None else 0.0
        return before[cut.back_to] if cut.back_to < len(before) else running
    return sum(estimates[b] for b in cut.kept)


def thread_number(transcript: Transcript, tally: Tally) -> int:
    """The tally's number of the main thread, -1 when it has no block."""
    return tally.names.index(transcript.main) if transcript.main in tally.names else -1


def _pairs(transcript: Transcript, entering: array[float]) -> list[tuple[float, float]]:
    """Growth between consecutive requests of one model without a compaction between: (estimated, reported).

    Of a very long session every k-th pair is taken: a few thousand tell the ratio as well as all of them.
    """
    cut = {c.turn for c in transcript.compactions}
    copied = _copied_at(transcript)
    step = 1 + len(transcript.usage) // MOST_PAIRS
    pairs = []
    before = None
    for usage in transcript.usage:
        if usage.thread != transcript.main:
            continue
        if (
            before is not None
            and before.context is not None
            and usage.context is not None
            and usage.turn == before.turn + 1
            and usage.turn not in cut
            and usage.turn > copied
            and usage.model == before.model
            and usage.turn % step == 0
        ):
            pairs.append((entering[usage.turn - 1], float(usage.context - before.context)))
        before = usage
    return pairs


def _overhead(transcript: Transcript, at_call: array[float]) -> int | None:
    """What the first request since the last full compaction, or since the model changed, holds beyond what was
    counted: system prompt and tool definitions, and whatever else the client puts in without writing it down."""
    start = max((c.turn for c in transcript.compactions if c.kind == "full" and not c.abandoned), default=0)
    copied = _copied_at(transcript)
    found, model = None, None
    for index, usage in enumerate(transcript.usage):
        if usage.thread != transcript.main or not usage.context or index in transcript.abandoned:
            continue
        if usage.turn < copied:
            continue
        if found is None or usage.model != model or (start and usage.turn >= start):
            found, model = max(0, round(usage.context - at_call[usage.turn - 1])), usage.model
            if usage.turn >= start:
                start = 0
    return found


def _left_over(transcript: Transcript, tally: Tally, estimates: array[float]) -> int | None:
    """The overhead of a session that was compacted and has not reported since: what its last compaction stated, less
    what is counted."""
    cut = next((c for c in reversed(transcript.compactions) if c.kind == "full" and not c.abandoned), None)
    if cut is None or cut.after is None:
        return None
    frame = tally.family.per_message
    counted = sum(
        (min(estimates[b], PLACEHOLDER_TOKENS) if b in transcript.cleared else estimates[b])
        + (frame if tally.flags[b] & NEW_MESSAGE else 0)
        for b in transcript.live
    )
    return max(0, cut.after - round(counted))


def _copied_at(transcript: Transcript) -> int:
    """The turn of the newest full compaction behind which records of before it were written again, 0 without one. What
    their calls saw then can't be told any more: a block counts where its last copy stands."""
    full = (c for c in reversed(transcript.compactions) if c.kind == "full" and not c.abandoned)
    return next((c.turn for c in full if any(n < c.at for n in transcript.superseded)), 0)
