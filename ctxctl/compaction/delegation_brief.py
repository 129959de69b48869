"""What a helper is told that does a subtask in a window of its own (requirement C6)."""

from __future__ import annotations

from ctxctl.compaction.base import Scene
from ctxctl.compaction.subtasks import Run
from ctxctl.facts.condense import first_line

RESULT = 1_000
"""Tokens that a helper may return."""
CONSTRAINTS = 3
"""Constraints of the user that a brief repeats, at most."""


def brief_of(scene: Scene, run: Run) -> str:
    """The brief for a helper: the goal and not the procedure, what to return, what it may not do, and what it
    can't find out by itself."""
    facts = scene.facts()
    question = first_line(run.steps[0].text, 300, scene.clean)
    targets = list(dict.fromkeys(target for step in run.steps for _, target in step.calls if target))
    lines = [f"Goal: {question or _GOALS[run.kind]}"]
    if facts.goal:
        lines.append(f"It serves: {first_line(facts.goal, 300, scene.clean)}")
    if run.kind == "parallel":
        lines.append(f"Items, each on its own: {', '.join(targets[:20])}" + _more(len(targets) - 20))
    lines += [
        f"Return: a list, at most {RESULT:,} tokens: the answer first, then each place as path:line with one sentence; "
        "what was looked at without result in one line; what stays open. No contents of files, no log of steps.",
        f"Constraints: no edits; at most {max(run.calls, 1)} calls; {_STOPS[run.kind]}.",
    ]
    context = [f"- {text}" for text in facts.constraints[:CONSTRAINTS]]
    if run.kind != "parallel" and targets:
        context.append(f"- start at: {', '.join(targets[:3])}")
    if context:
        lines += ["Context:", *context]
    return "\n".join(lines)


_GOALS = {
    "search": "find out what the session needs to know here",
    "state": "bring the state to where the answer can be read, and report it",
    "parallel": "answer the same question for each item",
}
_STOPS = {
    "search": "stop at the first hit that answers the goal",
    "state": "stop once the answer is seen, and leave the state as it was found",
    "parallel": "stop at each item once it is answered; items don't wait for each other",
}


def _more(left: int) -> str:
    return f" and {left} more" if left > 0 else ""
