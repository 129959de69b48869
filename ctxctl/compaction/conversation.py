"""conversation: the old part becomes one structured summary, the recent tail stays (requirement C2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.boundary import held_tokens, recent
from ctxctl.compaction.carried import marks_off, said_before, sources_before
from ctxctl.compaction.coverage import Source, chosen_lines
from ctxctl.compaction.digest import fit
from ctxctl.compaction.replacing import LEAST_SUMMARY, old_units, replacing, summary_room
from ctxctl.facts import layout
from ctxctl.facts.condense import first_line
from ctxctl.facts.shrunk import left_of
from ctxctl.facts.summary import render
from ctxctl.facts.todos import folded
from ctxctl.model.block import Block
from ctxctl.model.edits import Edits
from ctxctl.model.summary import SessionSummary
from ctxctl.model.window import Window
from ctxctl.trace.retention import said

FACTS_SHARE, MUST_SHARE, TALK_SHARE = 0.4, 0.9, 0.2
"""Parts of a summary that the facts may take, that those take which must be kept, and of the rest, how the agent's
answers began."""
LARGEST_PART = 0.6
"""A summary has at most so much of what it replaces."""
TOLD, SAID, FOUND = (f"## {title}" for title in layout.TALES)
SHORTEST_SAID = 20
"""Characters of an answer's first line that says something."""


@STRATEGIES.register("conversation")
class Conversation(Strategy):
    """One summary takes the place of the old part: goal, constraints, decisions, plan, files, tests, commits and open
    issues as the session's own tool calls tell them, then the lines of the old part that later turns most likely need.

    Model: tells the old part in its own words; the facts stay as they are.
    Fit: a window that is nearly full of what is settled.
    """

    name = "conversation"

    def plan(self, scene: Scene) -> Edits:
        window = scene.window
        if scene.over <= 0:
            return Edits()
        shares = scene.options
        held = held_tokens(window, window.summaries)
        limit = held + (scene.target - held) * shares.recent_share
        old, tail = recent(window, limit, summary_room(scene, shares.summary_share))
        leaving = old_units(window, old)
        if not leaving:
            return Edits()
        protected = window.protected()
        kept = sum(window.resident[u] for g in tail for u in g.units if u not in protected)
        free = scene.target - held - kept - scene.frame
        replaced = sum(window.entries[b].tokens for u in leaving for b in window.present(u))
        most = max(min(int(scene.target * shares.summary_share), free), min(LEAST_SUMMARY, free))
        most = min(most, int(replaced * LARGEST_PART))  # a summary of little is less
        return replacing(scene, leaving, self._summary(scene, leaving, most), self.name)

    def _summary(self, scene: Scene, leaving: set[int], most: int) -> str:
        def count(text: str) -> int:
            return scene.count(text, "summary")

        facts = scene.clean(facts_within(scene, leaving, most, count))
        left = most - count(facts) - 4
        told = marks_off(self._told(scene, leaving, left)) if left > LEAST_SUMMARY // 4 else ""
        text = f"{facts}\n{told}" if told else facts
        return text if count(text) <= most else facts

    def _told(self, scene: Scene, leaving: set[int], most: int) -> str:
        """What was said and found in the old part: by the model, else lines of it, the newest first to stay."""
        window = scene.window
        numbers = sorted((b for u in leaving for b in window.present(u)), key=window.place)
        if scene.helper is not None:
            material = "\n\n".join(
                f"[{window.block(b).role}, {window.block(b).kind}, turn {window.block(b).turn}]\n{window.block(b).text}"
                for b in numbers
                if window.block(b).kind != "thinking" and window.block(b).text.strip()
            )
            goal = scene.facts().goal
            made = scene.helper.write(self.name, goal, material, most - scene.count(TOLD, "summary") - 1)
            if made:
                return f"{TOLD}\n{made}"
        talk = self._talk(scene, numbers, int(most * TALK_SHARE))
        left = most - (scene.count(talk, "summary") + 1 if talk else 0)
        lines = self._lines(scene, numbers, left - scene.count(FOUND, "summary") - 1)
        return "\n".join(part for part in (talk, f"{FOUND}\n{lines}" if lines else "") if part)

    def _talk(self, scene: Scene, numbers: Sequence[int], most: int) -> str:
        """How each answer began, the newest first to stay: what the agent concluded and went on to."""
        window = scene.window
        answers = (own_words(window.block(b)) for b in numbers if window.block(b).kind == "assistant")
        texts = (first_line(scene.clean(text)) for text in answers)
        lines = said_before(window, numbers) + [f"- {text}" for text in texts if len(text) >= SHORTEST_SAID]
        lines = list(dict.fromkeys(lines))

        def count(text: str) -> int:
            return scene.count(text, "summary")

        body = fit(lines, most - count(SAID) - 1, count, 0)
        return f"{SAID}\n{body}" if body else ""

    def _lines(self, scene: Scene, numbers: Sequence[int], most: int) -> str:
        """Lines of the old part, each under what it comes from."""
        window = scene.window
        spoken = [b for b in numbers if window.block(b).kind not in ("thinking", "summary")]
        going = set(numbers)
        staying = [window.text(b) for b in window.entries if b not in going]
        oldest = max((window.turn - window.block(b).turn for b in spoken), default=1)
        sources = [
            Source(
                b,
                scene.clean(own_words(window.block(b))),
                (window.turn - window.block(b).turn) / max(oldest, 1),
            )
            for b in spoken
        ]
        heads = {b: f"- turn {window.block(b).turn}, {_name(window, b)}:" for b in spoken}
        before, named = sources_before(window, numbers)
        sources = [*before, *sources]
        heads |= named

        def count(text: str) -> int:
            return scene.count(text, "summary")

        left = most
        for _ in range(3):
            chosen = chosen_lines(sources, left, count, staying)
            text = "\n".join(line for b in (*named, *spoken) if b in chosen for line in (heads[b], *chosen[b]))
            if count(text) <= most:
                return text
            left -= count(text) - most + 4
        return ""


