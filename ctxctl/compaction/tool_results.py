"""tool-results: long outputs that the model has answered shrink to their key findings (requirement C4)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.coverage import CHARACTERS_PER_TOKEN, Source, chosen_lines
from ctxctl.facts.condense import findings, heading, is_placeholder, is_summary
from ctxctl.model.edits import Edits, Replace

REASON = "an answered output shrinks to its key findings"


@STRATEGIES.register("tool-results")
class ToolResults(Strategy):
    """Outputs above 500 tokens that a later call has answered shrink to about 200, the oldest first: the lines that
    name most of what nothing else in the window names, marked with tool and source, and how to get the rest back.

    Model: writes the findings in its own words.
    Fit: the first step; most windows are full of outputs that were read once.
    """

    name = "tool-results"

    def plan(self, scene: Scene) -> Edits:
        window = scene.window
        numbers = self._oldest(scene)
        if not numbers:
            return Edits()
        texts = self._texts(scene, numbers)
        changes: list[Replace] = []
        for number in numbers:
            tokens = scene.measure(number, texts[number])
            if tokens < window.entries[number].tokens:
                changes.append(Replace(number, texts[number], tokens, REASON))
        return Edits(replaces=changes, reason=self.name)

    def _oldest(self, scene: Scene) -> list[int]:
        """As many long outputs as it takes, the oldest first."""
        window, over = scene.window, scene.over
        protected = window.protected()
        found: list[int] = []
        for unit in sorted(window.resident):
            if over <= 0:
                break
            if unit in protected:
                continue
            for number in window.present(unit):
                block, entry = window.block(number), window.entries[number]
                if block.kind != "tool_result" or entry.replaced or is_summary(block.text):
                    continue
                if entry.tokens > scene.options.summarization_threshold_tokens and not is_placeholder(block.text):
                    found.append(number)
                    over -= entry.tokens - scene.options.findings_tokens
        return found

    def _texts(self, scene: Scene, numbers: Sequence[int]) -> dict[int, str]:
        window, most = scene.window, scene.options.findings_tokens
        made: dict[int, str] = {}
        if scene.helper is not None:
            for number in numbers:
                block = window.block(number)
                text = scene.helper.write(self.name, heading(block), block.text, most)
                if text:
                    made[number] = f"{heading(block, block.id if scene.recall else None)}: {text}"
        left = [number for number in numbers if number not in made]
        span = max((window.turn - window.block(n).turn for n in left), default=1) or 1
        sources = [Source(n, scene.told(n).text, (window.turn - window.block(n).turn) / span) for n in left]
        going = set(numbers)
        staying = [window.text(b) for b in window.entries if b not in going]
        caps = {n: int(most * CHARACTERS_PER_TOKEN) for n in left}
        chosen = chosen_lines(
            sources, most * len(left), lambda text: scene.count(text, "tool_result"), staying, caps, scene.clean
        )
        for number in left:
            block = window.block(number)
            made[number] = findings(block, chosen.get(number, []), block.id if scene.recall else None)
        return made
