"""levels: fidelity by age, kind or tool (requirement C11)."""

from __future__ import annotations

import re

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.boundary import groups_of
from ctxctl.compaction.material import material_of
from ctxctl.compaction.options import LevelRule
from ctxctl.compaction.replacing import old_units, replacing
from ctxctl.facts.condense import Clean, first_line, is_placeholder, is_summary
from ctxctl.facts.results import output
from ctxctl.model.block import Block
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.text import through
from ctxctl.model.window import Window

SHORTENED = frozenset(("assistant", "tool_result", "memory_injection", "document", "user_message"))
"""Kinds whose text may be shortened. Calls keep their arguments and reasoning its signature."""
HEAD, TAIL = 600, 400
"""Characters of the beginning and the end that a truncated text keeps."""
FIRST = 160
"""Characters of the line that a compact text keeps."""
_TRUNCATED = re.compile(r"\n\[… (\d+) of (\d+) characters left out …\]\n")
_COMPACT = re.compile(r" \[[^\[\]\n]{1,120}, (\d+) characters\]\Z")


@STRATEGIES.register("levels")
class Levels(Strategy):
    """Each block has a level: full, truncate (its beginning and end), compact (its first line and its tool), or summary
    (one typed summary takes the place of all of that level). By default the last 6 messages and what the user wrote are
    full, what is older than 15 turns is compact, and other tool results are truncated. The oldest shrink first, until
    the target is met.

    Model: tells what gets the level summary; the rest is the session's own text.
    Fit: agents whose outputs age by kind: logs fast, decisions slowly.
    """

    name = "levels"

    def plan(self, scene: Scene) -> Edits:
        window, over = scene.window, scene.over
        if over <= 0:
            return Edits()
        full = newest_units(window, scene.options.full_messages)
        groups = [group for group in groups_of(window) if full.isdisjoint(group.units)]
        free = old_units(window, groups) - window.summaries
        summed = {u for u in free if self._level(scene, u) == "summary"}
        # an answer and its results go whole, so that no summary comes to stand between a call and its result
        summed = {u for group in groups if summed.issuperset(group.units) for u in group.units}
        folded = self._fold(scene, summed)
        if folded:
            over -= sum(drop.tokens for drop in folded.drops)
            over -= sum(window.entries[c.block].tokens - c.tokens for c in folded.replaces)
            free -= summed
        changes = list(folded.replaces)
        for unit in sorted(free):
            if over <= 0:
                break
            for number in window.present(unit):
                change = self._shorter(scene, unit, number)
                if change is not None:
                    changes.append(change)
                    over -= window.entries[number].tokens - change.tokens
        return Edits(folded.drops, changes, reason=self.name)

    def _level(self, scene: Scene, unit: int) -> str:
        """The level of a unit: that of its newest block."""
        window = scene.window
        number = max(window.present(unit))
        return level_of(scene.options.levels, window.block(number), window.turn - window.units[unit].turn)

    def _shorter(self, scene: Scene, unit: int, number: int) -> Replace | None:
        window, block = scene.window, scene.told(number)
        if block.kind not in SHORTENED or is_placeholder(window.text(number)) or is_summary(block.text):
            return None
        age = window.turn - window.units[unit].turn
        level = level_of(scene.options.levels, block, age)
        if level == "compact":
            text = compact(block, scene.clean)
        else:
            text = truncated(block.text, scene.clean) if level == "truncate" else block.text
        if text == block.text or not text:
            return None
        tokens = scene.measure(number, text)
        if tokens >= window.entries[number].tokens:
            return None
        return Replace(number, text, tokens, f"level {level}, {age} turns old")

    def _fold(self, scene: Scene, units: set[int]) -> Edits:
        """The typed summary in the place of units, earlier summaries merged into it."""
        if not units:
            return Edits()
        from ctxctl.facts.layout import TOLD
        from ctxctl.facts.summary import render

        window = scene.window
        earlier = {u for u in window.summaries if u in window.resident}
        before = sum(window.resident[u] for u in units | earlier)
        text = render(
            scene.facts(),
            lambda text: scene.count(text, "summary"),
            max(1, before // 2),
            recall=scene.recall,
            omit_goal=any(window.units[u].pinned == "task" for u in window.fixed),
        )
        if scene.helper is not None:
            said = material_of(window, units)
            left = before // 2 - scene.count(f"{text}\n## {TOLD}\n", "summary")
            made = scene.helper.write("conversation", scene.facts().goal, said, left) if left > 0 else None
            text = f"{text}\n## {TOLD}\n{made}" if made else text
        return replacing(scene, units | earlier, text, "level summary")


def level_of(rules: tuple[LevelRule, ...], block: Block, age: int) -> str:
    """The level of a block that is so many turns old: of the first rule that fits, full where none does."""
    for rule in rules:
        if (
            (rule.older_than == 0 or age > rule.older_than)
            and rule.kind in (None, block.kind)
            and rule.tool in (None, block.tool_name)
        ):
            return rule.level
    return "full"


def newest_units(window: Window, messages: int) -> set[int]:
    """The units of the newest so many messages; what stands in front of every request is none."""
    found: set[int] = set()
    seen: set[tuple[str, int]] = set()
    for number in sorted(window.entries, key=window.place, reverse=True):
        block = window.block(number)
        if number < 0 or block.kind in ("system", "tool_definitions"):
            continue
        seen.add((block.thread, block.message))
        if len(seen) > messages:
            break
        found.add(window.unit_of[number])
    return found


def truncated(text: str, clean: Clean = str) -> str:
    """A text without its middle, which says how much was there. Short texts stay as they are, and what was truncated
    before. clean: takes credentials out of the lines that are cut."""
    if len(text) <= HEAD + TAIL + 80 or _TRUNCATED.search(text):
        return text
    left = len(text) - HEAD - TAIL
    head = clean(through(text, HEAD))[:HEAD]
    tail = clean(text[text.rfind("\n", 0, -TAIL) + 1 :])[-TAIL:]
    return f"{head}\n[… {left} of {len(text)} characters left out …]\n{tail}"


def compact(block: Block, clean: Clean | None = None) -> str:
    """The first line of a text and its tool, with how much was there."""
    text = block.text
    if len(text) <= FIRST or (len(text) <= 2 * FIRST and _COMPACT.search(text)):
        return text
    cut = _TRUNCATED.search(text)
    there = int(cut[2]) if cut is not None else len(text)
    what = (block.tool_name or block.kind).replace("[", "(").replace("]", ")").replace("\n", " ")[:100]
    return f"{first_line(output(text), FIRST, clean)} [{what}, {there} characters]"
