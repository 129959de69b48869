"""notes: what the session knows goes to the notes file, a short summary points there (requirement C3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.material import material_of
from ctxctl.compaction.oldpart import old_part
from ctxctl.compaction.replacing import replacing, summary_room
from ctxctl.facts.condense import MARK
from ctxctl.facts.noted import NEXT, POINTER, changed, lines_of, of_agent
from ctxctl.model.edits import Edits, Note
from ctxctl.model.summary import SessionSummary
from ctxctl.model.window import Window

TYPES = ("decision", "done", "lesson", "issue", "plan")
MODEL_TOKENS = 2_000
"""Tokens of the entries that a model may write at most."""
_ENTRY = re.compile(r"[-*\s]*\**(decision|done|lesson|issue|plan)\**\s*:\**\s*(\S.*)", re.IGNORECASE)


@STRATEGIES.register("notes")
class Notes(Strategy):
    """Decisions, finished and open work, lessons and issues become entries of the notes file; then a short summary
    takes the place of the old part: goal, constraints, open work, the next step, and where the notes are.

    Model: adds entries that only prose tells.
    Fit: long work over several windows, where the next one starts from the notes.
    """

    name = "notes"

    def __init__(self) -> None:
        self._noted: set[Note] = set()
        self._waiting: tuple[int, list[Note]] | None = None

    def plan(self, scene: Scene) -> Edits:
        window, options = scene.window, scene.options
        if scene.over <= 0:
            return Edits()
        leaving = old_part(scene)
        if leaving <= window.summaries:  # nothing but earlier summaries
            return Edits()
        facts = scene.facts()
        before = sum(window.resident[u] for u in leaving)
        most = min(before - 1, max(1, summary_room(scene, options.summary_share, used=True)))
        edits = replacing(scene, leaving, self._summary(scene, facts, leaving, most), self.name)
        if not edits:
            return Edits()
        self._settle(window)
        written = (*entries_of(facts), *self._written(scene, facts, leaving))
        fresh = [note for note in dict.fromkeys(written) if note not in self._noted]
        self._waiting = edits.replaces[0].block, fresh
        return Edits(edits.drops, edits.replaces, reason=self.name, entries=fresh)

    def _settle(self, window: Window) -> None:
        """What was to be noted counts as noted once the edits that came with it were carried out."""
        if self._waiting is not None:
            block, notes = self._waiting
            if block in window.entries and window.entries[block].replaced:
                self._noted.update(notes)

    def _written(self, scene: Scene, facts: SessionSummary, leaving: set[int]) -> Iterator[Note]:
        """Entries that the model wrote; lines that are none are left out."""
        if scene.helper is None:
            return
        window = scene.window
        material = material_of(window, leaving)
        made = scene.helper.write(self.name, facts.goal, material, MODEL_TOKENS)
        for line in (made or "").split("\n"):
            if match := _ENTRY.match(line):
                yield Note(match[1].lower(), match[2].strip())

    def _summary(self, scene: Scene, facts: SessionSummary, leaving: set[int], most: int) -> str:
        window = scene.window
        turns = [window.block(b).turn for u in leaving for b in window.present(u)]
        first = min(min(turns), facts.turns[0] or min(turns))
        head = f"{MARK} turns {first}-{max(turns)}{POINTER}{scene.options.notes_file}"
        tail = f"Originals: {scene.recall}" if scene.recall else ""
        omit_goal = any(window.units[u].pinned == "task" for u in window.fixed)
        lines = list(lines_of(facts, omit_goal))
        return _fitted(head, lines, tail, most, lambda text: scene.count(text, "summary"))


def entries_of(facts: SessionSummary) -> list[Note]:
    """What a session's facts hold, as entries for the notes file, each once."""
    found: dict[Note, None] = {}

    def put(kind: str, texts: Iterable[str]) -> None:
        for text in texts:
            if text := text.strip():
                found[Note(kind, text)] = None

    put("decision", (f"{d.what} (because: {d.why})" if d.why else d.what for d in facts.decisions))
    put("done", (f"{t.text}{of_agent(t.agent)}" for t in facts.todos if t.status == "done"))
    put("done", (f"commit {c.id}: {c.message}" if c.id else f"commit: {c.message}" for c in facts.commits))
    put("done", (changed(f.path, f.actions) for f in facts.files if f.role == "modified"))
    put("done", (_test(t.command, t.outcome, t.detail) for t in facts.tests if t.outcome == "passed"))
    put("lesson", facts.learnings)
    put("lesson", facts.dead_ends)
    put("issue", facts.open_issues)
    put("issue", facts.errors)
    put("issue", (_test(t.command, t.outcome, t.detail) for t in facts.tests if t.outcome == "failed"))
    for status in ("doing", "planned"):
        put("plan", (f"{t.text} ({status}){of_agent(t.agent)}" for t in facts.todos if t.status == status))
    put("plan", (f"{NEXT}{text.removeprefix('Next: ')}" for text in facts.next_steps))
    return list(found)


def _test(command: str, outcome: str, detail: str) -> str:
    return f"{command}: {outcome}" + (f", {detail}" if detail else "")


def _fitted(head: str, lines: list[str], tail: str, most: int, count: Callable[[str], int]) -> str:
    """As many lines as so many tokens hold, the first ones, and how many were left out."""
    ends = [tail] if tail else []
    left = most - count("\n".join((head, *ends))) - (count(f"({len(lines)} more in the notes)") + 1)
    keep = 0
    while keep < len(lines) and left >= 0:
        left -= count(lines[keep]) + 1
        keep += left >= 0
    if keep == len(lines) - 1 and count("\n".join((head, *lines, *ends))) <= most:
        keep += 1  # the line that says how many are left out is not needed
    more = [f"({len(lines) - keep} more in the notes)"] if keep < len(lines) else []
    return "\n".join((head, *lines[:keep], *more, *ends))
