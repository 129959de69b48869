"""placeholders: old outputs are cleared, and one line says what was there and how to get it back (requirement C14)."""

from __future__ import annotations

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.facts.condense import is_placeholder, placeholder
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.window import Window

REASON = "an answered output is cleared"


@STRATEGIES.register("placeholders")
class Placeholders(Strategy):
    """Outputs that a later call has answered are cleared in one batch, the oldest first: a line with tool, target, size
    and how to recall it stands for each. The newest failure of each call stays, since a retry refers to it.

    Model: none.
    Fit: the cheapest step, where agents read again what they need.
    """

    name = "placeholders"

    def plan(self, scene: Scene) -> Edits:
        window, over = scene.window, scene.over
        exempt = window.protected() | _retried(window)
        changes: list[Replace] = []
        for unit in sorted(window.resident):
            if over <= 0:
                break
            if unit in exempt:
                continue
            for number in window.present(unit):
                block, entry = window.block(number), window.entries[number]
                if block.kind != "tool_result" or is_placeholder(window.text(number)):
                    continue
                text = placeholder(block, entry.tokens, f"{scene.recall} --id {block.id}" if scene.recall else "")
                tokens = scene.measure(number, text)
                if tokens < entry.tokens:
                    changes.append(Replace(number, text, tokens, REASON))
                    over -= entry.tokens - tokens
        return Edits(replaces=changes, reason=self.name)


def _retried(window: Window) -> set[int]:
    """Units with the newest failure of a call that has not gone well since."""
    newest: dict[tuple[str | None, str | None], tuple[int, bool]] = {}
    for unit in sorted(window.resident):
        for number in window.present(unit):
            block = window.block(number)
            if block.kind == "tool_result":
                newest[block.tool_name, block.target] = unit, block.is_error
    return {unit for unit, failed in newest.values() if failed}
