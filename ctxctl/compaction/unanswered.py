"""unanswered-results: the last resort. Results that no call has answered yet lose their middle, and say so.

They are protected from everything else (requirement E8): the next call is about them. But a result that is larger than
the window would end the session for good, and one that was cut can be asked for again.
"""

from __future__ import annotations

import re

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.model.edits import Edits, Replace

LEAST = 60
"""Tokens that a result keeps at least."""
NOTE = re.compile(r"\n\[… (\d{1,15}) of (\d{1,15}) characters left out …\]\n")
REASON = "the target can't be met otherwise: the middle of an unanswered result is left out"


@STRATEGIES.register("unanswered-results")
class UnansweredResults(Strategy):
    """Results that no call has answered yet lose their middle, the longest most, when the target can't be met
    otherwise. Beginning and end stay, with how many characters there were.

    Model: none.
    Fit: the last resort of every compaction; a single output that fills the window.
    """

    name = "unanswered-results"
    group = "last resort"

    def plan(self, scene: Scene) -> Edits:
        window = scene.window
        numbers = [
            n
            for u in sorted(window.fresh)
            if u not in window.kept and u in window.resident
            for n in window.present(u)
            if window.block(n).kind == "tool_result" and window.entries[n].tokens > LEAST
        ]
        level = self._level([window.entries[n].tokens for n in numbers], scene.over)
        changes: list[Replace] = []
        for number in numbers:
            entry, text = window.entries[number], scene.clean(window.text(number))
            if entry.tokens <= level:
                continue
            made = cut(text, level / max(entry.tokens, 1))
            tokens = scene.measure(number, made)
            for _ in range(6):  # what is cut out is not as dense as the rest
                if tokens <= level:
                    break
                made = cut(text, len(made) / max(len(text), 1) * level / tokens * 0.95)
                tokens = scene.measure(number, made)
            if tokens < entry.tokens:
                changes.append(Replace(number, made, tokens, REASON))
        return Edits(replaces=changes, reason=self.name)

    @staticmethod
    def _level(sizes: list[int], over: int) -> int:
        """The size to which all that are larger shrink so that so many tokens are free; no less than what stays."""
        low, high = LEAST, max(sizes, default=LEAST)
        while low < high:
            middle = (low + high + 1) // 2
            if sum(max(0, size - middle) for size in sizes) >= over:
                low = middle
            else:
                high = middle - 1
        return low


def cut(text: str, share: float) -> str:
    """Beginning and end of a text, about so much of it, with how many characters were left out between them. One that
    was cut before still says how many there were at first."""
    front = back = text
    total = len(text)
    before = NOTE.search(text)
    if before is not None:
        left_out, stated = int(before[1]), int(before[2])
        if len(text) - len(before[0]) + left_out == stated:
            front, back, total = text[: before.start()], text[before.end() :], stated
    note = f"\n[… {{}} of {total} characters left out …]\n"
    room = max(0, int(len(text) * min(share, 1.0)) - len(note) - 4)
    head = min(room * 2 // 3, len(front))
    tail = min(room - head, len(back))
    return front[:head] + note.format(total - head - tail) + (back[-tail:] if tail else "")
