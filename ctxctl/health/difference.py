"""What one transcript's window holds that another's does not: usually those before and after a compaction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxctl.facts.pins import PinFinder
from ctxctl.facts.session import SessionFacts
from ctxctl.formats.streams import Progress
from ctxctl.formats.window import live_blocks
from ctxctl.health.fidelity import Judged, judge
from ctxctl.model.block import Block
from ctxctl.model.transcript import Transcript
from ctxctl.trace.changes import Changes, compare
from ctxctl.trace.curve import PLACEHOLDER_TOKENS, count_curve
from ctxctl.trace.live import CLEARED_TEXT
from ctxctl.trace.retention import Kept, Retention, retained, said
from ctxctl.trace.tally import MEDIA_CLASS, Tally


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two. blocks: of the live window in its order, with tokens; file_tokens: of every block of the main
    thread. encoding, ratio: how tokens were counted. conversation: which of several in the file it is, from 0."""

    transcript: Transcript
    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    file_tokens: int
    encoding: str
    ratio: float
    conversation: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens of the window."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of the window of `before` in that of `after`. pins, decisions, todos, user_messages: how many are
    there word for word, and the texts of those that are not. changed_prompts: their blocks, numbers in before.blocks.
    fidelity: of the questions that the window of `before` answers, those that the one of `after` still does.
    """

    before: Side
    after: Side
    changes: Changes
    retention: Retention
    decisions: Kept
    todos: Kept
    pins: Kept
    user_messages: Kept
    changed_prompts: tuple[int, ...]
    fidelity: Judged

    @property
    def identical(self) -> bool:
        """Whether both windows hold the same blocks in the same order."""
        c = self.changes
        return not (c.lost or c.added or c.replaced) and all(a == b for a, b in c.kept)

    def share(self) -> float | None:
        """The lowest share of any class of atoms that was kept, None where there was none to keep."""
        shares = [kept.share for _, kept in self.retention.items() if kept.share is not None]
        return min(shares) if shares else None


def difference(
    before: str, after: str, *, formats: tuple[str | None, str | None] = (None, None), progress: Progress | None = None
) -> Difference:
    """Compare the windows of two transcripts; tokens of both are counted as those of the first.

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    one = _side(before, formats[0], None, progress)
    other = _side(after, formats[1], one, progress)
    texts = [said(block) for block in other.blocks]
    everything = "\n".join(texts)
    changes = compare(one.blocks, other.blocks)
    facts, pins = SessionFacts(), PinFinder()
    for number, block in enumerate(one.blocks):
        facts.see(block, number)
        pins.see(block, number)
    summary = facts.summary()
    stayed = {number for number, _ in changes.kept}
    prompts = [n for n, b in enumerate(one.blocks) if b.kind == "user_message" and b.text.strip()]
    lost_prompts = tuple(n for n in prompts if n not in stayed and one.blocks[n].text.strip() not in everything)
    return Difference(
        one,
        other,
        changes,
        retained((said(block) for block in one.blocks), texts),
        _kept([d.what for d in summary.decisions], everything),
        _kept([t.text for t in summary.todos], everything),
        _kept([pin.text for pin in pins.found], everything),
        Kept(len(prompts) - len(lost_prompts), len(prompts), tuple(one.blocks[n].text for n in lost_prompts)),
        lost_prompts,
        judge(one.blocks, other.blocks),
    )


def _kept(texts: Sequence[str], everything: str) -> Kept:
    lost = tuple(dict.fromkeys(text for text in texts if text not in everything))
    return Kept(sum(text in everything for text in texts), len(texts), lost)


def _side(path: str, format_name: str | None, like: Side | None, progress: Progress | None) -> Side:
    tally = Tally(encoding=like.encoding if like is not None else None, size_hint=_size(path))
    try:
        transcript, found = live_blocks(
            path, format_name=format_name, see=tally.add, on_model=tally.saw_model, progress=progress
        )
        model = like.transcript.model if like is not None else transcript.model
        tally.finish(model, None, transcript.stated)
    finally:
        tally.close()
    if like is None:
        curve = count_curve(transcript, tally)
        estimates, ratio = curve.estimates, curve.calibration.ratio if curve.calibration else 1.0
    else:
        ratio = like.ratio
        estimates = tally.estimates()
        for number, text_class in enumerate(tally.text_class):
            if text_class != MEDIA_CLASS:
                estimates[number] *= ratio
    numbers: Sequence[int] = transcript.live
    if transcript.conversations:  # as everywhere: of several in a file the largest is meant
        chosen = max(
            range(len(transcript.conversations)),
            key=lambda n: sum(estimates[transcript.conversations[n].first : transcript.conversations[n].last]),
        )
        if like is not None and len(like.transcript.conversations) == len(transcript.conversations):
            chosen = like.conversation or 0  # the same one of both: a compaction may have made it the smaller
        conversation = transcript.conversations[chosen]
        numbers = range(conversation.first, conversation.last)
    own = [n for n in range(len(tally)) if tally.names[tally.thread[n]] == transcript.main]
    blocks, sizes = [], []
    for number in numbers:
        block, size = found[number], round(estimates[number])
        if number in transcript.cleared:
            block, size = replace(block, text=CLEARED_TEXT), min(size, PLACEHOLDER_TOKENS)
        blocks.append(block)
        sizes.append(size)
    number_of = chosen if transcript.conversations else None
    file_tokens = sum(round(estimates[n]) for n in own if n not in transcript.superseded)
    return Side(transcript, tuple(blocks), tuple(sizes), file_tokens, tally.encoding, ratio, number_of)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size if path != "-" else None
    except OSError:
        return None
