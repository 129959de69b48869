"""The state of a task across windows (requirement S1): what a checkpoint saves and the next window starts from.

Field names are the keys of the JSON file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxctl.model.summary import Commit, DecisionFact, Progress, SessionSummary, TestRun, Todo

SCHEMA = "ctxctl.state/1"

By = Literal["transcript", "hand", "note"]
"""Who put something into the state: a transcript, a user on the command line, the notes file."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """One piece of the task. id: unique in its state and never given twice, `s1`, `s2`, ... status: planned is never
    taken for doing, nor doing for done. task: the id that its agent's own todo tool gave it. window: the one in which
    its status was last seen to change. evidence: what shows the status, in words (a commit, a call that was
    interrupted). over: of a status set by hand, the one that the transcript gave then; as long as it gives that, the
    hand holds. extra: keys of the file that ctxctl does not know, kept as they are."""

    id: str
    text: str
    status: Progress
    agent: str = "main"
    by: By = "transcript"
    task: str | None = None
    window: int = 1
    evidence: str = ""
    over: Progress | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Service:
    """Something that must run for the task to go on: what answers on a TCP port of this machine, or a command whose
    exit status is 0."""

    name: str
    port: int | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the session. path: as the session named it. sha256, size, mtime_ns: on disk at the checkpoint, None
    when it was not there or is no regular file. written: SHA-256 of its content as the session last wrote it whole."""

    path: str
    role: Literal["read", "modified"]
    actions: tuple[str, ...] = ()
    sha256: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    written: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the task runs. git_head: full hash of the commit; git_branch: None when detached; dirty: paths that differ
    from the head or that git does not know, relative to the work tree. All None or empty outside of git. extra: keys of
    the file that ctxctl does not know, kept as they are."""

    cwd: str | None = None
    git_head: str | None = None
    git_branch: str | None = None
    dirty: tuple[str, ...] = ()
    files: tuple[FileState, ...] = ()
    services: tuple[Service, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class WorkingFile:
    """A file that was in use at the checkpoint, without its content."""

    path: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class TailBlock:
    """A block of the newest turns, its text as it was up to a limit (`…` shows a cut)."""

    turn: int
    kind: str
    role: str
    text: str
    tool_name: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """How far a transcript has been taken into the state, and what reading on from there needs.

    id, path, format: of the transcript; path is absolute. offset: bytes from its beginning that are done with. line,
    turn, exchange: lines, model calls and typed prompts of the main thread before the offset. size: bytes of the file
    at the checkpoint. newest: the newest time stamp seen, ISO 8601. mark: SHA-256 of up to 4,096 bytes before the
    offset, which tells a file that was rewritten. compactions: full ones of the main thread so far. skipped: bytes at
    the beginning that were never read, because there were too many at once. carry: what the facts need to go on, see
    `SessionFacts.carry`. leaves: ids of the newest records before the newest model call, by which a rewind behind it is
    told. reading: what the reader needs to go on, see `ctxctl.trace.grown`. window: in which the transcript began.
    first: SHA-256 of its first prompt, which tells transcripts without ids apart. seal: SHA-256 of all the others,
    which tells a position that was changed by hand: such a one is not read on from.
    """

    id: str | None = None
    path: str = ""
    format: str = ""
    offset: int = 0
    line: int = 0
    turn: int = 0
    exchange: int = 0
    size: int = 0
    newest: str | None = None
    mark: str = ""
    compactions: int = 0
    skipped: int = 0
    carry: Mapping[str, Any] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    window: int = 1
    first: str = ""
    seal: str = ""


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of one task. Lists are in the order in which things came up; nothing is lost from one version to the
    next but what was closed by hand or taken back.

    state_version: grows by one with each write. window_id: 1-based, grows with each new session or compaction.
    completed_subtasks, current_subtask, remaining_subtasks: `done`; the first that is `doing`; all others. todos: the
    newest list of each agent, as it is. requests: the user's later prompts, each as one line. newest_request: the
    newest one, whole up to a limit. tail: the newest turns. memory_index: titles of the notes. working_set: files in
    use, the newest first. set_by_hand: what of it no transcript changes (`goal`, `cwd`). closed_by_hand: texts of
    issues and subtasks that were closed or dropped by hand and don't come back. inherited: what was known when the
    transcript began, and what a hand or notes said since: what it does not tell itself. seen: transcripts of earlier
    windows by path, and the newest time stamp of each that was taken. extra: keys of the file that ctxctl does not
    know, kept as they are.
    """

    state_version: int = 0
    window_id: int = 1
    task_goal: str = ""
    success_criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    completed_subtasks: tuple[Subtask, ...] = ()
    current_subtask: Subtask | None = None
    remaining_subtasks: tuple[Subtask, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    open_issues: tuple[str, ...] = ()
    environment: Environment = field(default_factory=Environment)
    learnings: tuple[str, ...] = ()
    compaction_summary: str = ""
    saved_at: str = ""
    tail: tuple[TailBlock, ...] = ()
    todos: tuple[Todo, ...] = ()
    working_set: tuple[WorkingFile, ...] = ()
    memory_index: tuple[str, ...] = ()
    transcript: Position = field(default_factory=Position)
    requests: tuple[str, ...] = ()
    newest_request: str = ""
    commits: tuple[Commit, ...] = ()
    tests: tuple[TestRun, ...] = ()
    dead_ends: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    set_by_hand: tuple[str, ...] = ()
    closed_by_hand: tuple[str, ...] = ()
    inherited: SessionSummary = field(default_factory=SessionSummary)
    seen: Mapping[str, str] = field(default_factory=dict)
    next_id: int = 1
    schema: str = SCHEMA
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subtasks(self) -> tuple[Subtask, ...]:
        """All of them: done, then the current one, then the rest."""
        current = () if self.current_subtask is None else (self.current_subtask,)
        return (*self.completed_subtasks, *current, *self.remaining_subtasks)
