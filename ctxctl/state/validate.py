"""What is wrong with a state, or no longer holds (requirement S5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ctxctl.model.state import AgentState
from ctxctl.model.text import shortened
from ctxctl.state.checks import Verified
from ctxctl.state.implicit import implicit
from ctxctl.state.shown import names, shown

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class StateWarning:
    """Something wrong with a state. code: stable. level: of an error the next window would start from something false
    or from nothing. paths: files that it is about."""

    code: str
    level: Level
    message: str
    hint: str
    paths: tuple[str, ...] = ()


def validate(state: AgentState, verified: Verified | None = None) -> tuple[StateWarning, ...]:
    """What is wrong with a state by itself, and with `verified` also what no longer holds. The most serious come first.

    Codes: missing_goal, invalid_window, misplaced_status, duplicate_id, stale_files, transcript_newer,
    transcript_missing, no_current, tail_missing, implicit_state.
    """
    found = [*_itself(state), *_subtasks(state), *(_now(state, verified) if verified is not None else ())]
    found += _tail(state, verified.base if verified is not None else None)
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda warning: order[warning.level]))


def _itself(state: AgentState) -> Iterator[StateWarning]:
    if not state.task_goal.strip():
        yield StateWarning(
            "missing_goal", "error", "the state has no goal", "`ctxctl checkpoint --set goal=TEXT` gives it one"
        )
    if state.window_id < 1:
        hint = "windows count from 1: correct `window_id` in the file"
        yield StateWarning("invalid_window", "error", f"the window id is {state.window_id}", hint)
    if state.state_version < 0:
        hint = "versions count from 0: correct `state_version` in the file"
        yield StateWarning("invalid_window", "error", f"the state version is {state.state_version}", hint)


def _subtasks(state: AgentState) -> Iterator[StateWarning]:
    ids = Counter(subtask.id for subtask in state.subtasks)
    for id_, count in ids.items():
        if count > 1:
            hint = "give each subtask of the file an id of its own, or none: the next checkpoint numbers those without"
            yield StateWarning("duplicate_id", "error", f"{count} subtasks have the id {shown(id_)!r}", hint)
    wrong = [(s, "completed_subtasks") for s in state.completed_subtasks if s.status != "done"]
    if state.current_subtask is not None and state.current_subtask.status != "doing":
        wrong.append((state.current_subtask, "current_subtask"))
    wrong += [(s, "remaining_subtasks") for s in state.remaining_subtasks if s.status == "done"]
    for subtask, key in wrong:
        yield StateWarning(
            "misplaced_status",
            "error",
            f"the subtask {shown(subtask.id)} stands in {key}, but is {subtask.status}: {_short(subtask.text)}",
            f"`ctxctl checkpoint --done {shown(subtask.id)}` if it is done, else correct the file",
        )
    if state.current_subtask is None and state.remaining_subtasks:
        count = len(state.remaining_subtasks)
        first = next((s for s in state.remaining_subtasks if s.status == "planned"), state.remaining_subtasks[0])
        yield StateWarning(
            "no_current",
            "warning",
            f"{count} {'subtask remains' if count == 1 else 'subtasks remain'}, and none is current",
            f"`ctxctl checkpoint --doing {shown(first.id)}` takes up the next: {_short(first.text)}",
        )


def _now(state: AgentState, verified: Verified) -> Iterator[StateWarning]:
    if verified.stale:
        changed = [path for path in verified.stale if path not in set(verified.missing)]
        parts = [f"changed since the checkpoint: {names(changed)}"] if changed else []
        parts += [f"gone since the checkpoint: {names(verified.missing)}"] if verified.missing else []
        hint = "read them again before relying on what is known of them; `ctxctl checkpoint` saves what they are now"
        yield StateWarning("stale_files", "warning", "; ".join(parts), hint, verified.stale)
    check = next((check for check in verified.checks if check.name == "transcript"), None)
    path = shown(state.transcript.path)
    if verified.newer:
        detail = check.detail if check is not None else "newer than the checkpoint"
        hint = f"`ctxctl checkpoint {path}` takes in what came since"
        yield StateWarning("transcript_newer", "warning", f"the transcript: {detail}", hint)
    elif check is not None and check.ok is False:
        hint = "the state stands for itself; `ctxctl checkpoint PATH` goes on from the transcript where it lies now"
        yield StateWarning("transcript_missing", "info", f"the transcript: {check.detail}", hint)


def _tail(state: AgentState, base: str | None) -> Iterator[StateWarning]:
    if state.transcript.turn and not state.tail:
        yield StateWarning(
            "tail_missing",
            "info",
            "the state has none of the newest turns",
            "cross_window.tail_turns and tail_characters in the settings say how many it keeps",
        )
    for one in implicit(state, base):
        yield StateWarning("implicit_state", "warning", one.message, one.hint)


def _short(text: str) -> str:
    return shown(shortened(" ".join(text.split()), 80))