def _name(window: Window, number: int) -> str:
    block = window.block(number)
    return " ".join(part for part in (block.tool_name or block.kind.replace("_", " "), block.target) if part)


def own_words(block: Block) -> str:
    """The text of a block, without what was put around it when it shrank: summaries do not nest (requirement C9)."""
    left = left_of(block)
    return said(block) if left is None else left


def has_task(window: Window) -> bool:
    """Whether the message that states the task stands in the window as it is."""
    return any(window.units[u].pinned == "task" for u in window.fixed)


def covered(scene: Scene, leaving: Iterable[int]) -> tuple[int, int]:
    """First and last turn of what leaves, as the session counts them: a file that was written after a compaction counts
    anew."""
    window, (first, last) = scene.window, scene.facts().turns
    newest = max((window.block(b).turn for b in window.entries), default=0)
    turns = [window.block(b).turn + max(0, last - newest) for u in leaving for b in window.present(u)]
    return (min((first or 1, *turns)), max(turns, default=last))


def facts_within(scene: Scene, leaving: Iterable[int], most: int, count: Callable[[str], int]) -> str:
    """The session's facts as the first part of a summary of so many tokens, the rest of which tells what happened."""
    facts = replace(untold(scene.facts(), scene.window), turns=covered(scene, leaving))
    stays = has_task(scene.window)
    must = render(essential(facts), count, int(most * MUST_SHARE), recall=scene.recall, omit_goal=stays)
    room = max(int(most * FACTS_SHARE), count(must), min(most, LEAST_SUMMARY))
    return render(facts, count, room, recall=scene.recall, omit_goal=stays)


def essential(facts: SessionSummary) -> SessionSummary:
    """The facts that must be kept (requirement C2): no file that was only read, no earlier request, nothing that passed
    or that someone else summed up."""
    return replace(
        facts,
        files=tuple(file for file in facts.files if file.role == "modified"),
        tests=tuple(run for run in facts.tests if run.outcome != "passed"),
        requests=(),
        earlier=(),
        errors=(),
        learnings=(),
        dead_ends=(),
        left_out=(),
    )


def untold(facts: SessionSummary, window: Window) -> SessionSummary:
    """Facts without goal, requests and constraints of messages that stay for sure: the user's newest words are there
    once (rule V8), and so are those that are pinned."""
    staying = [
        folded(window.text(b))
        for unit in (*window.asked, *window.fixed)
        for b in window.present(unit)
        if window.block(b).kind == "user_message"
    ]

    def left(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if not any(folded(text) in said for said in staying))

    goal = (left((facts.goal,)) or ("",))[0]
    return replace(facts, goal=goal, requests=left(facts.requests), constraints=left(facts.constraints))
