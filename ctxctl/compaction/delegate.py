"""delegate: subtasks that could have run in a window of their own are replaced by their result (requirement C6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ctxctl.budgets.cost import Prices
from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.delegation_brief import RESULT, brief_of
from ctxctl.compaction.delegation_cost import LEAST_FIXED, Cost, Shape, cost_of
from ctxctl.compaction.material import material_of
from ctxctl.compaction.replacing import replacing
from ctxctl.compaction.subtasks import Run, Step, runs_of
from ctxctl.facts.condense import MARK, SIGNS, Clean, first_line
from ctxctl.facts.results import output
from ctxctl.model.edits import Drop, Edits, Replace
from ctxctl.model.text import shortened

RESULT_MOST = 2_000
"""Tokens of a condensed result that a model writes, at most; an extract keeps to what the brief allows."""
LINE, CONCLUSION = 140, 600
"""Characters of a finding, and of the conclusion."""
CHARACTERS_PER_TOKEN = 4
HIT_RATE = 0.9
"""Share of a prompt that its cache serves in a loop of calls, where it is not known."""
_PLACE = re.compile(r"[\w./-]+\.\w+:\d+")


@dataclass(frozen=True, slots=True)
class Subtask:
    """A part of a session that a helper could have done.

    kind: `search` (a loop of search and read), `state` (a browser, a database), `parallel` (the same for a list of
    targets). units: that would leave the window; kept: units of it whose output was used later, and which stay. turns:
    first and last. tokens: of the units. result_tokens: of what takes their place; saving: the difference.
    """

    kind: str
    units: tuple[int, ...]
    kept: tuple[int, ...]
    turns: tuple[int, int]
    calls: int
    tokens: int
    brief: str
    brief_tokens: int
    result: str
    result_tokens: int
    saving: int
    cost: Cost


def find_subtasks(scene: Scene, prices: Prices | None = None, hit_rate: float = HIT_RATE) -> list[Subtask]:
    """The subtasks of a window whose results would be shorter than their traces, in order. prices: of the model, for
    the cost in USD."""
    return [task for run in runs_of(scene) if (task := _subtask(scene, run, prices, hit_rate)) is not None]


@STRATEGIES.register("delegate")
class Delegate(Strategy):
    """Long loops of search and read, loops over a browser or database, and the same call over a list of targets become
    their condensed result, at most 1,000 tokens each: the conclusion, what each call found, failures. Calls whose
    output was used later stay. The largest saving comes first, until the target is met.

    Model: writes the report that a helper would have given, at most 2,000 tokens.
    Fit: exploring that ended in a short answer.
    """

    name = "delegate"

    def plan(self, scene: Scene) -> Edits:
        over = scene.over
        if over <= 0:
            return Edits()
        drops: list[Drop] = []
        replaces: list[Replace] = []
        for task in sorted(find_subtasks(scene), key=lambda t: (-t.saving, t.units)):
            if over <= 0:
                break
            text = _reported(scene, task)
            reason = f"{task.kind} subtask of {task.calls} calls, turns {task.turns[0]}-{task.turns[1]}"
            edits = replacing(scene, task.units, text, reason)
            drops += edits.drops
            replaces += edits.replaces
            over -= task.tokens - sum(c.tokens for c in edits.replaces) if edits else 0
        return Edits(drops, replaces, reason=self.name)


def _subtask(scene: Scene, run: Run, prices: Prices | None, hit_rate: float) -> Subtask | None:
    window = scene.window
    units = _whole(scene, run.units)
    if not units:
        return None
    steps = [step for step in run.steps if set(step.units) <= set(units)]
    tokens = sum(window.resident[u] for u in units)
    calls = sum(len(step.calls) for step in steps)
    turns = min(step.turn for step in steps), max(step.turn for step in steps)
    brief = brief_of(scene, run)
    most = min(RESULT, tokens // 2)
    result = _result(scene, run, steps, turns, most)
    result_tokens = scene.count(result, "summary") + scene.frame
    if result_tokens > most:
        return None
    brief_tokens = scene.count(brief, "user_message")
    kept = tuple(u for step in run.steps for u in step.units if u not in set(units))
    written = sum(
        window.entries[b].tokens for u in units for b in window.present(u) if window.block(b).role == "assistant"
    )
    fixed = (t for u, t in window.fixed.items() if window.units[u].kind in ("system", "tool_definitions"))
    shape = Shape(
        calls,
        run.before,
        tokens,
        brief_tokens,
        result_tokens,
        max(LEAST_FIXED, window.overhead + sum(fixed)),
        max(0, window.turn - turns[1]),
        written // max(1, calls),
    )
    return Subtask(
        run.kind,
        units,
        kept,
        turns,
        calls,
        tokens,
        brief,
        brief_tokens,
        result,
        result_tokens,
        tokens - result_tokens,
        cost_of(shape, prices, hit_rate, _seconds(scene, units)),
    )


def _whole(scene: Scene, units: tuple[int, ...]) -> tuple[int, ...]:
    """Units without those that are bound to one that stays."""
    going = set(units)
    for group in scene.window.bound():
        if not going.issuperset(group):
            going.difference_update(group)
    return tuple(u for u in units if u in going)


def _seconds(scene: Scene, units: tuple[int, ...]) -> float | None:
    """Time from the first to the last block, None when they have no times."""
    times = []
    for unit in units:
        for number in scene.window.present(unit):
            stamp = scene.window.block(number).timestamp
            try:
                times.append(datetime.fromisoformat(stamp).timestamp() if stamp else 0.0)
            except ValueError:
                continue
    times = [t for t in times if t]
    return max(0.0, max(times) - min(times)) if len(times) > 1 else None


def _result(scene: Scene, run: Run, steps: Sequence[Step], turns: tuple[int, int], most: int) -> str:
    """The condensed result in the session's own words."""
    calls = sum(len(step.calls) for step in steps)
    head = [f"{MARK} turns {turns[0]}-{turns[1]}: {_NAMES[run.kind]}, {calls} calls"]
    if asked := first_line(run.steps[0].text, 300, scene.clean):
        head.append(f"Question: {asked}")
    said = next((s.text for s in reversed(steps) if s.text.strip()), "")
    if said.strip() and first_line(said, 300, scene.clean) != asked:
        head.append(f"Last said: {_short(said, CONCLUSION, scene.clean)}")
    if scene.recall:
        head.append(f"Originals: {scene.recall}")
    room = max(LINE, (most - scene.count("\n".join(head), "summary")) * CHARACTERS_PER_TOKEN // max(1, calls) - LINE)
    failed, places, found = [], [], []
    for step in steps:
        for (tool, target), number in zip(step.calls, step.results, strict=False):
            block = scene.told(number)
            text = output(block.text)
            line = f"- {block.tool_name or tool} {block.target or target}".rstrip()
            if not text.strip():
                found.append(f"{line}: nothing")
            elif block.is_error:
                bad = next((x for x in text.split("\n") if any(sign in x for sign in SIGNS)), "") or text
                failed.append(f"{line}: failed, {first_line(bad, LINE, scene.clean)}")
            else:
                found.append(f"{line}: {_finding(text, room, scene.clean)}")
            places += _PLACE.findall(text)
    if places:
        head.append(f"Places: {', '.join(list(dict.fromkeys(places))[:12])}")
    return _fitted(scene, head, list(dict.fromkeys((*failed, *found))), most)


_NAMES = {"search": "search and read", "state": "work on a state of its own", "parallel": "the same for each item"}


def _finding(text: str, most: int, clean: Clean) -> str:
    """The first line of an output, lines that name a place or a failure as far as they fit, and how many it has."""
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    shown = [shortened(lines[0], LINE, clean)]
    left = most - len(shown[0])
    for line in lines[1:]:
        if left < len(line) + 3:
            continue
        if _PLACE.search(line) or any(sign in line for sign in SIGNS):
            shown.append(line)
            left -= len(line) + 3
    count = f" ({len(lines)} lines)" if len(lines) > len(shown) else ""
    return " | ".join(shown) + count


def _short(text: str, most: int, clean: Clean) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else shortened(text, most - 1, clean).rstrip() + "…"


def _fitted(scene: Scene, head: list[str], lines: list[str], most: int) -> str:
    left = most - scene.count("\n".join(head), "summary") - scene.count(f"({len(lines)} more calls)", "summary") - 2
    keep = 0
    while keep < len(lines) and (size := scene.count(lines[keep], "summary") + 1) <= left:
        left -= size
        keep += 1
    more = [f"({len(lines) - keep} more calls)"] if keep < len(lines) else []
    return "\n".join((*head, *lines[:keep], *more))


def _reported(scene: Scene, task: Subtask) -> str:
    """The result that takes the trace's place: the model's report under our own heading, else the extract."""
    if scene.helper is None:
        return task.result
    window = scene.window
    material = material_of(window, task.units)
    head = task.result.split("\n", 1)[0]
    most = min(RESULT_MOST, task.tokens - 1) - scene.count(head, "summary") - scene.frame - 1
    made = scene.helper.write("delegate", scene.facts().goal, material, most) if most > 0 else None
    return f"{head}\n{made}" if made else task.result
