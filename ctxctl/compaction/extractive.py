"""extractive: the old part becomes lines of its own words, within a fixed budget (requirement C10).

The triggers and shares are those of a compactor that works without a model in a known runtime: a safety margin of 1.2
on the estimate, the last 6 messages, two fifths of the budget for the old part.
"""

from __future__ import annotations

from functools import reduce
from math import floor

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.boundary import recent
from ctxctl.compaction.digest import digest, fit
from ctxctl.compaction.replacing import old_units, replacing, summary_room
from ctxctl.facts.condense import MARK
from ctxctl.facts.layout import TOLD
from ctxctl.facts.parse import parse, tales
from ctxctl.facts.summary import merge, render
from ctxctl.model.edits import Edits
from ctxctl.model.summary import SessionSummary
from ctxctl.model.window import Window

MARGIN, USABLE = 1.2, 0.8
RECENT_SHARE, OLD_SHARE = 0.5, 0.4
LEAST_MESSAGES = 7


def budget_of(size: int) -> int:
    """Tokens above which a window of so many is compacted: 85,333 of 128,000."""
    return floor(size * USABLE / MARGIN)


def messages_in(window: Window) -> int:
    """Messages of the window."""
    return len({(window.block(b).thread, window.block(b).message) for b in window.entries})


@STRATEGIES.register("extractive")
class Extractive(Strategy):
    """The last 6 messages and as many more as half of the budget holds stay; everything before becomes lines: who spoke
    and how it began, what was called and whether it failed, in at most 40 % of the budget.

    Model: none, ever.
    Fit: a fallback that can't fail, and chats.
    """

    name = "extractive"

    @classmethod
    def default_target(cls, size: int) -> int:
        return budget_of(size)

    def plan(self, scene: Scene) -> Edits:
        window = scene.window
        if scene.over <= 0 or messages_in(window) <= LEAST_MESSAGES:
            return Edits()
        old, _ = recent(window, scene.target * RECENT_SHARE, summary_room(scene, OLD_SHARE))
        leaving = old_units(window, old)
        if not leaving:
            return Edits()
        turns = [window.block(b).turn for u in leaving for b in window.present(u)]
        before = [window.text(b) for u in sorted(leaving & window.summaries) for b in window.present(u)]
        lines = [line for text in before for _, told in tales(text) for line in told] + digest(scene, old, leaving)
        head = f"{MARK} turns {min(turns)}-{max(turns)}"
        most = summary_room(scene, OLD_SHARE, used=True)

        def count(text: str) -> int:
            return scene.count(text, "summary")

        found = [facts for text in before if (facts := parse(text)) is not None]
        typed = render(reduce(merge, found, SessionSummary()), count, most // 2) if found else ""
        if "\n" in typed:
            # facts of an earlier summary stay facts, and what follows them is none
            head = "\n".join((head, typed.partition("\n")[2], f"## {TOLD}"))
        body = fit(lines, most - count(head) - 2, count)
        text = f"{head}\n{body}".rstrip() if body else head.removesuffix(f"\n## {TOLD}")
        return replacing(scene, leaving, text, self.name)
