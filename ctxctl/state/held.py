"""What a state says, to look paths and ids up in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ctxctl.model.state import AgentState
from ctxctl.trace.atoms import words

HEX = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}")
"""A hash as git and container tools print it, whole or shortened; both digits and letters, else it may be a number."""


def held_by(state: AgentState) -> Held:
    """All that a state names beside its tail and its current step."""
    held = Held(_texts(state), [file.path for file in state.environment.files])
    for path in (*(file.path for file in state.working_set), *state.environment.dirty):
        held.path(path)
    return held


class Held:
    """Words that are known, to look paths and ids up in."""

    def __init__(self, texts: Iterable[str], paths: Iterable[str]) -> None:
        self.words: set[str] = set()
        self._names: dict[str, list[str]] = {}
        for text in texts:
            self.text(text)
        for path in paths:
            self.path(path)

    def text(self, text: str) -> None:
        """Take in what a text names."""
        fresh = words(text) - self.words
        self.words |= fresh
        for word in fresh:
            self.path(word)

    def path(self, path: str) -> None:
        """Take in a path and the folders that it lies in."""
        parts = _parts(path)
        for end in range(len(parts), 0, -1):
            self._names.setdefault(parts[end - 1], []).append("/".join(parts[:end]))

    def has_path(self, path: str) -> bool:
        """Whether a known path is this one, seen from some folder."""
        parts = _parts(path)
        if not parts:
            return True
        own = "/" + "/".join(parts)
        return any(own.endswith(f"/{other}") or f"/{other}".endswith(own) for other in self._names.get(parts[-1], ()))

    def has_id(self, id_: str) -> bool:
        """Whether an id is known, or one that is the beginning of the other, as git shortens them."""
        if id_ in self.words:
            return True
        if HEX.fullmatch(id_) is None:
            return any(id_ in re.split(r"[./-]", word) for word in self.words if id_ in word)
        return any(
            word.startswith(id_) or (len(word) >= 7 and id_.startswith(word) and HEX.fullmatch(word) is not None)
            for word in self.words
        )


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..", "~")]


def _texts(state: AgentState) -> Iterator[str]:
    """All that a state says beside its tail and its current step."""
    yield from (state.task_goal, *state.success_criteria, *state.constraints, *state.open_issues, *state.learnings)
    yield from (state.compaction_summary, *state.memory_index, *state.requests, *state.dead_ends, *state.errors)
    yield from (*state.next_steps, *state.artifacts)
    for subtask in (*state.completed_subtasks, *state.remaining_subtasks):
        yield f"{subtask.text}\n{subtask.evidence}"
    for decision in state.decisions:
        yield f"{decision.what}\n{decision.why}"
    for todo in state.todos:
        if state.current_subtask is None or todo.text != state.current_subtask.text:
            yield todo.text
    for commit in state.commits:
        yield f"{commit.id or ''} {commit.message}"
    for run in state.tests:
        yield f"{run.command}\n{run.detail}"
    around = state.environment
    yield f"{around.cwd or ''} {around.git_head or ''} {around.git_branch or ''}"
    for service in around.services:
        yield f"{service.name} {service.command or ''}"
