"""progressive: what is older is told in less detail (requirement C5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.carried import marks_off
from ctxctl.compaction.conversation import covered, facts_within
from ctxctl.compaction.coverage import Source, chosen_lines
from ctxctl.compaction.digest import fit
from ctxctl.compaction.replacing import replacing
from ctxctl.facts.condense import MARK, first_line, gist, heading, is_placeholder
from ctxctl.facts.layout import TOLD
from ctxctl.facts.parse import tales
from ctxctl.model.edits import Edits, Replace

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
        folded, done = self._fold(scene, protected)
        drops, changes = list(folded.drops), list(folded.replaces)
        if folded:
            over -= sum(window.resident[u] for u in done) - changes[0].tokens
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
            age, block = self._age(scene, number), scene.told(number)
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
        sources = [Source(n, scene.told(n).text, self._age(scene, n) / span) for n in left]
        going = set(numbers)
        staying = [window.text(b) for b in window.entries if b not in going]
        most = sum(caps.values())
        chosen = chosen_lines(sources, most, lambda text: scene.count(text, "tool_result"), staying, caps, scene.clean)
        for number in left:
            made[number] = gist(scene.told(number), chosen.get(number, []), caps[number], scene.clean)
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

    def _fold(self, scene: Scene, protected: set[int]) -> tuple[Edits, set[int]]:
        """One summary in the place of the oldest exchanges, with a line for each, and the units that it replaces.
        Earlier summaries are merged into it, and since calls leave that told them, so are the facts of the session."""
        window, oldest = scene.window, scene.options.progressive.l3_title
        found = self._exchanges(scene, protected).values()
        old = [units for units in found if min(window.turn - window.units[u].turn for u in units) > oldest]
        if not old:
            return Edits(), set()
        earlier = {u for u in window.summaries if u in window.resident}
        most = min(int(scene.target * scene.options.summary_share), sum(window.resident[u] for us in old for u in us))

        def count(text: str) -> int:
            return scene.count(text, "summary")

        typed = facts_within(scene, (), most, count)
        over = scene.over + count(typed) + scene.frame - sum(window.resident[u] for u in earlier)
        lines: list[tuple[int, int, str]] = []
        leaving = set(earlier)
        for units in old:
            if over <= 0:
                break
            line = self._line(scene, units)
            if (saved := sum(window.resident[u] for u in units) - count(line[2])) > 0:
                lines.append(line)
                leaving.update(units)
                over -= saved
        if not lines:
            return Edits(), set()
        before = [window.text(b) for u in sorted(earlier) for b in window.present(u)]
        room = max(most, sum(count(line) for *_, line in lines))
        text = _text(lines, before, typed, room, covered(scene, leaving), count)
        edits = replacing(scene, leaving, text, f"exchanges folded after {oldest} turns")
        return edits, leaving if edits else set()

    def _line(self, scene: Scene, units: list[int]) -> tuple[int, int, str]:
        """First turn, last turn and the line of an exchange: what was asked, and what came of it."""
        blocks = [scene.told(b) for u in units for b in scene.window.present(u)]
        asked = next((b.text for b in blocks if b.kind == "user_message"), "")
        answers = [b.text for b in blocks if b.kind == "assistant"]
        calls = sum(b.kind == "tool_call" for b in blocks)
        said = first_line(asked, FOLD // 2, scene.clean) or f"{calls} calls"
        outcome = first_line(answers[-1], FOLD // 2, scene.clean) if answers else ""
        first, last = min(b.turn for b in blocks), max(b.turn for b in blocks)
        return first, last, f"turns {first}-{last}: {said}" + (f" -> {outcome}" if outcome else "")


def _text(
    lines: Sequence[tuple[int, int, str]],
    before: Sequence[str],
    typed: str,
    most: int,
    turns: tuple[int, int],
    count: Callable[[str], int],
) -> str:
    """The summary of folded exchanges: the line alone where there is one and nothing else to tell."""
    facts = typed.partition("\n")[2]
    if len(lines) == 1 and not facts and not before:
        return f"{MARK} {lines[0][2]}"
    first = min(line[0] for line in lines)
    head = f"{MARK} turns {turns[0] if before else first}-{turns[1]}"
    head = "\n".join(part for part in (head, facts, f"## {TOLD}") if part)
    told = [line for text in before for _, kept in tales(text) for line in kept]
    told += [f"- {line}" for *_, line in lines]
    body = fit([marks_off(line) for line in told], max(most - count(head), 0), count, 0)
    return f"{head}\n{body}" if body else head.removesuffix(f"\n## {TOLD}")
