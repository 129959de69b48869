"""progressive: what is older is told in less detail (requirement C5)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.coverage import Source, chosen_lines
from ctxctl.facts.condense import first_line, gist, heading, is_placeholder
from ctxctl.model.edits import SUMMARY, Drop, Edits, Replace

SHRUNK = frozenset(("assistant", "tool_result", "memory_injection", "document", "user_message"))
"""Kinds whose text may be told in less detail. Calls keep their arguments and reasoning its signature."""
KEY_POINTS, ONE_LINE, TITLE, FOLD = 300, 100, 80, 160
"""Characters of each level, and of the line that stands for a whole exchange."""


@STRATEGIES.register("progressive")
class Progressive(Strategy):
    """By age in turns: as it is (1), key points (5), one line (15), a title with the outcome (50), then one line per
    exchange. The oldest shrink first, until the target is met; each level is made from the original.

    Model: writes the key points; lines and titles stay extractive.
    Fit: long sessions in which the recent past matters most.
    """

    name = "progressive"

    def plan(self, scene: Scene) -> Edits:
        window, over = scene.window, scene.over
        if over <= 0:
            return Edits()
        protected = window.protected()
        ages = scene.options.progressive
        drops: list[Drop] = []
        changes: list[Replace] = []
        done: set[int] = set()
        for units in self._exchanges(scene, protected).values():
            if over <= 0:
                break
            if min(window.turn - window.units[u].turn for u in units) > ages.l3_title:
                over -= self._fold(scene, units, drops, changes)
                done.update(units)
        old = self._old(scene, protected, done)
        texts = self._texts(scene, old)
        for number in old:
            if over <= 0:
                break
            entry = window.entries[number]
            tokens = scene.measure(number, texts[number])
            if texts[number] and tokens < entry.tokens:
                age = self._age(scene, number)
                changes.append(Replace(number, texts[number], tokens, f"{age} turns old"))
                over -= entry.tokens - tokens
        return Edits(drops, changes, reason=self.name)

    def _age(self, scene: Scene, number: int) -> int:
        window = scene.window
        return window.turn - window.units[window.unit_of[number]].turn

    def _old(self, scene: Scene, protected: set[int], done: set[int]) -> list[int]:
        """Blocks that a level is about, the oldest first."""
        window = scene.window
        return [
            number
            for unit in sorted(window.resident)
            if unit not in protected and unit not in done
            for number in window.present(unit)
            if window.block(number).kind in SHRUNK
            and self._age(scene, number) > scene.options.progressive.l0_full
            and not is_placeholder(window.text(number))
        ]

    def _texts(self, scene: Scene, numbers: Sequence[int]) -> dict[int, str]:
        """What each block becomes at its level, never longer than it is."""
        window, ages = scene.window, scene.options.progressive
        caps: dict[int, int] = {}
        made: dict[int, str] = {}
        for number in numbers:
            age, block = self._age(scene, number), window.block(number)
            level = KEY_POINTS if age <= ages.l1_keypoints else ONE_LINE if age <= ages.l2_oneline else TITLE
            if len(block.text) <= level:
                made[number] = block.text
            elif level == KEY_POINTS and scene.helper is not None:
                text = scene.helper.write(self.name, heading(block), block.text, KEY_POINTS // 4)
                made[number] = f"{heading(block)}: {text}" if text else ""
            if not made.get(number):
                caps[number] = level
        left = [n for n in numbers if n in caps]
        span = max((self._age(scene, n) for n in left), default=1) or 1
        sources = [Source(n, window.block(n).text, self._age(scene, n) / span) for n in left]
        going = set(numbers)
        staying = [window.text(b) for b in window.entries if b not in going]
        most = sum(caps.values())
        chosen = chosen_lines(sources, most, lambda text: scene.count(text, "tool_result"), staying, caps)
        for number in left:
            made[number] = gist(window.block(number), chosen.get(number, []), caps[number])
        return made

    def _exchanges(self, scene: Scene, protected: set[int]) -> dict[int, list[int]]:
        """Units that may leave by exchange, oldest first; those without one stay out."""
        window = scene.window
        found: dict[int, list[int]] = {}
        for unit in sorted(window.resident):
            exchange = window.units[unit].exchange
            if exchange > 0 and exchange != window.exchange and unit not in protected:
                found.setdefault(exchange, []).append(unit)
        return found

    def _fold(self, scene: Scene, units: list[int], drops: list[Drop], changes: list[Replace]) -> int:
        """One line for an exchange; returns the tokens that it saves."""
        window = scene.window
        numbers = [b for u in units for b in window.present(u)]
        blocks = [window.block(b) for b in numbers]
        asked = next((b.text for b in blocks if b.kind == "user_message"), "")
        answers = [b.text for b in blocks if b.kind == "assistant"]
        calls = sum(b.kind == "tool_call" for b in blocks)
        said = first_line(asked, FOLD // 2) or f"{calls} calls"
        outcome = first_line(answers[-1], FOLD // 2) if answers else ""
        first, last = min(b.turn for b in blocks), max(b.turn for b in blocks)
        text = f"[summary] turns {first}-{last}: {said}" + (f" -> {outcome}" if outcome else "")
        carrier = min(numbers, key=window.place)
        tokens = scene.measure(carrier, text, summary=True)
        before = sum(window.entries[b].tokens for b in numbers)
        if tokens >= before:
            return 0
        reason = f"exchange folded after {scene.options.progressive.l3_title} turns"
        changes.append(Replace(carrier, text, tokens, reason, SUMMARY))
        for unit in units:
            leaving = tuple(b for b in window.present(unit) if b != carrier)
            if leaving:
                drops.append(Drop(unit, leaving, sum(window.entries[b].tokens for b in leaving), reason))
        return before - tokens
