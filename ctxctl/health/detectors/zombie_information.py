"""Old results that stay in the window and are wrong by now (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import listed
from ctxctl.health.signals.misled import Misled, misled
from ctxctl.health.signals.overruled import Overruled, overruled
from ctxctl.health.signals.superseded import Old, superseded
from ctxctl.model.finding import Finding
from ctxctl.model.text import shortened

SHARE, TOKENS = 0.10, 5_000
"""Of the window now, and at least so many tokens, that outdated results must take. An ordinary session reads a file
again after an edit or two and stays below: 3 % in the median of real ones."""
NAMED = 4


@DETECTORS.register("zombie_information")
class ZombieInformation(Detector):
    """Signal: (a) readings of files that were changed and read again since take 10 % of the window and 5,000 tokens;
    (b) an edit fails since its text is that of such a reading, to the letter; (c) the agent does again what the user
    had told it to do otherwise, while the older decision is still in the window."""

    code = "zombie_information"
    signal = (
        "outdated readings of changed files take 10 % of the window and 5,000 tokens, an edit failed for using one, or "
        "a decision that the user took back was followed again"
    )
    fix = "clear outdated results (`ctxctl compact --strategy tool-results`), and read a file again before editing it"

    def find(self, session: Session) -> Iterator[Finding]:
        found = [self._failed(session, one) for one in misled(session)]
        found += [self._followed(session, o, o.earlier) for o in overruled(session) if o.earlier is not None]
        found += self._stale(session)
        yield from sorted(found, key=lambda finding: finding.turn or 0)

    def _stale(self, session: Session) -> Iterator[Finding]:
        old = superseded(session)
        window = session.analysis.context.tokens
        tokens = sum(one.call.tokens for one in old)
        if not window or tokens < max(TOKENS, SHARE * window):
            return
        files: dict[str, list[Old]] = {}
        for one in sorted(old, key=lambda one: one.call.block):
            files.setdefault(one.path, []).append(one)
        ranked = sorted(files.items(), key=lambda item: (-sum(o.call.tokens for o in item[1]), item[0]))
        told = [
            f"{shortened(path, 80)} ({listed(session.turn_number(o.call.turn) for o in readings)})"
            for path, readings in ranked[:NAMED]
        ]
        more = f" and {len(ranked) - NAMED} more files" if len(ranked) > NAMED else ""
        message = (
            f"{len(old)} outdated readings take {tokens:,} tokens, {tokens / window:.0%} of the window: the files were "
            "changed since, and how they are now stands further down"
        )
        hint = (
            f"clear the results of {', '.join(told)}{more}: {tokens:,} tokens that nothing needs any more "
            "(`ctxctl compact --strategy tool-results` shortens old results)"
        )
        blocks = session.trace.blocks
        quotes = []
        for _, readings in ranked[:NAMED]:
            for call in (readings[0].call, readings[0].change, readings[0].newer):
                quotes.append(quote(blocks[call.block], session.turn_number(call.turn), call.shown))
        newest = max(old, key=lambda one: one.newer.block)
        turns = sorted({session.turn_number(one.call.turn) for one in old})
        yield self.finding(
            message,
            turn=session.turn_number(newest.newer.turn),
            line=blocks[newest.newer.block].source.line,
            turns=turns,
            quotes=quotes,
            counts={"results": len(old), "files": len(files), "tokens": tokens, "share": tokens / window},
            hint=hint,
        )

    def _failed(self, session: Session, one: Misled) -> Finding:
        blocks = session.trace.blocks
        read, changed, at = (session.turn_number(c.turn) for c in (one.reading, one.change, one.call))
        path = shortened(one.path, 100)
        message = (
            f"the edit of {path} in turn {at:,} failed: its text is that of turn {read:,}, and the file was changed in "
            f"turn {changed:,}"
        )
        hint = (
            f"clear the outdated result of turn {read:,} ({one.reading.tokens:,} tokens) once the file is changed, and "
            f"read {path} again before the next edit"
        )
        calls = (one.reading, one.change, one.call)
        quotes = [
            quote(blocks[c.block], session.turn_number(c.turn), one.text if c is one.call else c.shown) for c in calls
        ]
        line = blocks[one.call.block].source.line
        counts = {"tokens": one.reading.tokens}
        return self.finding(
            message, turn=at, line=line, turns=(read, changed, at), quotes=quotes, counts=counts, hint=hint
        )

    def _followed(self, session: Session, one: Overruled, earlier: int) -> Finding:
        blocks = session.trace.blocks
        numbers = (earlier, one.ban, one.again)
        turns = [session.turn_number(max(1, blocks[n].turn)) for n in numbers]
        message = (
            f"the agent used {one.name!r} again in turn {turns[2]:,}, although the user had said otherwise in turn "
            f"{turns[1]:,}; its own use of turn {turns[0]:,} is still in the window"
        )
        hint = (
            f"take what turn {turns[0]:,} shows of {one.name!r} out of the window, and keep the correction in sight: "
            f"pin `{shortened(one.said, 80)}`"
        )
        texts = (one.earlier_text, one.said, one.text)
        quotes = [quote(blocks[n], t, text) for n, t, text in zip(numbers, turns, texts, strict=True)]
        line = blocks[one.again].source.line
        counts = {"turns_apart": turns[2] - turns[1]}
        return self.finding(message, turn=turns[2], line=line, turns=turns, quotes=quotes, counts=counts, hint=hint)
