"""first-line: a control that others are held against. The oldest text shrinks to its first line."""

from __future__ import annotations

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.progressive import SHRUNK
from ctxctl.facts.condense import first_line
from ctxctl.model.edits import Edits, Replace


@STRATEGIES.register("first-line")
class FirstLine(Strategy):
    """The oldest texts shrink to their first line of at most 200 characters, until the target is met.

    Model: none.
    Fit: to measure others by.
    """

    name = "first-line"
    group = "control"

    def plan(self, scene: Scene) -> Edits:
        window, over = scene.window, scene.over
        protected = window.protected()
        changes: list[Replace] = []
        for unit in sorted(window.resident):
            if over <= 0:
                break
            if unit in protected:
                continue
            for number in window.present(unit):
                block, entry = scene.told(number), window.entries[number]
                if block.kind not in SHRUNK or not (text := first_line(block.text, clean=scene.clean)):
                    continue
                tokens = scene.measure(number, text)
                if tokens < entry.tokens:
                    changes.append(Replace(number, text, tokens, "its first line"))
                    over -= entry.tokens - tokens
        return Edits(replaces=changes, reason=self.name)
