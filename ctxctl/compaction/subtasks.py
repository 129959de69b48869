"""Subtasks that could have run in a window of their own (requirement C6): where they are, and what of them is used
again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ctxctl.compaction.base import Scene
from ctxctl.compaction.boundary import Group, groups_of
from ctxctl.compaction.callkinds import kind_of_call
from ctxctl.compaction.oldpart import old_part
from ctxctl.facts.tools import SHELL
from ctxctl.facts.tools import kind_of as tool_kind
from ctxctl.model.text import shortened
from ctxctl.model.window import Window
from ctxctl.trace.atoms import HEADLINE, call_text, fenced_command, key_of, kind_of, words

LOOP, STATE, PARALLEL = 8, 4, 5
"""Calls from which on a loop of search and read, one over local state, or independent items are a subtask: a few steps
are cheaper done in place (`ctxctl.compaction.delegation_cost` names the break-even)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model with its calls and their results. kinds: of its calls, see `callkinds`; calls: (tool,
    target); text: what the model wrote beside them; results: numbers of the result blocks."""

    units: tuple[int, ...]
    kinds: frozenset[str | None] = frozenset()
    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""
    results: tuple[int, ...] = ()
    turn: int = 0
    place: int = 0
    free: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """Steps in a row that make a subtask. kind: `search`, `state` or `parallel`. used: steps whose output was used
    after the subtask's own conclusion. conclusion: what the model wrote right after it. before: tokens in front."""

    kind: str
    steps: tuple[Step, ...]
    used: tuple[Step, ...] = ()
    conclusion: str = ""
    before: int = 0

    @property
    def calls(self) -> int:
        """How many calls, those whose output was used among them."""
        return sum(len(step.calls) for step in self.steps)

    @property
    def units(self) -> tuple[int, ...]:
        """Units that can go."""
        kept = {u for step in self.used for u in step.units}
        return tuple(u for step in self.steps for u in step.units if u not in kept)


def runs_of(scene: Scene) -> list[Run]:
    """The subtasks of a window that may be replaced, in order."""
    window = scene.window
    free = old_part(scene) - window.summaries
    steps = list(_steps(scene, free))
    walls = sorted(window.place(b) for u in window.fixed for b in window.present(u))
    found: list[tuple[str, int, int]] = []
    at = 0
    while at < len(steps):
        end = at
        wall = bisect_left(walls, steps[at].place)  # what is pinned stays between what was before and after it
        last = walls[wall] if wall < len(walls) else float("inf")
        while end < len(steps) and steps[end].place < last and _delegable(steps[end]) and _same(steps[at], steps[end]):
            end += 1
        if end > at and (kind := _kind(steps[at:end])):
            found.append((kind, at, end))
        at = max(end, at + 1)
    return _with_uses(window, steps, found)


def _steps(scene: Scene, free: set[int]) -> Iterator[Step]:
    """All groups of the window as steps; of a text-only agent an answer's command is its call."""
    for group in groups_of(scene.window):
        step = _step(scene, group, free)
        told = step.results and not step.calls and not step.kinds
        yield _told(step) if told and fenced_command(step.text) else step


def _step(scene: Scene, group: Group, free: set[int]) -> Step:
    window = scene.window
    kinds: set[str | None] = set()
    calls: list[tuple[str, str]] = []
    texts: list[str] = []
    results: list[int] = []
    turn = 0
    for unit in group.units:
        for number in window.present(unit):
            block = window.block(number)
            if block.role == "assistant":
                turn = max(turn, block.turn)
            if block.kind == "tool_call":
                name = block.tool_name or "unknown"
                command = (key_of(block.text) or "").removeprefix(f"call {name} ")
                kinds.add(kind_of_call(name, command))
                calls.append((name, block.target or shortened(command, 120)))
            elif block.kind == "assistant":
                texts.append(scene.told(number).text)
            elif block.kind == "tool_result":
                results.append(number)
            elif block.kind != "thinking":
                kinds.add(None)
    return Step(
        group.units,
        frozenset(kinds),
        tuple(calls),
        "\n".join(texts),
        tuple(results),
        turn,
        group.place,
        all(u in free for u in group.units),
    )


def _told(step: Step) -> Step:
    command = (fenced_command(step.text) or "").removeprefix("call ")
    return replace(step, kinds=frozenset((kind_of_call("bash", command),)), calls=(("bash", shortened(command, 120)),))


def _delegable(step: Step) -> bool:
    return step.free and bool(step.calls) and bool(step.results) and None not in step.kinds


def _same(first: Step, step: Step) -> bool:
    """Whether two steps belong to one subtask: both look around, or both work on the same kind of state."""
    return ("state" in first.kinds) == ("state" in step.kinds) and ("check" in first.kinds) == ("check" in step.kinds)


def _kind(steps: Sequence[Step]) -> str | None:
    """What kind of subtask steps are; None when they are too few."""
    calls = [call for step in steps for call in step.calls]
    if any("state" in step.kinds for step in steps):
        return "state" if len(calls) >= STATE else None
    targets = [target for _, target in calls]
    # of a shell, calls of one program are the same
    tools = {f"{name} {target.split(' ', 1)[0]}" if tool_kind(name) == SHELL else name for name, target in calls}
    if len(calls) >= PARALLEL and len(tools) == 1 and "" not in targets and len(set(targets)) == len(targets):
        return "parallel"
    if any("check" in step.kinds for step in steps):
        return None
    return "search" if len(calls) >= LOOP else None


def _with_uses(window: Window, steps: Sequence[Step], found: Sequence[tuple[str, int, int]]) -> list[Run]:
    """Runs with the steps whose output was used later, told from the end backwards in one pass."""
    if not found:
        return []
    known: set[str] = set()
    for unit in window.fixed:
        for number in window.present(unit):
            known |= atoms_of(window.block(number).text)
    later: set[str] = set()
    runs: list[Run] = []
    done = len(steps)
    for kind, start, end in reversed(found):
        while done > end + 1:
            done -= 1
            later |= _written(window, steps[done])
        after = steps[end] if end < len(steps) else None
        conclusion = after.text if after is not None else ""
        inside = steps[start:end]
        outputs = [
            set().union(*(atoms_of(window.block(b).text) for b in step.results), *(atoms_of(t) for _, t in step.calls))
            for step in inside
        ]
        often = Counter(atom for output in outputs for atom in output)
        common = {atom for atom, times in often.items() if times * 2 > len(inside) and times > 1}
        wanted = later - known - common - atoms_of(conclusion)
        used = tuple(step for step, output in zip(inside, outputs, strict=True) if output & wanted)
        before = min(window.tokens_before(window.place(b)) for b in window.present(inside[0].units[0]))
        runs.append(Run(kind, tuple(inside), used, conclusion, before))
    return runs[::-1]


def _written(window: Window, step: Step) -> set[str]:
    """Atoms of what the model wrote in a step."""
    found = atoms_of(step.text)
    for unit in step.units:
        for number in window.present(unit):
            block = window.block(number)
            if block.kind == "tool_call":
                found |= atoms_of(call_text(block.text))
    return found


def atoms_of(text: str) -> set[str]:
    """Paths, identifiers and numbers of three digits or more in a text."""
    return {word for word in words(text) if (kind := kind_of(word)) in HEADLINE and (kind != "number" or len(word) > 2)}
